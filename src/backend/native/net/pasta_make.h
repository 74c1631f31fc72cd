/* pasta_make.h: the work of pasta.c on its thread. Blocking. */
#ifndef AGX_BACKEND_NATIVE_NET_PASTA_MAKE_H
#define AGX_BACKEND_NATIVE_NET_PASTA_MAKE_H

#include "core/text.h"

#include <stdatomic.h>

#define AGX_PASTA_RECORD "pasta"

/* Used only by the thread while it works. */
struct agx_pasta_maker {
    char *init_path;
    int net_fd, dir_fd;   /* borrowed */
    int pidfd;            /* of the process; -1: none */
    struct agx_words way; /* the default route that it was started for */
    atomic_bool stop;     /* set by the loop: stop waiting */
};

/* Finds the process of an earlier daemon, if it runs. */
int agx_pasta_maker_init(struct agx_pasta_maker *m, const char *init_path,
                         struct agx_error **err) AGX_MUST_CHECK;

/*
 * Makes sure that a process runs for the host's current default route, and none where there is no
 * such route: `pidfd` is -1 then. After a failure there is none.
 */
int agx_pasta_make(struct agx_pasta_maker *m, struct agx_error **err) AGX_MUST_CHECK;

void agx_pasta_maker_done(struct agx_pasta_maker *m);

#endif

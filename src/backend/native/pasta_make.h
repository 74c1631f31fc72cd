/* pasta_make.h: what pasta.c does on its thread. Blocking. */
#ifndef AGX_BACKEND_NATIVE_PASTA_MAKE_H
#define AGX_BACKEND_NATIVE_PASTA_MAKE_H

#include "core/text.h"

#include <stdatomic.h>

#define AGX_PASTA_RECORD "pasta"

/* Of the thread alone, while it works. */
struct agx_pasta_maker {
    char *init_path;
    int net_fd, dir_fd;   /* borrowed */
    int pidfd;            /* of the process; -1: there is none */
    struct agx_words way; /* that it was started for */
    atomic_bool stop;     /* set by the loop: do not wait any longer */
};

/* The one that an earlier daemon left, as far as it runs. */
int agx_pasta_maker_init(struct agx_pasta_maker *m, const char *init_path,
                         struct agx_error **err) AGX_MUST_CHECK;

/*
 * Sees to it that there is one for the host's way out as it is now, and none where there is no way:
 * then `pidfd` is -1. What fails leaves none.
 */
int agx_pasta_make(struct agx_pasta_maker *m, struct agx_error **err) AGX_MUST_CHECK;

void agx_pasta_maker_done(struct agx_pasta_maker *m);

#endif

/*
 * pasta.h: the way out of an ordinary user's sandboxes: one process for all of them, `pasta`
 * (https://passt.top), between the network namespace that takes the host's part for their links
 * (rootless.h) and the host's own.
 *
 *     agx_pasta_open(loop, &config, &pasta, err);
 *     agx_pasta_await(pasta, done, user, &op, err);     a sandbox is to have a network
 *     agx_pasta_close(pasta, closed, user);
 *
 * It is started when it is first needed, and again when it ends or when the host's way out is
 * another. It outlives the daemon, by a record, and ends with those namespaces.
 *
 * What it sends leaves by the one interface of the host that leads to the Internet, so that other
 * networks of the host and its addresses on them are not reached; its addresses on that one are
 * addresses of the namespace too, where the fence refuses them. Loop thread only.
 */
#ifndef AGX_BACKEND_NATIVE_PASTA_H
#define AGX_BACKEND_NATIVE_PASTA_H

#include "loop/loop.h"

struct agx_pasta;
struct agx_pasta_op;

struct agx_pasta_config {
    const char *init_path; /* agentix-init; copied */
    int net_fd;            /* the namespace of the links; borrowed, as the next one */
    int dir_fd;            /* has the record */
};

/* -AGX_FAILED_PRECONDITION with the package, where the program is missing. Any thread. */
int agx_pasta_check(struct agx_error **err) AGX_MUST_CHECK;

int agx_pasta_open(struct agx_loop *l, const struct agx_pasta_config *config,
                   struct agx_pasta **ret_pasta, struct agx_error **err) AGX_MUST_CHECK;

/* There is something that needs it: it is looked after from here on. */
void agx_pasta_need(struct agx_pasta *p);

/* `done`, never inside this call: it is at work, or the host itself has no way out yet; or an
 * error. */
int agx_pasta_await(struct agx_pasta *p, agx_done_fn done, void *user, struct agx_pasta_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;
/* `done` does not come. */
void agx_pasta_abandon(struct agx_pasta_op *op);

/* The process goes on. Who waits is told nothing. */
void agx_pasta_close(struct agx_pasta *p, agx_done_fn closed, void *user);

/* Ends the one that the record is of, if it runs, and removes the record. Blocks shortly. */
void agx_pasta_end(int dir_fd);

#endif

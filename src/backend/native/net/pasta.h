/*
 * pasta.h: the uplink of an ordinary user's sandboxes: one process for all of them, `pasta`
 * (https://passt.top). It connects the network namespace with the host's end of their links
 * (rootless.h) to the host's own network.
 *
 *     agx_pasta_open(loop, &config, &pasta, err);
 *     agx_pasta_await(pasta, done, user, &op, err);     before a sandbox gets a network
 *     agx_pasta_close(pasta, closed, user);
 *
 * It is started when first needed, and again when it ends or when the host's default route changes.
 * It outlives the daemon, which finds it by a record, and ends with those namespaces.
 *
 * Its packets leave by the one host interface that leads to the Internet, so that the host's other
 * networks, and its addresses there, cannot be reached. The host's addresses on that interface are
 * also addresses of the namespace, where the firewall refuses them. Loop thread only.
 */
#ifndef AGX_BACKEND_NATIVE_NET_PASTA_H
#define AGX_BACKEND_NATIVE_NET_PASTA_H

#include "loop/loop.h"

struct agx_pasta;
struct agx_pasta_op;

struct agx_pasta_config {
    const char *init_path; /* agentix-init; copied */
    int net_fd;            /* namespace of the links; borrowed, as the next one */
    int dir_fd;            /* directory of the record */
};

/* -AGX_FAILED_PRECONDITION names the package where the program is missing. Any thread. */
int agx_pasta_check(struct agx_error **err) AGX_MUST_CHECK;

int agx_pasta_open(struct agx_loop *l, const struct agx_pasta_config *config,
                   struct agx_pasta **ret_pasta, struct agx_error **err) AGX_MUST_CHECK;

/* Something needs it: it is kept running from here on. */
void agx_pasta_need(struct agx_pasta *p);

/* `done`, never inside this call: it runs, or the host itself has no default route yet; or an
 * error. */
int agx_pasta_await(struct agx_pasta *p, agx_done_fn done, void *user, struct agx_pasta_op **ret_op,
                    struct agx_error **err) AGX_MUST_CHECK;
/* `done` is not called any more. */
void agx_pasta_abandon(struct agx_pasta_op *op);

/* The process keeps running. Waiting callers are not called back. */
void agx_pasta_close(struct agx_pasta *p, agx_done_fn closed, void *user);

/* Ends the process in the record, if it runs, and removes the record. Blocks briefly. */
void agx_pasta_end(int dir_fd);

#endif

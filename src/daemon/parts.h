/*
 * parts.h: the parts of agentixd that serve its clients, opened in order and closed in the reverse
 * one:
 *
 *     store, images, backend, engine, server, its methods
 *
 * What each is told of the configuration and of the others is said here alone.
 */
#ifndef AGX_DAEMON_PARTS_H
#define AGX_DAEMON_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct agx_daemon_options;
struct agx_loop;
struct agx_rootless;

#define AGX_PARTS_PRIVATE_MAX 5 /* paths that are not for sandboxes */

/* Begins as zeroes. */
struct agx_parts {
    struct agx_loop *loop;
    const struct agx_daemon_options *o;
    struct agx_rootless *rootless;
    struct agx_store *store;
    struct agx_images *images;
    struct agx_puller *puller;
    struct agx_backend *backend;
    struct agx_engine *engine;
    struct agx_sources *sources; /* for backend and engine */
    struct agx_rpc_server *rpc;
    struct agx_rpc_health *health;
    struct agx_rpc_reflection *reflection;
    struct agx_service *service;
    void (*closed)(void *user);
    void *user;
};

/* After a failure those that were opened are still to be closed. `o` and `rootless` must outlive
 * them. Before any thread exists: the store may have to fork. */
int agx_parts_open(struct agx_parts *p, struct agx_loop *l, const struct agx_daemon_options *o,
                   struct agx_rootless *rootless, struct agx_error **err) AGX_MUST_CHECK;

/* What the health service says. */
int agx_parts_set_serving(struct agx_parts *p, bool serving, struct agx_error **err) AGX_MUST_CHECK;

/* `closed` comes when none is left; at once, inside the call, where none is open. */
void agx_parts_close(struct agx_parts *p, void (*closed)(void *user), void *user);

#endif

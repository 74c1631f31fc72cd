/*
 * parts.h: the subsystems of agentixd that serve its clients, opened in order and closed in the
 * reverse order:
 *
 *     store, images, backend, manager, server, its methods
 *
 * Only this module passes configuration and other subsystems to each of them.
 */
#ifndef AGX_DAEMON_PARTS_H
#define AGX_DAEMON_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct agx_daemon_options;
struct agx_loop;
struct agx_rootless;

#define AGX_PARTS_PRIVATE_MAX 5 /* paths that sandboxes may not mount */

/* Zero-initialised. */
struct agx_parts {
    struct agx_loop *loop;
    const struct agx_daemon_options *o;
    struct agx_rootless *rootless;
    struct agx_store *store;
    struct agx_images *images;
    struct agx_puller *puller;
    struct agx_backend *backend;
    struct agx_engine *engine;
    struct agx_sources *sources; /* for backend and manager */
    struct agx_rpc_server *rpc;
    struct agx_rpc_health *health;
    struct agx_rpc_reflection *reflection;
    struct agx_service *service;
    void (*closed)(void *user);
    void *user;
};

/* After a failure, agx_parts_close() must still be called. `o` and `rootless` must outlive the
 * subsystems. Call before any thread exists: opening the store may fork. */
int agx_parts_open(struct agx_parts *p, struct agx_loop *l, const struct agx_daemon_options *o,
                   struct agx_rootless *rootless, struct agx_error **err) AGX_MUST_CHECK;

/* Sets the status that the health service reports. */
int agx_parts_set_serving(struct agx_parts *p, bool serving, struct agx_error **err) AGX_MUST_CHECK;

/* Calls `closed` when all are closed; inside this call when none was open. */
void agx_parts_close(struct agx_parts *p, void (*closed)(void *user), void *user);

#endif

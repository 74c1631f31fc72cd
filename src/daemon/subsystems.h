/*
 * subsystems.h: the subsystems of agentixd that serve its clients, opened in order and closed in
 * the reverse order:
 *
 *     store, images, backend, manager, server, its methods
 *
 * Only this module passes configuration and other subsystems to each of them.
 */
#ifndef AGX_DAEMON_SUBSYSTEMS_H
#define AGX_DAEMON_SUBSYSTEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct agx_daemon_options;
struct agx_loop;
struct agx_rootless;

#define AGX_SUBSYSTEMS_PRIVATE_MAX 5 /* paths that sandboxes may not mount */

/* Zero-initialised. */
struct agx_subsystems {
    struct agx_loop *loop;
    const struct agx_daemon_options *o;
    struct agx_rootless *rootless;
    struct agx_store *store;
    struct agx_images *images;
    struct agx_puller *puller;
    struct agx_backend *backend;
    struct agx_manager *manager;
    struct agx_sources *sources; /* for backend and manager */
    struct agx_grpc_server *rpc;
    struct agx_grpc_health *health;
    struct agx_grpc_reflection *reflection;
    struct agx_service *service;
    void (*closed)(void *user);
    void *user;
};

/* After a failure, agx_subsystems_close() must still be called. `o` and `rootless` must outlive the
 * subsystems. Call before any thread exists: opening the store may fork. */
int agx_subsystems_open(struct agx_subsystems *p, struct agx_loop *l,
                        const struct agx_daemon_options *o, struct agx_rootless *rootless,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Sets the status that the health service reports. */
int agx_subsystems_set_serving(struct agx_subsystems *p, bool serving,
                               struct agx_error **err) AGX_MUST_CHECK;

/* Calls `closed` when all are closed; inside this call when none was open. */
void agx_subsystems_close(struct agx_subsystems *p, void (*closed)(void *user), void *user);

#endif

/*
 * service.h: the daemon's gRPC services: agbox.v1.SandboxService and agentix.v1.ControlService, on
 * the manager, and agentix.v1.ImageService, on an image store.
 *
 *     agx_service_open(&config, &service, err);      registers all methods
 *     ...
 *     agx_grpc_server_stop(server, ...);  all calls have ended
 *     agx_manager_close(manager, ...);    all requests are answered
 *     agx_puller_close(puller); agx_images_stop(images, ...);   pulls and imports have ended
 *     agx_store_close(store, ...);                   backups have ended
 *     agx_service_close(service, closed, user);
 *
 * No handler blocks the loop for long: long work (lists, old events, output, a backup) is cut into
 * slices over several turns. Loop thread only.
 */
#ifndef AGX_DAEMON_SERVICE_SERVICE_H
#define AGX_DAEMON_SERVICE_SERVICE_H

#include "base/limits.h"
#include "loop/loop.h"

struct agx_manager;
struct agx_images;
struct agx_puller;
struct agx_grpc_server;
struct agx_service;
struct agx_store;

struct agx_service_config {
    struct agx_loop *loop;
    struct agx_manager *manager;
    struct agx_store *store;   /* for its statistics and its backup */
    struct agx_images *images; /* NULL: ImageService is not served */
    struct agx_puller *puller;
    struct agx_grpc_server *server; /* serves the methods; for its statistics */
    const char *version;            /* the strings must outlive the service */
    const char *name;               /* the daemon's name, in Ping */
    const char *backend;            /* its name, in GetStats */
    const char *data_dir;           /* a backup is made here, in a file without a name */
    bool compat;                    /* like agbox: replies include the companions' environments */
    uint32_t subscribers_per_uid;   /* concurrent event streams and waits; 0: no limit */
    const char *subscribers_key;    /* its configuration key, for messages */
    uint32_t page_max;              /* sandboxes in a page */
    uint64_t output_poll_ms;        /* how often output is polled without notifications */
};
#define AGX_SERVICE_CONFIG_INIT                                                                    \
    {                                                                                              \
        .name = "agentixd", .subscribers_per_uid = AGX_SUBSCRIBERS_PER_UID,                        \
        .subscribers_key = "limits.subscribers_per_uid", .page_max = AGX_PAGE_MAX,                 \
        .output_poll_ms = AGX_OUTPUT_POLL_MS                                                       \
    }

int agx_service_open(const struct agx_service_config *config, struct agx_service **ret_service,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Requires that server, manager, images and store are closed. `closed` may be NULL. */
void agx_service_close(struct agx_service *s, agx_done_fn closed, void *user);

#endif

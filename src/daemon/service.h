/*
 * service.h: what the daemon answers: agbox.v1.SandboxService and agentix.v1.ControlService, on an
 * engine, and agentix.v1.ImageService, on a store of images.
 *
 *     agx_service_open(&config, &service, err);      registers all methods
 *     ...
 *     agx_rpc_server_stop(server, ...);              every call has ended then
 *     agx_engine_close(engine, ...);                 every request is answered then
 *     agx_puller_close(puller); agx_images_stop(images, ...);   and every pull and import
 *     agx_store_close(store, ...);                   and every backup has ended
 *     agx_service_close(service, closed, user);
 *
 * No handler takes long: what may be much (lists, old events, output, a backup) goes in slices over
 * turns of the loop. Loop thread only.
 */
#ifndef AGX_DAEMON_SERVICE_H
#define AGX_DAEMON_SERVICE_H

#include "base/limits.h"
#include "loop/loop.h"

struct agx_engine;
struct agx_images;
struct agx_puller;
struct agx_rpc_server;
struct agx_service;
struct agx_store;

struct agx_service_config {
    struct agx_loop *loop;
    struct agx_engine *engine;
    struct agx_store *store;   /* for its figures and its backup */
    struct agx_images *images; /* NULL: ImageService is not served */
    struct agx_puller *puller;
    struct agx_rpc_server *server; /* takes the methods; its figures */
    const char *version;           /* the strings live as long as the service */
    const char *name;              /* of the daemon, in Ping */
    const char *backend;           /* its name, in GetStats */
    const char *data_dir;          /* a backup is made here, in a file without a name */
    bool compat;                   /* agbox's ways: handles tell the companions' environments */
    uint32_t subscribers_per_uid;  /* event streams and waits at a time; 0: no limit */
    const char *subscribers_key;   /* how the configuration calls that, for messages */
    uint32_t page_max;             /* sandboxes in a page */
    uint64_t output_poll_ms;       /* how often output is looked at when nobody tells of news */
};
#define AGX_SERVICE_CONFIG_INIT                                                                    \
    {                                                                                              \
        .name = "agentixd", .subscribers_per_uid = AGX_SUBSCRIBERS_PER_UID,                        \
        .subscribers_key = "limits.subscribers_per_uid", .page_max = AGX_PAGE_MAX,                 \
        .output_poll_ms = AGX_OUTPUT_POLL_MS                                                       \
    }

int agx_service_open(const struct agx_service_config *config, struct agx_service **ret_service,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Server, engine, images and store are closed. `closed` may be NULL. */
void agx_service_close(struct agx_service *s, agx_done_fn closed, void *user);

#endif

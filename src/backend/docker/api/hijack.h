/*
 * hijack.h: a call whose connection becomes a stream in both directions: attach, and exec start.
 *
 *     agx_docker_hijack(e, &(struct agx_docker_hijack_request){ ... }, &ops, user, &h, err);
 *     ... ops->open ... agx_docker_hijack_write() ... ops->data ... ops->closed, once; or
 *     h = agx_docker_hijack_close(h);
 *
 * Output is separated by stream. Both directions are bounded: a write that does not fit is refused,
 * reading can be paused. Loop thread only.
 */
#ifndef AGX_BACKEND_DOCKER_API_HIJACK_H
#define AGX_BACKEND_DOCKER_API_HIJACK_H

#include "backend/docker/api/engine.h"
#include "codec/dockerstream.h"

struct agx_docker_hijack;

struct agx_docker_hijack_ops {
    void (*open)(void *user); /* attached: bytes flow in both directions */
    /* Never SYSTEM, which is an error and ends the stream. */
    void (*data)(void *user, enum agx_dockerstream_kind stream, struct agx_str bytes);
    void (*drained)(void *user); /* all that was written is in the kernel; may be NULL */
    /* Once, and the hijack is gone: refused, broken, or (NULL) ended by the engine. The callee owns
     * `error`. */
    void (*closed)(void *user, struct agx_error *error);
};

/* Uses method, path, what and body of the request; deadline_ms: until `open`. */
struct agx_docker_hijack_request {
    struct agx_docker_request request;
    bool raw;       /* a terminal's stream: no frames, all of it stdout */
    size_t out_max; /* send queue in bytes; 0: AGX_DOCKER_HIJACK_OUT_MAX */
};

/* Attach and exec start: the connection becomes the stream. */
int agx_docker_hijack(struct agx_docker_engine *e, const struct agx_docker_hijack_request *q,
                      const struct agx_docker_hijack_ops *ops, void *user,
                      struct agx_docker_hijack **ret_hijack, struct agx_error **err) AGX_MUST_CHECK;

/* Takes all of it or, with -AGX_RESOURCE_EXHAUSTED past out_max, nothing. Before `open` it is
 * queued. */
int agx_docker_hijack_write(struct agx_docker_hijack *h, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Ends our direction, after what is queued. -AGX_UNIMPLEMENTED over TLS. */
int agx_docker_hijack_end(struct agx_docker_hijack *h, struct agx_error **err) AGX_MUST_CHECK;

/* No data() while paused; writers in the container have to wait. */
void agx_docker_hijack_pause(struct agx_docker_hijack *h, bool paused);

/* Closes at once, also inside a callback; no callback follows. Accepts and returns NULL. */
struct agx_docker_hijack *agx_docker_hijack_close(struct agx_docker_hijack *h);

#endif

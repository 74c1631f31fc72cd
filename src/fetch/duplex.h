/*
 * duplex.h: one request whose connection becomes a byte stream in both directions: HTTP's
 * `Connection: Upgrade`, over a Unix socket, TCP or TLS like other fetch calls.
 *
 *     agx_duplex_open(fetch, &request, &ops, user, &d, err);
 *     ... ops->open ... agx_duplex_write() ... ops->data ... ops->closed (once) or
 *     agx_duplex_close(d);
 *
 * Both directions are bounded: a write that does not fit is refused, reading can be paused. Loop
 * thread only.
 */
#ifndef AGX_FETCH_DUPLEX_H
#define AGX_FETCH_DUPLEX_H

#include "fetch/fetch.h"

struct agx_duplex;

struct agx_duplex_request {
    const char *method, *path;  /* as in struct agx_fetch_request */
    const char *const *headers; /* besides Host, Connection, Upgrade and Content-Length */
    const char *protocol;       /* the protocol to upgrade to: "tcp" */
    struct agx_str body;        /* copied */
    uint64_t open_ms;           /* until the answer's head; 0: no limit */
    size_t out_max;             /* send queue, in bytes */
    size_t body_max;            /* of a refusal's body */
};

struct agx_duplex_ops {
    /* The server has switched (101, or 200 from old ones): bytes can flow. */
    void (*open)(void *user);
    /* It answered otherwise. `closed` does not follow; the duplex is gone. */
    void (*refused)(void *user, unsigned status, struct agx_str body);
    /* Bytes arrived. Returns how many were consumed: fewer only when it has paused; the rest comes
     * again after that. */
    size_t (*data)(void *user, struct agx_str bytes);
    /* All that was written is in the kernel. May be NULL. */
    void (*drained)(void *user);
    /* Once: the peer ended the stream (NULL) or it broke; the duplex is gone. The callee owns
     * `error`. */
    void (*closed)(void *user, struct agx_error *error);
};

int agx_duplex_open(struct agx_fetch *f, const struct agx_duplex_request *request,
                    const struct agx_duplex_ops *ops, void *user, struct agx_duplex **ret_duplex,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Takes all of it or, with -AGX_RESOURCE_EXHAUSTED past out_max, nothing. -AGX_FAILED_PRECONDITION
 * after agx_duplex_end(). Before `open` it is queued. */
int agx_duplex_write(struct agx_duplex *d, struct agx_str bytes,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Bytes in the send queue. */
size_t agx_duplex_queued(const struct agx_duplex *d);

/* Ends our direction after what is queued; the other continues. -AGX_UNIMPLEMENTED over TLS, where
 * libcurl cannot end one direction alone. */
int agx_duplex_end(struct agx_duplex *d, struct agx_error **err) AGX_MUST_CHECK;

/* No data() while paused; the peer has to wait. */
void agx_duplex_pause(struct agx_duplex *d, bool paused);

/* Closes at once, also inside a callback; no callback follows. Accepts and returns NULL. */
struct agx_duplex *agx_duplex_close(struct agx_duplex *d);

#endif

/*
 * eio_session.h: heartbeat and upgrade of one Engine.IO session, for a server or a client.
 *
 * It decides, and the caller does: each packet that arrives and each tick of the clock gives one
 * action. Times are milliseconds of a clock that never steps back. What must be sent goes to the
 * transport that the action names; while the session is UPGRADING, messages still go by polling.
 */
#ifndef AGX_CODEC_EIO_SESSION_H
#define AGX_CODEC_EIO_SESSION_H

#include "codec/eio.h"
#include "codec/eio_open.h"

enum agx_eio_role { AGX_EIO_SERVER, AGX_EIO_CLIENT };

enum agx_eio_transport { AGX_EIO_POLLING, AGX_EIO_WEBSOCKET };

enum agx_eio_state {
    AGX_EIO_STATE_OPENING, /* a client waits for the open packet */
    AGX_EIO_STATE_POLLING,
    AGX_EIO_STATE_UPGRADING, /* a WebSocket is being tried out */
    AGX_EIO_STATE_WEBSOCKET,
    AGX_EIO_STATE_CLOSED,
};

enum agx_eio_action_kind {
    AGX_EIO_ACT_NONE,
    AGX_EIO_ACT_DELIVER,  /* the packet is a message for the layer above */
    AGX_EIO_ACT_SEND,     /* send `packet` by `via` */
    AGX_EIO_ACT_OPENED,   /* client: the session is open, `open` has its terms */
    AGX_EIO_ACT_PROBED,   /* server: send `packet` by `via`, and end a waiting poll with a noop */
    AGX_EIO_ACT_UPGRADED, /* the WebSocket carries all from now on; a client sends `packet` first */
    AGX_EIO_ACT_CLOSED,   /* the peer said goodbye */
    AGX_EIO_ACT_TIMED_OUT, /* the peer is silent: drop the session */
};

struct agx_eio_action {
    enum agx_eio_action_kind kind;
    enum agx_eio_transport via;
    struct agx_eio_packet packet;
    struct agx_eio_open open; /* its sid borrows from the packet that came */
};

struct agx_eio_session {
    enum agx_eio_role role;
    enum agx_eio_state state;
    uint32_t ping_interval_ms, ping_timeout_ms;
    bool awaiting_pong;   /* server: a ping is out */
    uint64_t deadline_ms; /* when agx_eio_session_tick() has something to do */
};

/* A server's session, which begins when it has sent its open packet by `via`. */
void agx_eio_session_init_server(struct agx_eio_session *s, const struct agx_eio_open *terms,
                                 enum agx_eio_transport via, uint64_t now_ms);

/* A client's session, which is OPENING; it gives up when no open packet comes in `timeout_ms`. */
void agx_eio_session_init_client(struct agx_eio_session *s, uint32_t timeout_ms, uint64_t now_ms);

/*
 * A packet came by `via`. Negative: it has no place here (-AGX_INVALID_ARGUMENT). When it came by
 * the WebSocket of an upgrade, drop only that WebSocket: the session is POLLING again. Otherwise
 * the session is CLOSED.
 */
int agx_eio_session_recv(struct agx_eio_session *s, enum agx_eio_transport via,
                         const struct agx_eio_packet *p, uint64_t now_ms,
                         struct agx_eio_action *ret, struct agx_error **err) AGX_MUST_CHECK;

/* Call it at deadline_ms (early calls do nothing): SEND a ping, TIMED_OUT, or NONE. */
struct agx_eio_action agx_eio_session_tick(struct agx_eio_session *s, uint64_t now_ms);

/* Client, POLLING: its WebSocket is connected. SEND the probe that the action holds. */
struct agx_eio_action agx_eio_session_probe(struct agx_eio_session *s);

/* The WebSocket of an upgrade broke: back to POLLING. Nothing in other states. */
void agx_eio_session_probe_failed(struct agx_eio_session *s);

/* The transport that carries messages now. */
static inline enum agx_eio_transport agx_eio_session_via(const struct agx_eio_session *s)
{
    return s->state == AGX_EIO_STATE_WEBSOCKET ? AGX_EIO_WEBSOCKET : AGX_EIO_POLLING;
}

#endif

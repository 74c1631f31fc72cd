/*
 * eio_server.h: Engine.IO v4 sessions, over long polling and WebSocket, with the upgrade from the
 * first to the second.
 *
 * It answers requests that its owner passes on, and reports sessions and their messages to the
 * owner. The owner decides who may connect, before it passes a request on.
 */
#ifndef AGX_RUNTIME_EIO_SERVER_H
#define AGX_RUNTIME_EIO_SERVER_H

#include "codec/eio.h"
#include "runtime/http_server.h"

struct agx_loop;
struct agx_eio_server;
struct agx_eio_session;

struct agx_eio_server_config {
    uint32_t ping_interval_ms, ping_timeout_ms;
    size_t message_max; /* bytes of one message or one polling request */
    size_t queue_max;   /* bytes that wait for one polling client; more is refused */
    size_t queue_high;  /* with more queued it counts as slow: see `drained` */
    size_t sessions_max;
    size_t kept_max;     /* total bytes that idle WebSockets keep for their next large message */
    uint64_t upgrade_ms; /* how long an upgrade may take */
    uint64_t first_ms;   /* how long a client may take to send its first message */
};
#define AGX_EIO_SERVER_CONFIG_INIT                                                                 \
    {                                                                                              \
        .ping_interval_ms = AGX_EIO_PING_INTERVAL_MS, .ping_timeout_ms = AGX_EIO_PING_TIMEOUT_MS,  \
        .message_max = AGX_MESSAGE_MAX, .queue_max = 2 * AGX_MESSAGE_MAX,                          \
        .queue_high = AGX_CONN_OUT_HIGH, .sessions_max = AGX_EIO_SESSIONS_MAX,                     \
        .kept_max = AGX_EIO_KEPT_MAX, .upgrade_ms = AGX_EIO_UPGRADE_MS,                            \
        .first_ms = AGX_EIO_FIRST_MS                                                               \
    }

struct agx_eio_server_ops {
    /* A new session. `x` is its first request, valid only in this call. */
    void (*open)(void *user, struct agx_eio_session *s, const struct agx_exchange *x);
    /* One message packet. Its data are valid only in this call, and must not be modified. */
    void (*message)(void *user, struct agx_eio_session *s, const struct agx_eio_packet *p);
    /* All is sent, after more than queue_high had been waiting. */
    void (*drained)(void *user, struct agx_eio_session *s);
    /* The session has ended for that reason; the pointer is invalid afterwards. Once per open. */
    void (*close)(void *user, struct agx_eio_session *s, const char *reason);
};

int agx_eio_server_open(struct agx_loop *l, const struct agx_eio_server_config *config,
                        const struct agx_eio_server_ops *ops, void *user,
                        struct agx_eio_server **ret_server, struct agx_error **err) AGX_MUST_CHECK;
/* Ends every session; close() of each follows, and then the memory goes. Accepts NULL. */
struct agx_eio_server *agx_eio_server_close(struct agx_eio_server *sv);

/* Takes a request to the Engine.IO path and answers it now or later. For the owner's http ops. */
void agx_eio_server_request(struct agx_eio_server *sv, struct agx_exchange *x);
void agx_eio_server_oversize(struct agx_eio_server *sv, struct agx_exchange *x);
/* The client of an unanswered exchange has gone. */
void agx_eio_server_gone(struct agx_eio_server *sv, struct agx_exchange *x);

/* Borrowed; lives as long as the session. */
const char *agx_eio_session_peek_sid(const struct agx_eio_session *s);
/* The session that a request names; NULL: none. */
struct agx_eio_session *agx_eio_server_find(const struct agx_eio_server *sv,
                                            const struct agx_http_head *head);
/* The largest message that the client may send; initially the server's. The owner must check
 * polling requests itself, because it sees their heads. */
void agx_eio_session_limit(struct agx_eio_session *s, size_t message_max);
void agx_eio_session_set_user(struct agx_eio_session *s, void *user);
void *agx_eio_session_user(const struct agx_eio_session *s);

/*
 * Sends a text message, directly followed by a binary one given in parts (n_parts 0: none). Copies
 * them. -AGX_RESOURCE_EXHAUSTED when too much is waiting, -AGX_UNAVAILABLE when the session has
 * ended; nothing is sent then.
 */
int agx_eio_session_send(struct agx_eio_session *s, struct agx_str text,
                         const struct agx_str *parts, size_t n_parts) AGX_MUST_CHECK;
/* Bytes that wait to be sent. */
size_t agx_eio_session_queued(const struct agx_eio_session *s);

/* Stops message() until resume, except for the rest of a polling request: the client has to wait.
 * Meanwhile missing pongs do not end the session. */
void agx_eio_session_pause(struct agx_eio_session *s);
void agx_eio_session_resume(struct agx_eio_session *s);

/* Ends it: a close packet or a WebSocket close with `code` (enum agx_ws_close_code). `reason` is a
 * constant. close() follows in a later turn. */
void agx_eio_session_close(struct agx_eio_session *s, unsigned code, const char *reason);

#endif

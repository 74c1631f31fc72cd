/* eio_internal.h: shared by eio_server.c (requests), eio_session.c and eio_link.c (WebSockets). */
#ifndef AGX_RUNTIME_EIO_INTERNAL_H
#define AGX_RUNTIME_EIO_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "codec/ws.h"
#include "loop/loop.h"
#include "runtime/eio_server.h"

enum { SID_LEN = 20 }; /* base64 of 15 random bytes */

struct agx_eio_server {
    struct agx_loop *loop;
    struct agx_eio_server_config config;
    const struct agx_eio_server_ops *ops;
    void *user;
    struct agx_map sessions; /* by sid */
    size_t n_alive;          /* sessions and links not yet freed */
    size_t kept;             /* the links' `kept`; at most config.kept_max */
    bool closing;
};

/* A WebSocket: carries a session from the start, or after an upgrade. */
enum link_state {
    LINK_PROBE,   /* waits for "2probe" */
    LINK_UPGRADE, /* waits for "5" */
    LINK_ACTIVE,  /* carries the session */
    LINK_ENDED,   /* its close frame is sent or the connection is closed; session is NULL */
};

struct eio_link {
    struct agx_eio_server *server;
    struct agx_conn *conn;
    struct agx_eio_session *session; /* NULL: the session ended or left this link */
    enum link_state state;
    bool paused;
    struct agx_ws ws;
    size_t kept; /* bytes that `ws` holds between two messages */
};

/* A text and its attachment, waiting for a polling client. */
struct eio_unit {
    struct agx_list_node node; /* in session->units */
    struct agx_eio_packet packets[2];
    size_t n;
    size_t bytes;
    char data[]; /* the packets point into this */
};

struct agx_eio_session {
    struct agx_eio_server *server;
    void *user;
    char sid[SID_LEN + 1];
    bool ended;
    bool leaving;   /* ended, but a polling client has not fetched its last packets yet */
    bool announced; /* open() was called, so close() must be */
    bool paused;
    bool awaiting_pong;
    bool spoke;               /* a message was received */
    bool last_look;           /* no message in time: last wait for unread input */
    uint64_t silent_until_ms; /* loop time: deadline of the first message */
    bool heard; /* bytes came since the last check: a pong may be queued behind a long message */
    bool was_slow;
    const char *reason;
    struct eio_link *link;     /* a WebSocket, active or on its way; NULL: none */
    struct agx_exchange *get;  /* waits for something to send */
    struct agx_exchange *post; /* waits until reading is resumed */
    struct agx_list units;     /* of struct eio_unit */
    size_t queued;             /* their bytes */
    size_t message_max;        /* what the client may send in one message or polling request */
    uv_timer_t ping;
    uv_timer_t answer; /* 0 ms: at the turn's end, so that one GET takes all packets */
    unsigned n_open;   /* handles */
};

/* server: */
void agx_eio_server_released(struct agx_eio_server *sv); /* decrements n_alive */
void agx_eio_answer(struct agx_exchange *x, unsigned status, struct agx_str type,
                    struct agx_str body);

/* session: */
int agx_eio_session_new(struct agx_eio_server *sv, struct agx_eio_session **ret_session,
                        struct agx_error **err) AGX_MUST_CHECK;
bool agx_eio_session_on_websocket(const struct agx_eio_session *s);
/* The open packet's data. */
int agx_eio_session_hello(const struct agx_eio_session *s, bool upgrade,
                          struct agx_buf *out) AGX_MUST_CHECK;
void agx_eio_session_receive(struct agx_eio_session *s, const struct agx_eio_packet *p);
void agx_eio_session_set_get(struct agx_eio_session *s, struct agx_exchange *x);
/* For a leaving session: delivers its last packets and ends it. */
void agx_eio_session_last_words(struct agx_eio_session *s, struct agx_exchange *x);
/* Ends a session that is leaving. */
void agx_eio_session_finish(struct agx_eio_session *s);
/* Its link is active now: sends queued packets there. */
void agx_eio_session_upgraded(struct agx_eio_session *s);
/* An active link is empty again after it was slow. */
void agx_eio_session_drained(struct agx_eio_session *s);

/* link: takes over the exchange's connection, for `s`, in the given state. NULL: no memory; the
 * exchange still belongs to the caller. */
struct eio_link *agx_eio_link_new(struct agx_eio_session *s, struct agx_exchange *x,
                                  struct agx_str key, enum link_state state);
int agx_eio_link_send(struct eio_link *l, const struct agx_eio_packet *packet,
                      const struct agx_str *parts, size_t n_parts) AGX_MUST_CHECK;
/* Sends a close frame and ends the connection; it leaves its session. */
void agx_eio_link_close(struct eio_link *l, unsigned code, const char *reason);

#endif

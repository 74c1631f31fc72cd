/*
 * link.h: one connection to agentix-server, without I/O: the upgrade to WebSocket, Engine.IO, and
 * Socket.IO's CONNECT, then events both ways. session.h interprets the events.
 *
 *     HTTP --101--> OPEN --"0{...}"--> CONNECT --"40{...}"--> READY
 *
 * Any failure is final: the caller closes the socket and begins anew with agx_link_begin().
 */
#ifndef AGX_CLIENT_LINK_H
#define AGX_CLIENT_LINK_H

#include "base/siphash.h"
#include "codec/http1.h"
#include "codec/sio_assembler.h"
#include "codec/ws.h"
#include "codec/ws_handshake.h"

enum agx_link_state {
    AGX_LINK_IDLE,
    AGX_LINK_HTTP,    /* the upgrade was requested */
    AGX_LINK_OPEN,    /* waits for Engine.IO's open packet */
    AGX_LINK_CONNECT, /* waits for the answer to CONNECT */
    AGX_LINK_READY,
};

struct agx_link_event {
    bool connected;      /* CONNECT was answered with `data`, JSON; otherwise an event: */
    struct agx_str name; /* of the event */
    struct agx_str data; /* its only argument, an attachment. Valid until the next call */
};

struct agx_link {
    enum agx_link_state state;
    size_t max_message;
    struct agx_siphash_key seed; /* of masks and nonces */
    uint64_t drawn;              /* how many numbers were drawn from it */
    uint8_t nonce[AGX_WS_NONCE_SIZE];
    struct agx_http http;
    struct agx_ws ws;
    struct agx_sio_assembler assembler;
    struct agx_buf head; /* the answer to the upgrade, and what came with it */
    uint8_t *rest;       /* unread bytes in `head` */
    size_t rest_len;
    struct agx_buf hello; /* the auth map, until it is sent */
    struct agx_buf out;   /* bytes to send */
    size_t out_at;        /* sent bytes of `out` */
    uint64_t silence_ms;  /* the server sends something at least this often */
};

/* `seed` is random; `max_message` bounds a message in either direction. */
void agx_link_init(struct agx_link *l, struct agx_siphash_key seed, size_t max_message);
void agx_link_done(struct agx_link *l);

/* Resets the state and requests the upgrade on a new connection. `host`: the Host header. `hello`:
 * the auth map of CONNECT. */
int agx_link_begin(struct agx_link *l, struct agx_str host, struct agx_str token,
                   struct agx_str hello, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Takes bytes from *data, which it may change. 1: *ret is set, call again; 0: all bytes are
 * consumed; negative: the connection is unusable. -AGX_UNAUTHENTICATED, -AGX_NOT_FOUND and
 * -AGX_FAILED_PRECONDITION are permanent: a retry would fail too.
 */
int agx_link_read(struct agx_link *l, uint8_t **data, size_t *len, struct agx_link_event *ret,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Room for the next bytes of a large message, as agx_ws_want(). */
void agx_link_want(struct agx_link *l, uint8_t **ret_room, size_t *ret_len);
static inline void agx_link_filled(struct agx_link *l, size_t n)
{
    agx_ws_filled(&l->ws, n);
}

/* Appends one event with its payload. On failure nothing was appended. */
int agx_link_emit(struct agx_link *l, struct agx_str name, struct agx_str payload) AGX_MUST_CHECK;
/* Appends the goodbye of a client that leaves for good. */
int agx_link_goodbye(struct agx_link *l) AGX_MUST_CHECK;

/* The bytes to send; valid until the next call. */
static inline struct agx_str agx_link_pending(const struct agx_link *l)
{
    return agx_str_skip(agx_buf_peek(&l->out), l->out_at);
}
void agx_link_sent(struct agx_link *l, size_t n);

#endif

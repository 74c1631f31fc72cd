/*
 * ws.h: WebSocket frames (RFC 6455) without I/O, for servers and clients.
 *
 * Receiving. Bytes come in two ways, and any mix of them gives the same events:
 *
 *     while ((r = agx_ws_read(&ws, &p, &n, &event, &err)) > 0)     from the caller's read buffer
 *         handle(&event);
 *
 *     agx_ws_want(&ws, &room, &size);     the rest of a large message, straight to where it will
 *     n = read(fd, room, size);           stay: no copy. size 0: nothing large is under way
 *     agx_ws_filled(&ws, n);              (then agx_ws_read with no bytes gives the message)
 *
 * A message that lies whole in the caller's buffer is unmasked there and handed out as a view of
 * it. Memory follows the bytes that came, never the length that a header announces.
 *
 * Sending. Frames are appended to the caller's buffer, so that many leave with one system call. We
 * never fragment, and offer no extensions.
 *
 * We do not use wslay, because it masks byte by byte, keeps a message in its own chunks, and would
 * be one more library in the client extension.
 */
#ifndef AGX_CODEC_WS_H
#define AGX_CODEC_WS_H

#include "base/buf.h"

enum agx_ws_role {
    AGX_WS_SERVER, /* receives masked frames only, sends unmasked ones */
    AGX_WS_CLIENT, /* the reverse */
};

/* The values are the opcodes of the wire. */
enum agx_ws_kind {
    AGX_WS_TEXT = 1,
    AGX_WS_BINARY = 2,
    AGX_WS_CLOSE = 8,
    AGX_WS_PING = 9,
    AGX_WS_PONG = 10,
};

enum agx_ws_close_code {
    AGX_WS_NORMAL = 1000,
    AGX_WS_GOING_AWAY = 1001,
    AGX_WS_PROTOCOL_ERROR = 1002,
    AGX_WS_NO_CODE = 1005, /* a close frame without a code; never on the wire */
    AGX_WS_INVALID_TEXT = 1007,
    AGX_WS_POLICY = 1008,
    AGX_WS_TOO_BIG = 1009,
    AGX_WS_INTERNAL = 1011,
    AGX_WS_RESTART = 1012,
};

enum {
    AGX_WS_HEADER_MAX = 14,
    AGX_WS_CONTROL_MAX = 125, /* payload of ping, pong and close */
    AGX_WS_KEY_SIZE = 4,
};

struct agx_ws_event {
    enum agx_ws_kind kind;
    struct agx_str data; /* message or payload; of a close the reason. Valid until the next call */
    unsigned code;       /* of a close: the peer's code, or AGX_WS_NO_CODE */
};

struct agx_ws {
    enum agx_ws_role role;
    enum agx_ws_close_code fault; /* after an error: the code to close with */
    size_t max;                   /* bytes of one message */
    uint8_t header[AGX_WS_HEADER_MAX];
    uint8_t header_len; /* received bytes of it */
    uint8_t opcode;     /* of the current frame */
    uint8_t message;    /* kind of the current message, 0: none */
    bool fin, in_frame; /* in_frame: the header is complete, `left` bytes of payload follow */
    bool delivered;     /* `body` was handed out; the next call empties it */
    bool ended;         /* closed or failed: nothing more is read */
    uint8_t control_len;
    uint8_t small_run;            /* messages since the last large one; see KEEP_RUN in ws.c */
    uint8_t key[AGX_WS_KEY_SIZE]; /* rotated so that key[0] is for the next byte */
    uint64_t left;
    struct agx_buf body; /* the current message, unless it is a view */
    uint8_t control[AGX_WS_CONTROL_MAX];
};

/* A message of more than `message_max` bytes is refused (AGX_MESSAGE_MAX). */
void agx_ws_init(struct agx_ws *ws, enum agx_ws_role role, size_t message_max);
void agx_ws_done(struct agx_ws *ws);

/*
 * Takes bytes from *data (which it may change) and moves *data and *len past them. 1: *ret_event is
 * set, call again. 0: all bytes are used up; bytes after the peer's close are dropped. Negative:
 * close the connection with ws->fault; every further call fails in the same way.
 */
int agx_ws_read(struct agx_ws *ws, uint8_t **data, size_t *len, struct agx_ws_event *ret_event,
                struct agx_error **err) AGX_MUST_CHECK;

/* Room for the next bytes of a large message; *ret_len 0 when they should go through agx_ws_read.
 */
void agx_ws_want(struct agx_ws *ws, uint8_t **ret_room, size_t *ret_len);
/* The first `n` bytes of that room were filled. */
void agx_ws_filled(struct agx_ws *ws, size_t n);

/*
 * Writes the header of a whole frame with a payload of `len` bytes; returns its size. `key` is NULL
 * for a server; a client gives four random bytes and masks the payload with agx_ws_mask.
 */
size_t agx_ws_header(uint8_t out[AGX_WS_HEADER_MAX], enum agx_ws_kind kind, uint64_t len,
                     const uint8_t *key);

/* XORs `data` with the key; its own inverse. `offset`: number of payload bytes before `data`. */
void agx_ws_mask(uint8_t *data, size_t len, const uint8_t key[AGX_WS_KEY_SIZE], size_t offset);

/* Appends one whole frame. A control payload must have at most AGX_WS_CONTROL_MAX bytes. */
int agx_ws_append(struct agx_buf *out, enum agx_ws_kind kind, struct agx_str payload,
                  const uint8_t *key) AGX_MUST_CHECK;

/* Appends a close frame; the reason is cut to what fits. AGX_WS_NO_CODE: an empty one. */
int agx_ws_append_close(struct agx_buf *out, unsigned code, struct agx_str reason,
                        const uint8_t *key) AGX_MUST_CHECK;

#endif

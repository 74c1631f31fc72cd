/*
 * sio_wire.h: the client's end of a Socket.IO connection for fuzz targets: a WebSocket on a
 * socket that never blocks. What it receives must be well-formed.
 */
#ifndef AGX_TESTS_SIO_WIRE_H
#define AGX_TESTS_SIO_WIRE_H

#include "codec/mp_writer.h"
#include "codec/remote_call.h"
#include "codec/sio_assembler.h"
#include "codec/ws.h"
#include "tests/support/fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WIRE_MESSAGE_MAX = 1 << 17, WIRE_HEAD_MAX = 4096 };

struct sio_wire {
    int fd;       /* -1: closed */
    bool is_ws;   /* the answer to the upgrade has arrived */
    bool is_over; /* the server has closed it */
    struct agx_ws ws;
    struct agx_sio_assembler assembler;
    struct agx_buf head; /* of the answer to the upgrade, until it is complete */
    void (*on_message)(void *user, const struct agx_sio_message *m);
    void *user;
};

static const uint8_t sio_wire_key[AGX_WS_KEY_SIZE] = { 1, 2, 3, 4 };

/* Takes `fd`. */
static inline void sio_wire_open(struct sio_wire *w, int fd)
{
    static const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;

    w->fd = fd;
    w->is_ws = w->is_over = false;
    agx_ws_init(&w->ws, AGX_WS_CLIENT, WIRE_MESSAGE_MAX);
    agx_sio_assembler_init(&w->assembler, &limits);
    w->head = (struct agx_buf)AGX_BUF_INIT(WIRE_HEAD_MAX);
}

static inline void sio_wire_close(struct sio_wire *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    agx_ws_done(&w->ws);
    agx_sio_assembler_done(&w->assembler);
    agx_buf_done(&w->head);
}

static inline void sio_wire_event(struct sio_wire *w, const struct agx_ws_event *e)
{
    struct agx_eio_packet p = agx_eio_decode_binary(e->data);
    struct agx_sio_message m;
    int r;

    if (e->kind == AGX_WS_CLOSE)
        w->is_over = true;
    if (e->kind != AGX_WS_TEXT && e->kind != AGX_WS_BINARY)
        return;
    if (e->kind == AGX_WS_TEXT)
        FUZZ_CHECK(agx_eio_decode_text(e->data, &p, NULL) == 0);
    if (p.type != AGX_EIO_MESSAGE)
        return;
    r = agx_sio_assembler_feed(&w->assembler, &p, &m, NULL);
    FUZZ_CHECK(r >= 0);
    if (r > 0)
        w->on_message(w->user, &m);
}

/* Reads the answer to the upgrade; the bytes after it are WebSocket frames. */
static inline void sio_wire_head(struct sio_wire *w, uint8_t **data, size_t *len)
{
    while (*len > 0 && !w->is_ws) {
        FUZZ_CHECK(agx_buf_push(&w->head, *(*data)++) == 0);
        --*len;
        w->is_ws = w->head.len >= 4 && memcmp(w->head.data + w->head.len - 4, "\r\n\r\n", 4) == 0;
    }
    if (w->is_ws)
        FUZZ_CHECK(memcmp(w->head.data, "HTTP/1.1 101 ", 13) == 0);
}

/* Reads available bytes; false if there are none. */
static inline bool sio_wire_read(struct sio_wire *w)
{
    uint8_t buf[4096], *p = buf;
    ssize_t n = recv(w->fd, buf, sizeof(buf), 0);
    struct agx_ws_event e;
    size_t len;
    int r;

    if (n == 0)
        w->is_over = true;
    if (n <= 0)
        return false;
    len = (size_t)n;
    if (!w->is_ws)
        sio_wire_head(w, &p, &len);
    while ((r = agx_ws_read(&w->ws, &p, &len, &e, NULL)) > 0)
        sio_wire_event(w, &e);
    FUZZ_CHECK(r == 0);
    return true;
}

/* False if the socket did not accept all bytes. */
static inline bool sio_wire_send(struct sio_wire *w, struct agx_str s)
{
    return w->fd >= 0 && send(w->fd, s.ptr, s.len, MSG_NOSIGNAL) == (ssize_t)s.len;
}

/* Asks for a WebSocket; `headers` are further headers, each with its end of line. */
static inline bool sio_wire_upgrade(struct sio_wire *w, const char *headers)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(WIRE_HEAD_MAX);

    FUZZ_CHECK(agx_buf_printf(&b,
                              "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: x\r\n"
                              "Connection: Upgrade\r\nUpgrade: websocket\r\n%s"
                              "Sec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                              headers) == 0);
    return sio_wire_send(w, agx_buf_peek(&b));
}

static inline bool sio_wire_message(struct sio_wire *w, enum agx_ws_kind kind, struct agx_str s)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(WIRE_MESSAGE_MAX);

    FUZZ_CHECK(agx_ws_append(&b, kind, s, sio_wire_key) == 0);
    return sio_wire_send(w, agx_buf_peek(&b));
}

/* Sends an event: a name and one attachment. */
static inline bool sio_wire_emit(struct sio_wire *w, struct agx_str name, struct agx_str payload)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(256), b = AGX_BUF_INIT(WIRE_MESSAGE_MAX);

    FUZZ_CHECK(agx_buf_push(&text, '4') == 0);
    FUZZ_CHECK(agx_sio_encode_binary_event(&text, name) == 0);
    FUZZ_CHECK(agx_ws_append(&b, AGX_WS_TEXT, agx_buf_peek(&text), sio_wire_key) == 0);
    FUZZ_CHECK(agx_ws_append(&b, AGX_WS_BINARY, payload, sio_wire_key) == 0);
    return sio_wire_send(w, agx_buf_peek(&b));
}

/* Fields of a payload. */
static inline void sio_wire_put_str(struct agx_mp_writer *m, const char *name, const char *value)
{
    agx_mp_write_str(m, agx_str_from(name));
    agx_mp_write_str(m, agx_str_from(value));
}

static inline void sio_wire_put_uint(struct agx_mp_writer *m, const char *name, uint64_t value)
{
    agx_mp_write_str(m, agx_str_from(name));
    agx_mp_write_uint(m, value);
}

/* Whether it is the last event of its call. */
static inline bool sio_wire_is_terminal(enum agx_remote_event ev)
{
    return ev == AGX_EV_UNARY_RESULT || ev == AGX_EV_UNARY_ERROR || ev == AGX_EV_STREAM_END ||
           ev == AGX_EV_STREAM_ERROR || ev == AGX_EV_BIDI_END || ev == AGX_EV_BIDI_ERROR;
}

#endif

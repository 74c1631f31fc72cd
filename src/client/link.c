/* link.c: HTTP, WebSocket, Engine.IO and Socket.IO of one connection, in this order. */
#include "client/link.h"

#include "base/banned.h"
#include "codec/eio.h"
#include "codec/eio_open.h"
#include "codec/json_scan.h"

#include <inttypes.h>

enum {
    OUT_KEEP = 1 << 20,  /* memory that the queue keeps once it is empty */
    OUT_MOVE = 64 << 10, /* sent bytes at its front at which the rest is moved */
};

void agx_link_init(struct agx_link *l, struct agx_siphash_key seed, size_t max_message)
{
    struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;

    limits.bytes_max = max_message;
    *l = (struct agx_link){
        .seed = seed,
        .max_message = max_message,
        .head = AGX_BUF_INIT(2 * AGX_HTTP_HEAD_MAX),
        .hello = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX),
        .out = AGX_BUF_INIT(AGX_CLIENT_OUT_MAX),
    };
    agx_ws_init(&l->ws, AGX_WS_CLIENT, max_message);
    agx_sio_assembler_init(&l->assembler, &limits);
}

void agx_link_done(struct agx_link *l)
{
    agx_ws_done(&l->ws);
    agx_sio_assembler_done(&l->assembler);
    agx_buf_done(&l->head);
    agx_buf_done(&l->hello);
    agx_buf_done(&l->out);
}

/* A number that is unpredictable without the seed. */
static uint64_t draw(struct agx_link *l)
{
    uint64_t n = ++l->drawn;

    return agx_siphash(l->seed, agx_str_bytes(&n, sizeof(n)));
}

/* One frame, masked. */
static int put_frame(struct agx_link *l, enum agx_ws_kind kind, struct agx_str payload)
{
    uint64_t n = draw(l);
    uint8_t key[AGX_WS_KEY_SIZE];

    memcpy(key, &n, sizeof(key));
    return agx_ws_append(&l->out, kind, payload, key);
}

static int no_room(struct agx_error **err)
{
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "too much data is waiting to be sent");
}

static int put_request(struct agx_link *l, struct agx_str host, struct agx_str token)
{
    int r = agx_http_write_request(&l->out, AGX_STR("GET"),
                                   AGX_STR("/socket.io/?EIO=4&transport=websocket"));

    if (r == 0)
        r = agx_http_write_header(&l->out, AGX_STR("Host"), host);
    if (r == 0 && token.len > 0) {
        _cleanup_buf_ struct agx_buf value = AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);

        r = agx_buf_append(&value, AGX_STR("Bearer "));
        if (r == 0)
            r = agx_buf_append(&value, token);
        if (r == 0)
            r = agx_http_write_header(&l->out, AGX_STR("Authorization"), agx_buf_peek(&value));
    }
    if (r == 0)
        r = agx_ws_write_upgrade(&l->out, l->nonce);
    return r < 0 ? r : agx_http_write_end(&l->out);
}

int agx_link_begin(struct agx_link *l, struct agx_str host, struct agx_str token,
                   struct agx_str hello, struct agx_error **err)
{
    struct agx_siphash_key seed = l->seed;
    size_t max_message = l->max_message;
    uint64_t drawn = l->drawn, half;
    int r;

    agx_link_done(l);
    agx_link_init(l, seed, max_message);
    l->drawn = drawn;
    for (size_t i = 0; i < AGX_WS_NONCE_SIZE; i += sizeof(half)) {
        half = draw(l);
        memcpy(l->nonce + i, &half, sizeof(half));
    }
    agx_http_init(&l->http, AGX_HTTP_CLIENT, AGX_HTTP_HEAD_MAX, UINT64_MAX);
    r = agx_buf_append(&l->hello, hello);
    if (r == 0)
        r = put_request(l, host, token);
    if (r == -AGX_INVALID_ARGUMENT)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the host or the token is not valid in an HTTP header");
    if (r < 0)
        return no_room(err);
    l->state = AGX_LINK_HTTP;
    return 0;
}

static int refused(const struct agx_http_head *head, struct agx_error **err)
{
    const char *reason = agx_http_reason(head->status);

    switch (head->status) {
    case 401:
    case 403:
        return agx_error_set(err, AGX_UNAUTHENTICATED, "the server refused the token (%u %s)",
                             head->status, reason);
    case 404:
    case 405:
        return agx_error_set(err, AGX_NOT_FOUND,
                             "the server has no runtime at this address (%u %s)", head->status,
                             reason);
    default:
        return agx_error_set(err, AGX_UNAVAILABLE, "the server answered %u %s", head->status,
                             reason);
    }
}

/* 1 when the WebSocket is established. */
static int read_answer(struct agx_link *l, uint8_t **data, size_t *len, struct agx_error **err)
{
    struct agx_http_head head;
    size_t used = 0;
    int r = agx_buf_append(&l->head, agx_str_bytes(*data, *len));

    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "the answer's head is too long");
    *data += *len;
    *len = 0;
    r = agx_http_read_head(&l->http, agx_buf_peek(&l->head), &used, &head, err);
    if (r <= 0)
        return r;
    if (head.status != 101)
        return refused(&head, err);
    r = agx_ws_check_answer(&head, l->nonce, err);
    if (r < 0)
        return r;
    l->rest = l->head.data + used;
    l->rest_len = l->head.len - used;
    l->state = AGX_LINK_OPEN;
    return 1;
}

static int on_open(struct agx_link *l, struct agx_str json, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(2 * AGX_HTTP_HEAD_MAX);
    struct agx_eio_open open;
    int r;

    if (l->state != AGX_LINK_OPEN)
        return agx_error_set(err, AGX_INTERNAL, "the server opened its session twice");
    r = agx_eio_open_decode(json, &open, err);
    if (r < 0)
        return r;
    l->silence_ms = (uint64_t)open.ping_interval_ms + open.ping_timeout_ms;
    if (agx_buf_append(&text, AGX_STR("40")) < 0 ||
        agx_buf_append(&text, agx_buf_peek(&l->hello)) < 0 ||
        put_frame(l, AGX_WS_TEXT, agx_buf_peek(&text)) < 0)
        return no_room(err);
    l->state = AGX_LINK_CONNECT;
    return 0;
}

/* The server's text in {"message":"..."}; empty if none. */
static struct agx_str message_of(struct agx_str json)
{
    struct agx_json_token t;
    struct agx_json_scan s;

    agx_json_scan_init(&s, json, AGX_DEPTH_MAX);
    if (agx_json_scan_next(&s, &t, NULL) < 0 || t.kind != AGX_JSON_OBJECT)
        return AGX_STR("");
    while (agx_json_scan_next(&s, &t, NULL) == 0 && t.kind == AGX_JSON_KEY) {
        bool wanted = agx_str_eq(t.raw, AGX_STR("\"message\""));

        if (agx_json_scan_value(&s, &t, NULL) < 0)
            break;
        if (wanted && t.kind == AGX_JSON_STRING)
            return agx_json_token_inner(&t);
    }
    return AGX_STR("");
}

static int on_message(struct agx_link *l, const struct agx_sio_message *m,
                      struct agx_link_event *ret, struct agx_error **err)
{
    if (!agx_str_eq(m->packet.nsp, AGX_STR("/")))
        return 0;
    if (m->packet.type == AGX_SIO_CONNECT && l->state == AGX_LINK_CONNECT) {
        l->state = AGX_LINK_READY;
        *ret = (struct agx_link_event){ .connected = true, .data = m->packet.data };
        return 1;
    }
    if (m->packet.type == AGX_SIO_CONNECT_ERROR) {
        struct agx_str why = message_of(m->packet.data);

        return agx_error_set(err, AGX_UNAUTHENTICATED, "the server refused the connection: '%.*s'",
                             (int)AGX_MIN(why.len, 200), why.ptr);
    }
    if (m->packet.type == AGX_SIO_DISCONNECT)
        return agx_error_set(err, AGX_UNAVAILABLE, "the server ended the connection");
    if (l->state != AGX_LINK_READY || !agx_sio_is_event(m->packet.type) || !m->sole)
        return 0;
    *ret = (struct agx_link_event){ .name = m->name, .data = m->sole->bytes };
    return 1;
}

static int on_packet(struct agx_link *l, const struct agx_eio_packet *p, struct agx_link_event *ret,
                     struct agx_error **err)
{
    struct agx_sio_message m;
    int r;

    switch (p->type) {
    case AGX_EIO_OPEN:
        return on_open(l, p->data, err);
    case AGX_EIO_PING:
        return put_frame(l, AGX_WS_TEXT, AGX_STR("3")) < 0 ? no_room(err) : 0;
    case AGX_EIO_CLOSE:
        return agx_error_set(err, AGX_UNAVAILABLE, "the server closed the session");
    case AGX_EIO_MESSAGE:
        if (l->state < AGX_LINK_CONNECT)
            return agx_error_set(err, AGX_INTERNAL, "the server sent a message before its session");
        r = agx_sio_assembler_feed(&l->assembler, p, &m, err);
        return r <= 0 ? r : on_message(l, &m, ret, err);
    default:
        return 0;
    }
}

static int on_frame(struct agx_link *l, const struct agx_ws_event *e, struct agx_link_event *ret,
                    struct agx_error **err)
{
    struct agx_eio_packet p;
    int r = 0;

    switch (e->kind) {
    case AGX_WS_TEXT:
        r = agx_eio_decode_text(e->data, &p, err);
        return r < 0 ? r : on_packet(l, &p, ret, err);
    case AGX_WS_BINARY:
        p = agx_eio_decode_binary(e->data);
        return on_packet(l, &p, ret, err);
    case AGX_WS_PING:
        return put_frame(l, AGX_WS_PONG, e->data) < 0 ? no_room(err) : 0;
    case AGX_WS_CLOSE:
        return agx_error_set(err, AGX_UNAVAILABLE, "the server closed the connection (%u%s%.*s)",
                             e->code, e->data.len > 0 ? ": " : "", AGX_STR_ARG(e->data));
    default:
        return 0;
    }
}

int agx_link_read(struct agx_link *l, uint8_t **data, size_t *len, struct agx_link_event *ret,
                  struct agx_error **err)
{
    struct agx_ws_event e;
    int r;

    if (l->state == AGX_LINK_HTTP) {
        r = read_answer(l, data, len, err);
        if (r <= 0)
            return r;
    }
    for (;;) {
        bool from_rest = l->rest_len > 0;

        r = agx_ws_read(&l->ws, from_rest ? &l->rest : data, from_rest ? &l->rest_len : len, &e,
                        err);
        if (r == 0 && from_rest)
            continue;
        if (r <= 0)
            return r;
        r = on_frame(l, &e, ret, err);
        if (r != 0)
            return r;
    }
}

void agx_link_want(struct agx_link *l, uint8_t **ret_room, size_t *ret_len)
{
    *ret_room = NULL;
    *ret_len = 0;
    if (l->state >= AGX_LINK_OPEN && l->rest_len == 0)
        agx_ws_want(&l->ws, ret_room, ret_len);
}

int agx_link_emit(struct agx_link *l, struct agx_str name, struct agx_str payload)
{
    uint8_t bytes[128];
    struct agx_buf text = { .data = bytes, .cap = sizeof(bytes), .max = sizeof(bytes) };
    size_t start = l->out.len;
    int r = agx_buf_push(&text, '4');

    if (r == 0)
        r = agx_sio_encode_binary_event(&text, name);
    if (r == 0)
        r = put_frame(l, AGX_WS_TEXT, agx_buf_peek(&text));
    if (r == 0)
        r = put_frame(l, AGX_WS_BINARY, payload);
    if (r < 0)
        l->out.len = start;
    return r;
}

int agx_link_goodbye(struct agx_link *l)
{
    static const uint8_t key[AGX_WS_KEY_SIZE] = { 0 };
    int r = 0;

    if (l->state == AGX_LINK_READY)
        r = put_frame(l, AGX_WS_TEXT, AGX_STR("41"));
    if (r == 0 && l->state >= AGX_LINK_OPEN)
        r = agx_ws_append_close(&l->out, AGX_WS_NORMAL, AGX_STR(""), key);
    return r;
}

void agx_link_sent(struct agx_link *l, size_t n)
{
    l->out_at += n;
    if (l->out_at < l->out.len) {
        if (l->out_at >= OUT_MOVE && l->out_at >= l->out.len / 2) {
            agx_buf_consume(&l->out, l->out_at);
            l->out_at = 0;
        }
        return;
    }
    l->out_at = 0;
    agx_buf_clear(&l->out);
    if (l->out.cap > OUT_KEEP)
        agx_buf_done(&l->out);
}

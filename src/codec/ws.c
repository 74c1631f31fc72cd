/*
 * ws.c: WebSocket frames.
 *
 * A reader is between frames (in_frame false, `header` fills) or inside one (`left` payload bytes
 * to come). Invariants:
 *  (1) control frames never touch `body`, so they may stand between the fragments of a message;
 *  (2) the bytes in `body` are unmasked;
 *  (3) body.len + left <= max for a data frame: checked when the header is complete, so that no
 *      byte of a message that is too big is ever stored;
 *  (4) the capacity of `body` is at most twice what has come, plus FIRST_ROOM.
 */
#include "codec/ws.h"

#include "base/banned.h"
#include "base/utf8.h"

enum {
    OP_CONTINUATION = 0,
    FIRST_ROOM = 64 << 10, /* least room for a message that comes in pieces: a usual socket read */
    KEEP_ROOM = 64 << 10,  /* kept between messages in any case */
    KEEP_MOST = 2 << 20,   /* kept between large messages: new pages cost more than copying */
    KEEP_RUN = 16,         /* `body` is freed after so many small messages in a row */
};

void agx_ws_init(struct agx_ws *ws, enum agx_ws_role role, size_t message_max)
{
    *ws = (struct agx_ws){ .role = role, .max = message_max, .body = AGX_BUF_INIT(message_max) };
}

void agx_ws_done(struct agx_ws *ws)
{
    if (ws)
        agx_buf_done(&ws->body);
}

static int ws_fail(struct agx_ws *ws, enum agx_ws_close_code fault, struct agx_error **err,
                   const char *what)
{
    enum agx_code code = fault == AGX_WS_TOO_BIG || fault == AGX_WS_INTERNAL
                             ? AGX_RESOURCE_EXHAUSTED
                             : AGX_INVALID_ARGUMENT;

    ws->fault = fault;
    ws->ended = true;
    return agx_error_set(err, code, "websocket: %s", what);
}

/* Sixteen bytes at a time. A vector, not an array of words: gcc keeps an array's copy on the stack,
 * and those stores cost half the speed. */
typedef uint64_t mask_vector __attribute__((vector_size(16)));

static void mask_words(uint8_t *data, size_t len, const uint8_t key[AGX_WS_KEY_SIZE])
{
    mask_vector k, v;
    size_t i = 0;

    for (size_t j = 0; j < sizeof(k); j += AGX_WS_KEY_SIZE)
        memcpy((uint8_t *)&k + j, key, AGX_WS_KEY_SIZE);
    for (; len - i >= sizeof(v); i += sizeof(v)) {
        memcpy(&v, data + i, sizeof(v));
        v ^= k;
        memcpy(data + i, &v, sizeof(v));
    }
    for (; i < len; i++)
        data[i] ^= key[i % AGX_WS_KEY_SIZE];
}

static void turn_key(uint8_t key[AGX_WS_KEY_SIZE], size_t by)
{
    uint8_t k[AGX_WS_KEY_SIZE];

    for (size_t i = 0; i < AGX_WS_KEY_SIZE; i++)
        k[i] = key[(i + by) % AGX_WS_KEY_SIZE];
    memcpy(key, k, sizeof(k));
}

void agx_ws_mask(uint8_t *data, size_t len, const uint8_t key[AGX_WS_KEY_SIZE], size_t offset)
{
    uint8_t k[AGX_WS_KEY_SIZE];

    memcpy(k, key, sizeof(k));
    turn_key(k, offset);
    mask_words(data, len, k);
}

/* Unmasks the next `len` payload bytes of the frame in place, and counts them. */
static void unmask_next(struct agx_ws *ws, uint8_t *data, size_t len)
{
    ws->left -= len;
    if (ws->role != AGX_WS_SERVER)
        return;
    mask_words(data, len, ws->key);
    turn_key(ws->key, len);
}

/* Size of the header as far as known: 2 until its second byte has come. */
static size_t header_size(const struct agx_ws *ws)
{
    unsigned n;

    if (ws->header_len < 2)
        return 2;
    n = ws->header[1] & 0x7f;
    return 2u + (n == 126 ? 2u : n == 127 ? 8u : 0u) + (ws->header[1] & 0x80 ? 4u : 0u);
}

static int check_control(struct agx_ws *ws, struct agx_error **err)
{
    if (!ws->fin)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a control frame is fragmented");
    if (ws->left > AGX_WS_CONTROL_MAX)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a control frame is longer than 125 bytes");
    ws->control_len = 0;
    return 0;
}

static int check_data(struct agx_ws *ws, struct agx_error **err)
{
    if (ws->opcode == OP_CONTINUATION && !ws->message)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a continuation without a message");
    if (ws->opcode != OP_CONTINUATION && ws->message)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a new message inside a fragmented one");
    if (ws->left > ws->max - ws->body.len) {
        ws->fault = AGX_WS_TOO_BIG;
        ws->ended = true;
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "websocket: a message is longer than %zu bytes", ws->max);
    }
    if (ws->opcode != OP_CONTINUATION)
        ws->message = ws->opcode;
    return 0;
}

/* The payload length in its shortest form, as the RFC demands. */
static int header_length(struct agx_ws *ws, size_t *ret_key_at, struct agx_error **err)
{
    unsigned n = ws->header[1] & 0x7f, bytes = n == 126 ? 2 : n == 127 ? 8 : 0;

    ws->left = bytes ? 0 : n;
    for (unsigned i = 0; i < bytes; i++)
        ws->left = ws->left << 8 | ws->header[2 + i];
    if ((bytes == 2 && ws->left < 126) || (bytes == 8 && ws->left <= UINT16_MAX))
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a length is not in its shortest form");
    if (ws->left > INT64_MAX)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a length has its top bit set");
    *ret_key_at = 2 + bytes;
    return 0;
}

static int header_complete(struct agx_ws *ws, struct agx_error **err)
{
    bool masked = ws->header[1] & 0x80;
    size_t key_at = 0;
    int r;

    if (ws->header[0] & 0x70)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "reserved bits are set");
    if (masked != (ws->role == AGX_WS_SERVER))
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err,
                       masked ? "a server's frame is masked" : "a client's frame is not masked");
    r = header_length(ws, &key_at, err);
    if (r < 0)
        return r;
    ws->fin = ws->header[0] & 0x80;
    ws->opcode = ws->header[0] & 0x0f;
    if (masked)
        memcpy(ws->key, ws->header + key_at, sizeof(ws->key));
    ws->header_len = 0;
    ws->in_frame = true;
    if (ws->opcode <= AGX_WS_BINARY)
        return check_data(ws, err);
    if (ws->opcode >= AGX_WS_CLOSE && ws->opcode <= AGX_WS_PONG)
        return check_control(ws, err);
    return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "an opcode is reserved");
}

/* Reads header bytes. True when the header is complete. */
static bool fill_header(struct agx_ws *ws, uint8_t **data, size_t *len)
{
    for (;;) {
        size_t need = header_size(ws) - ws->header_len, n = AGX_MIN(need, *len);

        memcpy(ws->header + ws->header_len, *data, n);
        ws->header_len = (uint8_t)(ws->header_len + n);
        *data += n;
        *len -= n;
        if (ws->header_len == header_size(ws))
            return true;
        if (*len == 0)
            return false;
    }
}

static bool close_code_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static int end_control(struct agx_ws *ws, struct agx_ws_event *ret, struct agx_error **err)
{
    struct agx_str data = agx_str_bytes(ws->control, ws->control_len);

    ws->in_frame = false;
    *ret = (struct agx_ws_event){ (enum agx_ws_kind)ws->opcode, data, 0 };
    if (ws->opcode != AGX_WS_CLOSE)
        return 1;
    ret->code = AGX_WS_NO_CODE;
    if (data.len == 1)
        return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a close frame has half a code");
    if (data.len >= 2) {
        ret->code = (unsigned)ws->control[0] << 8 | ws->control[1];
        ret->data = agx_str_skip(data, 2);
        if (!close_code_valid(ret->code))
            return ws_fail(ws, AGX_WS_PROTOCOL_ERROR, err, "a close code is not allowed");
        if (!agx_utf8_valid(ret->data))
            return ws_fail(ws, AGX_WS_INVALID_TEXT, err, "a close reason is not UTF-8");
    }
    ws->ended = true;
    return 1;
}

/* The last byte of a data frame has come. `view`: the message, if it is not in `body`. */
static int end_data(struct agx_ws *ws, struct agx_str view, struct agx_ws_event *ret,
                    struct agx_error **err)
{
    ws->in_frame = false;
    if (!ws->fin)
        return 0;
    *ret = (struct agx_ws_event){ (enum agx_ws_kind)ws->message,
                                  view.ptr ? view : agx_buf_peek(&ws->body), 0 };
    ws->message = 0;
    ws->delivered = true;
    if (ret->kind == AGX_WS_TEXT && !agx_utf8_valid(ret->data))
        return ws_fail(ws, AGX_WS_INVALID_TEXT, err, "a text message is not UTF-8");
    return 1;
}

static void forget_delivered(struct agx_ws *ws)
{
    ws->delivered = false;
    ws->small_run = ws->body.len > KEEP_ROOM ? 0 : (uint8_t)AGX_MIN(ws->small_run + 1, KEEP_RUN);
    agx_buf_clear(&ws->body);
    if (ws->body.cap > KEEP_MOST || (ws->body.cap > KEEP_ROOM && ws->small_run == KEEP_RUN))
        agx_buf_done(&ws->body);
}

static int read_control(struct agx_ws *ws, uint8_t **data, size_t *len, struct agx_ws_event *ret,
                        struct agx_error **err)
{
    size_t n = AGX_MIN(ws->left, *len);

    if (n > 0) {
        memcpy(ws->control + ws->control_len, *data, n);
        unmask_next(ws, ws->control + ws->control_len, n);
        ws->control_len = (uint8_t)(ws->control_len + n);
        *data += n;
        *len -= n;
    }
    return ws->left == 0 ? end_control(ws, ret, err) : 0;
}

static int read_data(struct agx_ws *ws, uint8_t **data, size_t *len, struct agx_ws_event *ret,
                     struct agx_error **err)
{
    size_t n = AGX_MIN(ws->left, *len);
    uint8_t *at = *data;

    if (n > 0) {
        *data += n;
        *len -= n;
        unmask_next(ws, at, n);
    }
    if (ws->left == 0 && ws->fin && ws->body.len == 0)
        return end_data(ws, agx_str_bytes(at, n), ret, err);
    if (agx_buf_append(&ws->body, agx_str_bytes(at, n)) < 0)
        return ws_fail(ws, AGX_WS_INTERNAL, err, "no memory for a message");
    return ws->left == 0 ? end_data(ws, (struct agx_str){ 0 }, ret, err) : 0;
}

int agx_ws_read(struct agx_ws *ws, uint8_t **data, size_t *len, struct agx_ws_event *ret_event,
                struct agx_error **err)
{
    if (ws->delivered)
        forget_delivered(ws);
    if (ws->fault)
        return ws_fail(ws, ws->fault, err, "the connection has failed before");
    if (ws->ended)
        *len = 0;
    /* agx_ws_filled may have completed a frame, so a frame without missing bytes is handled too. */
    while (*len > 0 || (ws->in_frame && ws->left == 0)) {
        int r = 0;

        if (!ws->in_frame) {
            if (!fill_header(ws, data, len))
                return 0;
            r = header_complete(ws, err);
        } else if (ws->opcode >= AGX_WS_CLOSE) {
            r = read_control(ws, data, len, ret_event, err);
        } else {
            r = read_data(ws, data, len, ret_event, err);
        }
        if (r != 0)
            return r;
    }
    return 0;
}

void agx_ws_want(struct agx_ws *ws, uint8_t **ret_room, size_t *ret_len)
{
    size_t n;

    *ret_room = NULL;
    *ret_len = 0;
    if (!ws->in_frame || ws->left == 0 || ws->opcode >= AGX_WS_CLOSE || ws->delivered || ws->ended)
        return;
    /* Fills the allocated memory first, then doubles it: invariant 4. */
    n = ws->body.cap - ws->body.len;
    if (n < FIRST_ROOM / 2)
        n = AGX_MAX(ws->body.len, (size_t)FIRST_ROOM);
    if (n > ws->left)
        n = ws->left;
    /* Without memory the bytes go through agx_ws_read, which reports it. */
    if (agx_buf_reserve(&ws->body, n) < 0)
        return;
    *ret_room = ws->body.data + ws->body.len;
    *ret_len = n;
}

void agx_ws_filled(struct agx_ws *ws, size_t n)
{
    unmask_next(ws, ws->body.data + ws->body.len, n);
    ws->body.len += n;
}

size_t agx_ws_header(uint8_t out[AGX_WS_HEADER_MAX], enum agx_ws_kind kind, uint64_t len,
                     const uint8_t *key)
{
    unsigned bytes = len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;
    size_t n = 2;

    out[0] = (uint8_t)(0x80 | kind);
    out[1] = (uint8_t)((key ? 0x80 : 0) | (bytes == 0 ? len : bytes == 2 ? 126 : 127));
    for (unsigned i = bytes; i > 0; i--)
        out[n++] = (uint8_t)(len >> (8 * (i - 1)));
    if (key) {
        memcpy(out + n, key, AGX_WS_KEY_SIZE);
        n += AGX_WS_KEY_SIZE;
    }
    return n;
}

int agx_ws_append(struct agx_buf *out, enum agx_ws_kind kind, struct agx_str payload,
                  const uint8_t *key)
{
    int r;

    if (kind >= AGX_WS_CLOSE && payload.len > AGX_WS_CONTROL_MAX)
        return -AGX_INVALID_ARGUMENT;
    if (payload.len > SIZE_MAX - AGX_WS_HEADER_MAX)
        return -AGX_RESOURCE_EXHAUSTED;
    r = agx_buf_reserve(out, AGX_WS_HEADER_MAX + payload.len);
    if (r < 0)
        return r;
    out->len += agx_ws_header(out->data + out->len, kind, payload.len, key);
    if (payload.len > 0)
        memcpy(out->data + out->len, payload.ptr, payload.len);
    if (key)
        mask_words(out->data + out->len, payload.len, key);
    out->len += payload.len;
    return 0;
}

/* The longest prefix of at most `max` bytes that does not split a character. */
static size_t cut_text(struct agx_str s, size_t max)
{
    size_t n = AGX_MIN(s.len, max);

    while (n > 0 && n < s.len && ((unsigned char)s.ptr[n] & 0xc0) == 0x80)
        n--;
    return n;
}

int agx_ws_append_close(struct agx_buf *out, unsigned code, struct agx_str reason,
                        const uint8_t *key)
{
    uint8_t payload[AGX_WS_CONTROL_MAX] = { (uint8_t)(code >> 8), (uint8_t)code };
    size_t n = cut_text(reason, sizeof(payload) - 2);

    if (code == AGX_WS_NO_CODE)
        return agx_ws_append(out, AGX_WS_CLOSE, (struct agx_str){ 0 }, key);
    if (n > 0)
        memcpy(payload + 2, reason.ptr, n);
    return agx_ws_append(out, AGX_WS_CLOSE, agx_str_bytes(payload, n + 2), key);
}

/* sio.c: Socket.IO packets. */
#include "codec/sio.h"

#include "base/banned.h"
#include "base/utf8.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

static const char *const type_names[] = {
    [AGX_SIO_CONNECT] = "connect",
    [AGX_SIO_DISCONNECT] = "disconnect",
    [AGX_SIO_EVENT] = "event",
    [AGX_SIO_ACK] = "ack",
    [AGX_SIO_CONNECT_ERROR] = "connect error",
    [AGX_SIO_BINARY_EVENT] = "binary event",
    [AGX_SIO_BINARY_ACK] = "binary ack",
};

const char *agx_sio_type_name(enum agx_sio_type type)
{
    return (size_t)type < AGX_ARRAY_LEN(type_names) ? type_names[type] : "unknown";
}

static int sio_malformed(enum agx_sio_type type, const char *what, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "Socket.IO %s packet: %s",
                         agx_sio_type_name(type), what);
}

/* Takes the digits at the front of *rest. False: no digits, a leading zero, or a number over `max`.
 */
static bool take_number(struct agx_str *rest, uint64_t max, uint64_t *ret)
{
    size_t n = 0;

    while (n < rest->len && rest->ptr[n] >= '0' && rest->ptr[n] <= '9')
        n++;
    if (n > 1 && rest->ptr[0] == '0')
        return false;
    if (!agx_parse_u64((struct agx_str){ rest->ptr, n }, max, ret))
        return false;
    *rest = agx_str_skip(*rest, n);
    return true;
}

static int take_attachments(struct agx_str *rest, const struct agx_sio_limits *limits,
                            struct agx_sio_packet *p, struct agx_error **err)
{
    uint64_t n = 0;

    if (!agx_sio_is_binary(p->type))
        return 0;
    if (!take_number(rest, SIZE_MAX, &n) || rest->len == 0 || rest->ptr[0] != '-')
        return sio_malformed(p->type, "bad number of attachments", err);
    if (n > limits->attachments_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "Socket.IO packet has %llu attachments, more than %zu",
                             (unsigned long long)n, limits->attachments_max);
    *rest = agx_str_skip(*rest, 1);
    p->attachments = (size_t)n;
    return 0;
}

/* The namespace ends at a comma, or with the packet. */
static int take_namespace(struct agx_str *rest, struct agx_sio_packet *p, struct agx_error **err)
{
    size_t n;

    p->nsp = AGX_STR("/");
    if (rest->len == 0 || rest->ptr[0] != '/')
        return 0;
    n = agx_str_find(*rest, ',');
    p->nsp = (struct agx_str){ rest->ptr, n };
    if (!agx_utf8_valid(p->nsp))
        return sio_malformed(p->type, "namespace is not UTF-8", err);
    *rest = agx_str_skip(*rest, n < rest->len ? n + 1 : n);
    return 0;
}

static int take_id(struct agx_str *rest, struct agx_sio_packet *p, struct agx_error **err)
{
    bool ack = p->type == AGX_SIO_ACK || p->type == AGX_SIO_BINARY_ACK;

    if (rest->len == 0 || rest->ptr[0] < '0' || rest->ptr[0] > '9')
        return ack ? sio_malformed(p->type, "no ack id", err) : 0;
    if (!ack && !agx_sio_is_event(p->type))
        return sio_malformed(p->type, "unexpected ack id", err);
    if (!take_number(rest, UINT64_MAX, &p->id))
        return sio_malformed(p->type, "bad ack id", err);
    p->has_id = true;
    return 0;
}

/* An event's data begins with its name: a string, or (the protocol allows it) a number. */
static int check_name(struct agx_str array, enum agx_sio_type type, struct agx_error **err)
{
    struct agx_json_scan s;
    struct agx_json_token t;
    int r;

    agx_json_scan_init(&s, array, 1);
    r = agx_json_scan_next(&s, &t, err);
    if (r == 0)
        r = agx_json_scan_value(&s, &t, NULL);
    if (r < 0 || (t.kind != AGX_JSON_STRING && t.kind != AGX_JSON_NUMBER))
        return sio_malformed(type, "data must begin with the event's name", err);
    return 0;
}

static int check_shape(const struct agx_sio_packet *p, enum agx_json_kind kind,
                       struct agx_error **err)
{
    switch (p->type) {
    case AGX_SIO_CONNECT:
        return kind == AGX_JSON_OBJECT ? 0 : sio_malformed(p->type, "data must be an object", err);
    case AGX_SIO_DISCONNECT:
        return sio_malformed(p->type, "unexpected data", err);
    case AGX_SIO_CONNECT_ERROR:
        if (kind != AGX_JSON_OBJECT && kind != AGX_JSON_STRING)
            return sio_malformed(p->type, "data must be an object or a string", err);
        return 0;
    case AGX_SIO_EVENT:
    case AGX_SIO_BINARY_EVENT:
        if (kind != AGX_JSON_ARRAY)
            return sio_malformed(p->type, "data must be an array", err);
        return check_name(p->data, p->type, err);
    case AGX_SIO_ACK:
    case AGX_SIO_BINARY_ACK:
        return kind == AGX_JSON_ARRAY ? 0 : sio_malformed(p->type, "data must be an array", err);
    }
    return 0;
}

static int check_data(const struct agx_sio_packet *p, unsigned depth_max, struct agx_error **err)
{
    struct agx_json_token t;
    int r;

    if (p->data.len == 0) {
        if (p->type == AGX_SIO_CONNECT || p->type == AGX_SIO_DISCONNECT)
            return 0;
        return sio_malformed(p->type, "no data", err);
    }
    r = agx_json_scan_whole(p->data, depth_max, &t, err);
    if (r < 0)
        return agx_error_wrap(err, r, "Socket.IO %s packet", agx_sio_type_name(p->type));
    return check_shape(p, t.kind, err);
}

int agx_sio_decode(struct agx_str text, const struct agx_sio_limits *limits,
                   struct agx_sio_packet *ret, struct agx_error **err)
{
    struct agx_sio_packet p = { .has_id = false };
    struct agx_str rest = text;
    int r;

    if (text.len > limits->header_max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "Socket.IO packet of %zu bytes is over the limit of %zu", text.len,
                             limits->header_max);
    if (text.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "empty Socket.IO packet");
    if (text.ptr[0] < '0' || text.ptr[0] > '0' + AGX_SIO_BINARY_ACK)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "unknown Socket.IO packet type 0x%02x",
                             (unsigned char)text.ptr[0]);
    p.type = (enum agx_sio_type)(text.ptr[0] - '0');
    rest = agx_str_skip(text, 1);
    r = take_attachments(&rest, limits, &p, err);
    if (r == 0)
        r = take_namespace(&rest, &p, err);
    if (r == 0)
        r = take_id(&rest, &p, err);
    if (r < 0)
        return r;
    p.data = rest;
    r = check_data(&p, limits->depth_max, err);
    if (r == 0)
        *ret = p;
    return r;
}

int agx_sio_encode(struct agx_buf *out, const struct agx_sio_packet *p)
{
    size_t start = out->len;
    int r = agx_buf_push(out, (uint8_t)('0' + p->type));

    if (r == 0 && agx_sio_is_binary(p->type))
        r = agx_buf_printf(out, "%zu-", p->attachments);
    if (r == 0 && p->nsp.len > 0 && !agx_str_eq(p->nsp, AGX_STR("/"))) {
        r = agx_buf_append(out, p->nsp);
        if (r == 0)
            r = agx_buf_push(out, ',');
    }
    if (r == 0 && p->has_id)
        r = agx_buf_printf(out, "%llu", (unsigned long long)p->id);
    if (r == 0)
        r = agx_buf_append(out, p->data);
    if (r < 0)
        out->len = start;
    return r;
}

#define BINARY_EVENT_HEAD "51-["
#define BINARY_EVENT_TAIL ",{\"_placeholder\":true,\"num\":0}]"

int agx_sio_encode_binary_event(struct agx_buf *out, struct agx_str name)
{
    size_t start = out->len;
    int r = agx_buf_append(out, AGX_STR(BINARY_EVENT_HEAD));

    if (r == 0)
        r = agx_json_text_quote(out, name);
    if (r == 0)
        r = agx_buf_append(out, AGX_STR(BINARY_EVENT_TAIL));
    if (r < 0)
        out->len = start;
    return r;
}

bool agx_sio_decode_binary_event(struct agx_str text, struct agx_str *ret_name)
{
    const struct agx_str head = AGX_STR(BINARY_EVENT_HEAD "\""),
                         tail = AGX_STR("\"" BINARY_EVENT_TAIL);
    struct agx_str name;

    if (text.len < head.len + tail.len || !agx_str_starts(text, head) ||
        memcmp(text.ptr + text.len - tail.len, tail.ptr, tail.len) != 0)
        return false;
    name = (struct agx_str){ text.ptr + head.len, text.len - head.len - tail.len };
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (c < 0x20 || c == '"' || c == '\\')
            return false;
    }
    *ret_name = name;
    return true;
}

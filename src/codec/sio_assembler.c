/*
 * sio_assembler.c: a header, then its attachments, then a message.
 *
 *     empty --binary header--> waiting --last attachment--> empty
 *       |                         |                           |
 *       +-- any other text -------+-- text: error             +-- yields the message
 *
 * Invariants:
 *  (1) while waiting, `message` has views of `header` and `name` only, never of the caller's bytes,
 *      because those are gone when the attachments come;
 *  (2) attachments are copied to `bytes`, except the last one: it arrives in the call that yields
 *      the message, so a single attachment (all our events have one) costs no copy;
 *  (3) memory is kept for the next message, unless the last one was unusually large.
 */
#include "codec/sio_assembler.h"

#include "base/banned.h"
#include "codec/json_text.h"

/* Bytes that each buffer of an idle session may keep for the next message. */
enum { KEEP_MAX = 64 << 10 };

void agx_sio_assembler_init(struct agx_sio_assembler *a, const struct agx_sio_limits *limits)
{
    *a = (struct agx_sio_assembler){
        .limits = *limits,
        .header = AGX_BUF_INIT(limits->header_max),
        .name = AGX_BUF_INIT(limits->header_max),
        .bytes = AGX_BUF_INIT(limits->bytes_max),
    };
}

void agx_sio_assembler_done(struct agx_sio_assembler *a)
{
    if (!a)
        return;
    agx_buf_done(&a->header);
    agx_buf_done(&a->name);
    agx_buf_done(&a->bytes);
    free(a->attachments);
    a->attachments = NULL;
    a->attachments_cap = 0;
    a->waiting = false;
}

static void reuse(struct agx_buf *b)
{
    if (b->cap > KEEP_MAX)
        agx_buf_done(b);
    else
        agx_buf_clear(b);
}

/* Back to empty; views of the last message are invalid afterwards. */
static void reset(struct agx_sio_assembler *a)
{
    a->waiting = false;
    a->got = 0;
    a->message = (struct agx_sio_message){ .name = { NULL, 0 } };
    reuse(&a->header);
    reuse(&a->name);
    reuse(&a->bytes);
}

/* `n` empty attachments. */
static int reserve_attachments(struct agx_sio_assembler *a, size_t n, struct agx_error **err)
{
    if (n > a->attachments_cap) {
        struct agx_sio_attachment *grown =
            n <= SIZE_MAX / sizeof(*grown) ? realloc(a->attachments, n * sizeof(*grown)) : NULL;

        if (!grown)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for %zu attachments", n);
        a->attachments = grown;
        a->attachments_cap = n;
    }
    if (n > 0)
        memset(a->attachments, 0, n * sizeof(*a->attachments));
    a->message.attachments = a->attachments;
    return 0;
}

/*
 * The scanner has just taken the '{' of an object. True if the rest of
 * {"_placeholder":true,"num":N} follows, its members in either order.
 */
static bool read_placeholder(struct agx_json_scan *s, uint64_t *ret_num)
{
    bool marked = false, numbered = false;
    struct agx_json_token key, value;

    while (!marked || !numbered) {
        if (agx_json_scan_next(s, &key, NULL) < 0 || key.kind != AGX_JSON_KEY ||
            agx_json_scan_next(s, &value, NULL) < 0)
            return false;
        if (!marked && value.kind == AGX_JSON_TRUE &&
            agx_str_eq(key.raw, AGX_STR("\"_placeholder\"")))
            marked = true;
        else if (!numbered && agx_str_eq(key.raw, AGX_STR("\"num\"")) &&
                 agx_parse_u64(value.raw, UINT64_MAX, ret_num))
            numbered = true;
        else
            return false;
    }
    return agx_json_scan_next(s, &key, NULL) == 0 && key.kind == AGX_JSON_OBJECT_END;
}

static int place(struct agx_sio_assembler *a, uint64_t num, struct agx_error **err)
{
    if (num >= a->message.packet.attachments)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "Socket.IO placeholder %llu, but only %zu attachments",
                             (unsigned long long)num, a->message.packet.attachments);
    if (a->attachments[num].placed)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "Socket.IO placeholder %llu appears twice",
                             (unsigned long long)num);
    a->attachments[num].placed = true;
    return 0;
}

/* Finds the placeholders at any depth; each attachment must have one. */
static int place_all(struct agx_sio_assembler *a, struct agx_error **err)
{
    struct agx_json_token t = { .kind = AGX_JSON_NULL };
    struct agx_json_scan s;

    agx_json_scan_init(&s, a->message.packet.data, a->limits.depth_max);
    while (t.kind != AGX_JSON_END) {
        int r = agx_json_scan_next(&s, &t, err);

        if (r == 0 && t.kind == AGX_JSON_OBJECT) {
            struct agx_json_scan ahead = s;
            uint64_t num = 0;

            if (read_placeholder(&ahead, &num))
                r = place(a, num, err);
        }
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < a->message.packet.attachments; i++) {
        if (!a->attachments[i].placed)
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "Socket.IO attachment %zu has no placeholder", i);
    }
    return 0;
}

static int read_name(struct agx_sio_assembler *a, struct agx_error **err)
{
    struct agx_sio_message *m = &a->message;
    struct agx_json_token t;
    struct agx_json_scan s;
    int r;

    if (!agx_sio_is_event(m->packet.type))
        return 0;
    agx_json_scan_init(&s, m->packet.data, a->limits.depth_max);
    r = agx_json_scan_next(&s, &t, err);
    if (r == 0)
        r = agx_json_scan_next(&s, &t, err);
    if (r < 0)
        return r;
    m->name = t.kind == AGX_JSON_STRING ? agx_json_token_inner(&t) : t.raw;
    if (!t.escaped)
        return 0;
    r = agx_json_text_unquote(&a->name, m->name, err);
    m->name = agx_buf_peek(&a->name);
    return r;
}

/* The only argument, if that is one attachment. */
static const struct agx_sio_attachment *find_sole(const struct agx_sio_message *m)
{
    struct agx_sio_arg first, second;
    struct agx_sio_args it;

    if (m->packet.attachments != 1)
        return NULL;
    agx_sio_args_init(&it, m);
    return agx_sio_args_next(&it, &first) && !agx_sio_args_next(&it, &second) ? first.attachment
                                                                              : NULL;
}

/* Reads any packet's text, by the strict general path. `text` is not copied. */
static int read_header(struct agx_sio_assembler *a, struct agx_str text, struct agx_error **err)
{
    struct agx_sio_packet *p = &a->message.packet;
    int r = agx_sio_decode(text, &a->limits, p, err);

    if (r == 0)
        r = reserve_attachments(a, p->attachments, err);
    if (r == 0)
        r = read_name(a, err);
    if (r == 0 && agx_sio_is_binary(p->type))
        r = place_all(a, err);
    if (r == 0)
        a->message.sole = find_sole(&a->message);
    return r;
}

/* Reads the common binary event, without a parser. False: another form, or over a limit. */
static bool read_common_header(struct agx_sio_assembler *a, struct agx_str text)
{
    struct agx_sio_message *m = &a->message;

    if (a->limits.attachments_max < 1 || a->limits.depth_max < 2 ||
        !agx_sio_decode_binary_event(text, &m->name) || reserve_attachments(a, 1, NULL) < 0)
        return false;
    a->attachments[0].placed = true;
    m->packet = (struct agx_sio_packet){ .type = AGX_SIO_BINARY_EVENT,
                                         .attachments = 1,
                                         .nsp = AGX_STR("/"),
                                         .data = agx_str_skip(text, sizeof("51-") - 1) };
    m->sole = a->attachments;
    return true;
}

static int feed_text(struct agx_sio_assembler *a, struct agx_str text, struct agx_error **err)
{
    int r;

    if (a->waiting)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "got a Socket.IO packet, expected attachment %zu of %zu", a->got + 1,
                             a->message.packet.attachments);
    reset(a);
    if (text.len > 0 &&
        (text.ptr[0] == '0' + AGX_SIO_BINARY_EVENT || text.ptr[0] == '0' + AGX_SIO_BINARY_ACK)) {
        r = agx_buf_append(&a->header, text);
        if (r < 0)
            return agx_error_set(err, (enum agx_code) - r,
                                 "no room for a Socket.IO header of %zu bytes (limit %zu)",
                                 text.len, a->limits.header_max);
        text = agx_buf_peek(&a->header);
        if (read_common_header(a, text)) {
            a->waiting = true;
            return 0;
        }
    }
    r = read_header(a, text, err);
    a->waiting = r == 0 && a->message.packet.attachments > 0;
    return r;
}

/* All attachments are here: sets the views of the copied ones. `bytes` does not move any more. */
static void find_bytes(struct agx_sio_assembler *a)
{
    struct agx_str rest = agx_buf_peek(&a->bytes);

    for (size_t i = 0; i + 1 < a->message.packet.attachments; i++) {
        a->attachments[i].bytes.ptr = rest.ptr;
        rest = agx_str_skip(rest, a->attachments[i].bytes.len);
    }
}

static int feed_attachment(struct agx_sio_assembler *a, struct agx_str data, struct agx_error **err)
{
    if (!a->waiting)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "Socket.IO attachment of %zu bytes without a header", data.len);
    if (data.len > a->limits.bytes_max - a->bytes.len)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "Socket.IO attachments are over the limit of %zu bytes",
                             a->limits.bytes_max);
    a->attachments[a->got].bytes = data;
    if (a->got + 1 < a->message.packet.attachments) {
        int r = agx_buf_append(&a->bytes, data);

        if (r < 0)
            return agx_error_set(err, (enum agx_code) - r,
                                 "no memory for a Socket.IO attachment of %zu bytes", data.len);
    } else {
        find_bytes(a);
        a->waiting = false;
    }
    a->got++;
    return 0;
}

int agx_sio_assembler_feed(struct agx_sio_assembler *a, const struct agx_eio_packet *p,
                           struct agx_sio_message *ret, struct agx_error **err)
{
    int r = p->binary ? feed_attachment(a, p->data, err) : feed_text(a, p->data, err);

    if (r < 0) {
        reset(a);
        return r;
    }
    if (a->waiting)
        return 0;
    *ret = a->message;
    return 1;
}

void agx_sio_args_init(struct agx_sio_args *it, const struct agx_sio_message *m)
{
    struct agx_json_token t;

    it->message = m;
    agx_json_scan_init(&it->scan, m->packet.data, AGX_JSON_SCAN_DEPTH_CEILING);
    if (agx_json_scan_next(&it->scan, &t, NULL) < 0 || t.kind != AGX_JSON_ARRAY ||
        (agx_sio_is_event(m->packet.type) && agx_json_scan_value(&it->scan, &t, NULL) < 0))
        agx_json_scan_init(&it->scan, AGX_STR(""), 0);
}

bool agx_sio_args_next(struct agx_sio_args *it, struct agx_sio_arg *ret)
{
    struct agx_json_scan inside;
    struct agx_json_token t;
    uint64_t num = 0;

    if (agx_json_scan_value(&it->scan, &t, NULL) < 0 || t.kind == AGX_JSON_ARRAY_END ||
        t.kind == AGX_JSON_END)
        return false;
    *ret = (struct agx_sio_arg){ .json = t.raw };
    if (t.kind != AGX_JSON_OBJECT)
        return true;
    agx_json_scan_init(&inside, t.raw, 1);
    if (agx_json_scan_next(&inside, &t, NULL) == 0 && read_placeholder(&inside, &num) &&
        num < it->message->packet.attachments)
        ret->attachment = &it->message->attachments[num];
    return true;
}

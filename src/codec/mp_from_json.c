/*
 * mp_from_json.c: JSON to msgpack in one pass: a container's header is written with room for its
 * count, which is filled in at its end. A stack of open containers replaces recursion.
 */
#include "codec/mp_json.h"

#include "base/banned.h"
#include "base/number.h"
#include "codec/base64.h"
#include "codec/json_scan.h"
#include "codec/json_text.h"

#include <math.h>

enum {
    ARRAY32 = 0xdd,
    MAP32 = 0xdf,
    HEADER_SIZE = 5,
};

struct open_container {
    size_t header; /* offset of its header in `out` */
    uint64_t count;
};

struct conversion {
    struct agx_json_scan scan;
    struct agx_buf *out;
    struct agx_buf text; /* a string without its escapes */
    unsigned depth;
    struct open_container open[AGX_DEPTH_MAX];
};

static int no_room(struct agx_error **err)
{
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "json: no room for its msgpack form");
}

/* The text of a string or key, borrowed until the next call. */
static int unquote(struct conversion *c, const struct agx_json_token *t, struct agx_str *ret,
                   struct agx_error **err)
{
    int r;

    *ret = agx_json_token_inner(t);
    if (!t->escaped)
        return 0;
    agx_buf_clear(&c->text);
    r = agx_json_text_unquote(&c->text, *ret, err);
    *ret = agx_buf_peek(&c->text);
    return r;
}

static int put_string(struct conversion *c, const struct agx_json_token *t, struct agx_error **err)
{
    struct agx_mp_writer w;
    struct agx_str text;
    int r = unquote(c, t, &text, err);

    if (r < 0)
        return r;
    agx_mp_writer_init(&w, c->out);
    agx_mp_write_str(&w, text);
    return agx_mp_writer_end(&w, err);
}

static int put_number(struct conversion *c, struct agx_str raw, struct agx_error **err)
{
    bool negative = raw.ptr[0] == '-';
    struct agx_mp_writer w;
    uint64_t u = 0;
    double f = 0;

    agx_mp_writer_init(&w, c->out);
    if (agx_str_find(raw, '.') < raw.len || agx_str_find(raw, 'e') < raw.len ||
        agx_str_find(raw, 'E') < raw.len) {
        if (!agx_parse_double(raw, &f))
            return agx_error_set(err, AGX_OUT_OF_RANGE, "json: a number is out of range");
        agx_mp_write_float(&w, f);
        return agx_mp_writer_end(&w, err);
    }
    if (!agx_parse_u64(agx_str_skip(raw, negative), negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX,
                       &u))
        return agx_error_set(err, AGX_OUT_OF_RANGE, "json: a number does not fit into 64 bits");
    if (negative)
        agx_mp_write_int(&w, (int64_t)(0 - u));
    else
        agx_mp_write_uint(&w, u);
    return agx_mp_writer_end(&w, err);
}

static int put_bytes(struct conversion *c, struct agx_str base64, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(c->out->max);
    struct agx_mp_writer w;
    int r = agx_base64_decode(&bytes, base64, err);

    if (r < 0)
        return agx_error_wrap(err, r, "json: '$bytes'");
    agx_mp_writer_init(&w, c->out);
    agx_mp_write_bin(&w, agx_buf_peek(&bytes));
    return agx_mp_writer_end(&w, err);
}

static int put_special_float(struct conversion *c, struct agx_str name, struct agx_error **err)
{
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, c->out);
    if (agx_str_eq(name, AGX_STR("nan")))
        agx_mp_write_float(&w, NAN);
    else if (agx_str_eq(name, AGX_STR("inf")))
        agx_mp_write_float(&w, INFINITY);
    else if (agx_str_eq(name, AGX_STR("-inf")))
        agx_mp_write_float(&w, -INFINITY);
    else
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "json: '$float' is not nan, inf or -inf");
    return agx_mp_writer_end(&w, err);
}

/* The kind of object that begins with this key. */
enum special { ORDINARY, BYTES, FLOAT };

static int special_of(struct conversion *c, const struct agx_json_token *key, enum special *ret,
                      struct agx_error **err)
{
    struct agx_str name = { 0 };
    int r = key->kind == AGX_JSON_KEY ? unquote(c, key, &name, err) : 0;

    if (agx_str_eq(name, AGX_STR("$bytes")))
        *ret = BYTES;
    else
        *ret = agx_str_eq(name, AGX_STR("$float")) ? FLOAT : ORDINARY;
    return r;
}

/*
 * The scanner is just after '{'. 1: {"$bytes": "..."} or {"$float": "..."} was read completely and
 * written. 0: it is any other object, and the scanner has not moved. Escapes in the key or value
 * make no difference.
 */
static int put_special(struct conversion *c, struct agx_error **err)
{
    struct agx_json_scan ahead = c->scan;
    struct agx_json_token key, value, end;
    struct agx_str text;
    enum special what;
    int r;

    /* Malformed text is reported later, by the scanner proper. */
    if (agx_json_scan_next(&ahead, &key, NULL) < 0)
        return 0;
    r = special_of(c, &key, &what, err);
    if (r < 0 || what == ORDINARY)
        return r;
    if (agx_json_scan_next(&ahead, &value, NULL) < 0 || value.kind != AGX_JSON_STRING ||
        agx_json_scan_next(&ahead, &end, NULL) < 0 || end.kind != AGX_JSON_OBJECT_END)
        return 0;
    r = unquote(c, &value, &text, err);
    if (r < 0)
        return r;
    c->scan = ahead;
    r = what == BYTES ? put_bytes(c, text, err) : put_special_float(c, text, err);
    return r < 0 ? r : 1;
}

static int open_container(struct conversion *c, bool map, struct agx_error **err)
{
    static const char zeros[HEADER_SIZE - 1];

    c->open[c->depth++] = (struct open_container){ .header = c->out->len };
    if (agx_buf_push(c->out, map ? MAP32 : ARRAY32) < 0 ||
        agx_buf_append(c->out, agx_str_bytes(zeros, sizeof(zeros))) < 0)
        return no_room(err);
    return 0;
}

static int close_container(struct conversion *c, struct agx_error **err)
{
    const struct open_container *o = &c->open[--c->depth];

    if (o->count > UINT32_MAX)
        return agx_error_set(err, AGX_OUT_OF_RANGE, "json: too many elements for msgpack");
    for (int i = 1; i < HEADER_SIZE; i++)
        c->out->data[o->header + (size_t)i] = (uint8_t)(o->count >> (8 * (HEADER_SIZE - 1 - i)));
    return 0;
}

static int put_token(struct conversion *c, const struct agx_json_token *t, struct agx_error **err)
{
    static const uint8_t nil = 0xc0, no = 0xc2, yes = 0xc3;
    int r;

    switch (t->kind) {
    case AGX_JSON_ARRAY_END:
    case AGX_JSON_OBJECT_END:
        return close_container(c, err);
    case AGX_JSON_KEY:
        return put_string(c, t, err);
    default:
        break;
    }
    /* A value is one more element of its array, or one more pair of its object. */
    if (c->depth > 0)
        c->open[c->depth - 1].count++;
    switch (t->kind) {
    case AGX_JSON_STRING:
        return put_string(c, t, err);
    case AGX_JSON_NUMBER:
        return put_number(c, t->raw, err);
    case AGX_JSON_OBJECT:
        r = put_special(c, err);
        return r != 0 ? AGX_MIN(r, 0) : open_container(c, true, err);
    case AGX_JSON_ARRAY:
        return open_container(c, false, err);
    default:
        r = agx_buf_push(c->out, t->kind == AGX_JSON_NULL   ? nil
                                 : t->kind == AGX_JSON_TRUE ? yes
                                                            : no);
        return r < 0 ? no_room(err) : 0;
    }
}

int agx_mp_from_json(struct agx_buf *out, struct agx_str json, unsigned depth_max,
                     struct agx_error **err)
{
    struct conversion c = { .out = out, .text = AGX_BUF_INIT(out->max) };
    size_t start = out->len;
    struct agx_json_token t;
    int r;

    agx_json_scan_init(&c.scan, json, AGX_MIN(depth_max, AGX_DEPTH_MAX));
    do {
        r = agx_json_scan_next(&c.scan, &t, err);
        if (r < 0 || t.kind == AGX_JSON_END)
            break;
        r = put_token(&c, &t, err);
    } while (r == 0);
    if (r < 0)
        out->len = start;
    agx_buf_done(&c.text);
    return r;
}

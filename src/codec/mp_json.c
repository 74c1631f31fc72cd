/* mp_json.c: msgpack to JSON, by recursion within the reader's depth. Back: mp_from_json.c. */
#include "codec/mp_json.h"

#include "base/banned.h"
#include "base/number.h"
#include "base/utf8.h"
#include "codec/base64.h"
#include "codec/json_text.h"
#include "codec/mp_ext.h"

#include <inttypes.h>
#include <math.h>

static int no_room(struct agx_error **err)
{
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "json: no room for the text of a value");
}

static int mp_json_put(struct agx_buf *out, struct agx_str s)
{
    return agx_buf_append(out, s);
}

/* "<base64>" in quotes. */
static int put_base64(struct agx_buf *out, struct agx_str bytes)
{
    int r = agx_buf_push(out, '"');

    if (r == 0)
        r = agx_base64_encode(out, bytes, true);
    return r < 0 ? r : agx_buf_push(out, '"');
}

static int put_bytes(struct agx_buf *out, struct agx_str bytes)
{
    int r = mp_json_put(out, AGX_STR("{\"$bytes\":"));

    if (r == 0)
        r = put_base64(out, bytes);
    return r < 0 ? r : agx_buf_push(out, '}');
}

/* The shortest text that reads back as the same number, and as a float ("1.0", not "1"). */
static int put_float(struct agx_buf *out, double f)
{
    char text[40];
    double again = 0;

    if (isnan(f))
        return mp_json_put(out, AGX_STR("{\"$float\":\"nan\"}"));
    if (isinf(f))
        return mp_json_put(out, f > 0 ? AGX_STR("{\"$float\":\"inf\"}")
                                      : AGX_STR("{\"$float\":\"-inf\"}"));
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, f);
        if (agx_parse_double(agx_str_from(text), &again) && again == f)
            break;
    }
    return agx_buf_printf(out, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static int put_ndarray(struct agx_buf *out, struct agx_str payload, struct agx_error **err)
{
    struct agx_mp_ndarray a;
    int r = agx_mp_ndarray_parse(payload, &a, err);

    if (r < 0)
        return r;
    r = agx_buf_printf(out, "{\"$ndarray\":{\"dtype\":\"%.*s\",\"shape\":[", AGX_STR_ARG(a.dtype));
    for (unsigned i = 0; r == 0 && i < a.ndim; i++)
        r = agx_buf_printf(out, "%s%" PRIu64, i > 0 ? "," : "", a.shape[i]);
    if (r == 0)
        r = mp_json_put(out, AGX_STR("],\"data\":"));
    if (r == 0)
        r = put_base64(out, a.data);
    if (r == 0)
        r = mp_json_put(out, AGX_STR("}}"));
    return r < 0 ? no_room(err) : 0;
}

/* A value that is not a container. */
static int put_scalar(struct agx_buf *out, const struct agx_mp_token *t)
{
    int r;

    switch (t->type) {
    case AGX_MP_NIL:
        return mp_json_put(out, AGX_STR("null"));
    case AGX_MP_BOOL:
        return mp_json_put(out, t->boolean ? AGX_STR("true") : AGX_STR("false"));
    case AGX_MP_UINT:
        return agx_buf_printf(out, "%" PRIu64, t->u);
    case AGX_MP_INT:
        return agx_buf_printf(out, "%" PRId64, t->i);
    case AGX_MP_FLOAT:
        return put_float(out, t->f);
    case AGX_MP_STR:
        return agx_utf8_valid(t->bytes) ? agx_json_text_quote(out, t->bytes)
                                        : put_bytes(out, t->bytes);
    case AGX_MP_BIN:
        return put_bytes(out, t->bytes);
    default: /* an unknown extension */
        r = agx_buf_printf(out, "{\"$ext\":[%d,", t->ext_type);
        if (r == 0)
            r = put_base64(out, t->bytes);
        return r < 0 ? r : mp_json_put(out, AGX_STR("]}"));
    }
}

/* A key: text unchanged, other types as the text of their JSON. */
static int put_key(struct agx_buf *out, struct agx_mp_reader *r, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(out->max);
    struct agx_mp_token t;
    int status = agx_mp_next(r, &t, err);

    if (status < 0)
        return status;
    /* A container as key would be text inside text, and double its escapes at each level. */
    if (t.type >= AGX_MP_ARRAY)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "json: the key of a map is of type %s",
                             agx_mp_type_name(t.type));
    if (t.type == AGX_MP_STR && agx_utf8_valid(t.bytes))
        return agx_json_text_quote(out, t.bytes) < 0 ? no_room(err) : 0;
    if (put_scalar(&text, &t) < 0 || agx_json_text_quote(out, agx_buf_peek(&text)) < 0)
        return no_room(err);
    return 0;
}

static int put_value(struct agx_buf *out, struct agx_mp_reader *r, struct agx_error **err);

static int put_members(struct agx_buf *out, struct agx_mp_reader *r, const struct agx_mp_token *t,
                       struct agx_error **err)
{
    bool map = t->type == AGX_MP_MAP;
    int status = agx_mp_enter(r, err);

    if (status < 0)
        return status;
    if (agx_buf_push(out, map ? '{' : '[') < 0)
        return no_room(err);
    for (uint32_t i = 0; i < t->count; i++) {
        if (i > 0 && agx_buf_push(out, ',') < 0)
            return no_room(err);
        if (map) {
            status = put_key(out, r, err);
            if (status < 0)
                return status;
            if (agx_buf_push(out, ':') < 0)
                return no_room(err);
        }
        status = put_value(out, r, err);
        if (status < 0)
            return status;
    }
    agx_mp_leave(r);
    return agx_buf_push(out, map ? '}' : ']') < 0 ? no_room(err) : 0;
}

static int put_value(struct agx_buf *out, struct agx_mp_reader *r, struct agx_error **err)
{
    struct agx_mp_reader model;
    struct agx_mp_token t;
    int status = agx_mp_next(r, &t, err);

    if (status < 0)
        return status;
    if (t.type == AGX_MP_ARRAY || t.type == AGX_MP_MAP)
        return put_members(out, r, &t, err);
    if (t.type == AGX_MP_EXT && t.ext_type == AGX_MP_EXT_NDARRAY)
        return put_ndarray(out, t.bytes, err);
    if (t.type == AGX_MP_EXT && t.ext_type == AGX_MP_EXT_MODEL) {
        status = agx_mp_open_model(r, t.bytes, &model, err);
        return status < 0 ? status : put_value(out, &model, err);
    }
    return put_scalar(out, &t) < 0 ? no_room(err) : 0;
}

int agx_mp_to_json(struct agx_mp_reader *r, struct agx_buf *out, struct agx_error **err)
{
    struct agx_mp_reader before = *r;
    size_t start = out->len;
    int status = put_value(out, r, err);

    if (status < 0) {
        *r = before;
        out->len = start;
    }
    return status;
}

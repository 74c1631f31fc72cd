/*
 * fncall_out.c: the value that a function writes. It is written directly into its frame: `out` has
 * the frame's head from the first put on, and the value begins at value_at.
 */
#include "worker/fncall_internal.h"

#include "base/utf8.h"
#include "codec/mp_ext.h"

#include "base/banned.h"

static void begin_value(struct agx_fncall *c)
{
    struct agx_str type = c->kind == AGX_REMOTE_UNARY ? AGX_STR("result") : AGX_STR("stream_item");

    if (c->value_at > 0)
        return;
    agx_frame_begin(&c->w, &c->out);
    agx_mp_write_map(&c->w, 3);
    agx_mp_write_str(&c->w, AGX_STR("type"));
    agx_mp_write_str(&c->w, type);
    agx_mp_write_str(&c->w, AGX_STR("id"));
    agx_mp_write_uint(&c->w, c->id);
    agx_mp_write_str(&c->w, AGX_STR("value"));
    c->value_at = c->out.len;
}

void agx_fncall_op_put(struct agx_fn_call *pub, const struct agx_fn_value *v)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    struct agx_str bytes = { v->as.bytes.ptr, v->as.bytes.len };

    begin_value(c);
    switch (v->type) {
    case AGX_FN_NIL:
        agx_mp_write_nil(&c->w);
        break;
    case AGX_FN_BOOL:
        agx_mp_write_bool(&c->w, v->as.boolean != 0);
        break;
    case AGX_FN_INT:
        agx_mp_write_int(&c->w, v->as.i);
        break;
    case AGX_FN_UINT:
        agx_mp_write_uint(&c->w, v->as.u);
        break;
    case AGX_FN_FLOAT:
        agx_mp_write_float(&c->w, v->as.f);
        break;
    case AGX_FN_STR:
        if (!agx_utf8_valid(bytes))
            agx_fncall_set_error(c, "SerializationError", "text that is not UTF-8");
        agx_mp_write_str(&c->w, bytes);
        break;
    case AGX_FN_BIN:
        agx_mp_write_bin(&c->w, bytes);
        break;
    case AGX_FN_ARRAY:
        agx_mp_write_array(&c->w, v->as.count);
        break;
    case AGX_FN_MAP:
        agx_mp_write_map(&c->w, v->as.count);
        break;
    case AGX_FN_EXT:
        agx_mp_write_ext(&c->w, (int8_t)v->ext_type, bytes);
        break;
    default:
        agx_fncall_set_error(c, "SerializationError", "a value of no type");
    }
}

void agx_fncall_op_put_raw(struct agx_fn_call *pub, const void *bytes, size_t len)
{
    struct agx_fncall *c = agx_fncall_of(pub);

    begin_value(c);
    agx_mp_write_raw(&c->w, agx_str_bytes(bytes, len));
}

void agx_fncall_op_put_ndarray(struct agx_fn_call *pub, const struct agx_fn_ndarray *a)
{
    struct agx_fncall *c = agx_fncall_of(pub);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_ndarray out = { .dtype = { a->dtype.ptr, a->dtype.len },
                                  .ndim = a->ndim,
                                  .data = { a->data.ptr, a->data.len } };

    begin_value(c);
    if (a->ndim <= AGX_MP_NDIM_MAX)
        memcpy(out.shape, a->shape, a->ndim * sizeof(a->shape[0]));
    if (agx_mp_write_ndarray(&c->w, &out, &err) < 0)
        agx_fncall_set_error(c, "SerializationError", "%s", err->message);
}

/* Why the client cannot accept this token as a key or value; NULL: it can. */
static const char *unfit(const struct agx_mp_token *t, bool is_key, unsigned flags)
{
    struct agx_mp_ndarray a;

    if (is_key && !(flags & AGX_RECV_INT_KEYS) && t->type != AGX_MP_STR && t->type != AGX_MP_BIN)
        return "the client takes text as a key only";
    if (t->type == AGX_MP_EXT && t->ext_type == AGX_MP_EXT_NDARRAY &&
        !(flags & AGX_RECV_BYTE_DTYPES) && agx_mp_ndarray_parse(t->bytes, &a, NULL) == 0 &&
        a.dtype.ptr[0] == '|')
        return "the client takes no arrays of one-byte elements";
    return NULL;
}

/* Looks at every token of a well-formed value; what is wrong with one of them, or NULL. */
static const char *find_unfit(struct agx_mp_reader *r, unsigned flags)
{
    struct {
        uint64_t left; /* tokens to come on this level */
        bool map;      /* an even number left: the next one is a key */
    } level[AGX_DEPTH_MAX + 1] = { { .left = 1 } };
    unsigned depth = 0;

    for (;;) {
        struct agx_mp_token t;
        const char *what;
        bool is_key;

        while (level[depth].left == 0) {
            if (depth-- == 0)
                return NULL;
        }
        is_key = level[depth].map && level[depth].left % 2 == 0;
        level[depth].left--;
        if (agx_mp_next(r, &t, NULL) < 0)
            return "it is malformed";
        what = unfit(&t, is_key, flags);
        if (what)
            return what;
        if (t.type != AGX_MP_ARRAY && t.type != AGX_MP_MAP)
            continue;
        depth++;
        level[depth].map = t.type == AGX_MP_MAP;
        level[depth].left = level[depth].map ? 2 * (uint64_t)t.count : t.count;
    }
}

/* One whole value that the client can read, and nothing behind it. */
static int check_value(struct agx_fncall *c, struct agx_str value)
{
    static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_mp_reader r, again;
    const char *what = NULL;

    if (agx_mp_reader_init(&r, value, &limits, &err) < 0)
        what = err->message;
    again = r;
    if (!what && (agx_mp_skip(&r, &err) < 0 || agx_mp_expect_end(&r, &err) < 0))
        what = err->message;
    if (!what && (~c->flags & (AGX_RECV_INT_KEYS | AGX_RECV_BYTE_DTYPES)) != 0)
        what = find_unfit(&again, c->flags);
    if (!what)
        return 0;
    agx_fncall_set_error(c, "SerializationError", "the function did not write one value: %s", what);
    return AGX_FN_FAILED;
}

int agx_fncall_end_value(struct agx_fncall *c, struct agx_str *ret_frame, size_t *ret_size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    size_t size;

    begin_value(c);
    if (c->out.len == c->value_at && c->w.status == 0)
        agx_mp_write_nil(&c->w);
    size = c->out.len - c->value_at;
    if (agx_frame_end(&c->w, AGX_MESSAGE_MAX, &err) < 0) {
        agx_fncall_set_error(c, "SerializationError", "%s", err->message);
        return AGX_FN_FAILED;
    }
    if (c->error_type)
        return AGX_FN_FAILED;
    if (size > c->max) {
        agx_fncall_set_error(c, "MessageTooLarge", "a value of %zu bytes, the client takes %zu",
                             size, c->max);
        return AGX_FN_FAILED;
    }
    *ret_frame = agx_buf_peek(&c->out);
    *ret_size = size;
    return check_value(c, agx_str_skip(*ret_frame, c->value_at));
}

void agx_fncall_drop_value(struct agx_fncall *c)
{
    if (c->out.cap > AGX_FRAME_HELD_KEEP)
        agx_buf_done(&c->out);
    else
        agx_buf_clear(&c->out);
    c->value_at = 0;
}

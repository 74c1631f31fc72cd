/* msgpack.c: the installed writer and reader, on top of the codec's. */
#include "agentix/msgpack.h"

#include "base/banned.h"
#include "base/utf8.h"
#include "codec/mp_json.h"

struct agx_writer {
    struct agx_buf buf;
    struct agx_mp_writer mp;
    bool bad_text; /* a str was not UTF-8 */
};

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

struct agx_writer *agx_writer_new(void)
{
    struct agx_writer *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->buf.max = AGX_MESSAGE_MAX;
    agx_mp_writer_init(&w->mp, &w->buf);
    return w;
}

struct agx_writer *agx_writer_free(struct agx_writer *w)
{
    if (!w)
        return NULL;
    agx_buf_done(&w->buf);
    free(w);
    return NULL;
}

void agx_writer_clear(struct agx_writer *w)
{
    if (!w)
        return;
    agx_buf_clear(&w->buf);
    agx_mp_writer_init(&w->mp, &w->buf);
    w->bad_text = false;
}

void agx_writer_nil(struct agx_writer *w)
{
    if (w)
        agx_mp_write_nil(&w->mp);
}

void agx_writer_bool(struct agx_writer *w, bool v)
{
    if (w)
        agx_mp_write_bool(&w->mp, v);
}

void agx_writer_int(struct agx_writer *w, int64_t v)
{
    if (w)
        agx_mp_write_int(&w->mp, v);
}

void agx_writer_uint(struct agx_writer *w, uint64_t v)
{
    if (w)
        agx_mp_write_uint(&w->mp, v);
}

void agx_writer_double(struct agx_writer *w, double v)
{
    if (w)
        agx_mp_write_float(&w->mp, v);
}

void agx_writer_str(struct agx_writer *w, const char *text, size_t len)
{
    if (!w)
        return;
    if (!agx_utf8_valid(agx_str_bytes(text, len)))
        w->bad_text = true;
    agx_mp_write_str(&w->mp, agx_str_bytes(text, len));
}

void agx_writer_cstr(struct agx_writer *w, const char *text)
{
    agx_writer_str(w, text, strlen(text));
}

void agx_writer_bin(struct agx_writer *w, const void *bytes, size_t len)
{
    if (w)
        agx_mp_write_bin(&w->mp, agx_str_bytes(bytes, len));
}

void agx_writer_array(struct agx_writer *w, size_t count)
{
    if (w)
        agx_mp_write_array(&w->mp, count);
}

void agx_writer_map(struct agx_writer *w, size_t count)
{
    if (w)
        agx_mp_write_map(&w->mp, count);
}

void agx_writer_ext(struct agx_writer *w, int8_t type, const void *bytes, size_t len)
{
    if (w)
        agx_mp_write_ext(&w->mp, type, agx_str_bytes(bytes, len));
}

void agx_writer_raw(struct agx_writer *w, const void *bytes, size_t len)
{
    if (w)
        agx_mp_write_raw(&w->mp, agx_str_bytes(bytes, len));
}

/* 0, or the writer's first error. */
static int msgpack_check(struct agx_writer *w, struct agx_error **err)
{
    if (!w)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "msgpack: no memory for a writer");
    if (w->bad_text)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "msgpack: a text is not UTF-8");
    return agx_mp_writer_end(&w->mp, err);
}

int agx_writer_json(struct agx_writer *w, const char *json, size_t len, struct agx_error **err)
{
    int r = msgpack_check(w, err);

    return r < 0 ? r : agx_mp_from_json(&w->buf, agx_str_bytes(json, len), AGX_DEPTH_MAX, err);
}

int agx_writer_bytes(struct agx_writer *w, const void **ret_bytes, size_t *ret_len,
                     struct agx_error **err)
{
    int r = msgpack_check(w, err);

    if (r < 0)
        return r;
    *ret_bytes = w->buf.data;
    *ret_len = w->buf.len;
    return 0;
}

void agx_reader_init(struct agx_reader *r, const void *bytes, size_t len)
{
    r->start = r->at = bytes;
    r->end = len > 0 ? r->start + len : r->start;
}

bool agx_reader_at_end(const struct agx_reader *r)
{
    return r->at == r->end;
}

/* Sets up the codec's reader at our position. */
static int resume(const struct agx_reader *r, struct agx_mp_reader *ret, struct agx_error **err)
{
    int status =
        agx_mp_reader_init(ret, agx_str_bytes(r->start, (size_t)(r->end - r->start)), &limits, err);

    if (status == 0)
        ret->at += r->at - r->start; /* for no bytes the codec uses its own pointer */
    return status;
}

static void set_value(struct agx_value *v, const struct agx_mp_token *t)
{
    memset(v, 0, sizeof(*v));
    switch (t->type) {
    case AGX_MP_NIL:
        v->type = AGX_VALUE_NIL;
        break;
    case AGX_MP_BOOL:
        v->type = AGX_VALUE_BOOL;
        v->as.boolean = t->boolean;
        break;
    case AGX_MP_UINT:
        v->type = AGX_VALUE_UINT;
        v->as.u = t->u;
        break;
    case AGX_MP_INT:
        v->type = AGX_VALUE_INT;
        v->as.i = t->i;
        break;
    case AGX_MP_FLOAT:
        v->type = AGX_VALUE_DOUBLE;
        v->as.f = t->f;
        break;
    case AGX_MP_ARRAY:
    case AGX_MP_MAP:
        v->type = t->type == AGX_MP_MAP ? AGX_VALUE_MAP : AGX_VALUE_ARRAY;
        v->as.count = t->count;
        break;
    case AGX_MP_STR:
    case AGX_MP_BIN:
    case AGX_MP_EXT:
        v->type = t->type == AGX_MP_STR   ? AGX_VALUE_STR
                  : t->type == AGX_MP_BIN ? AGX_VALUE_BIN
                                          : AGX_VALUE_EXT;
        v->ext_type = t->type == AGX_MP_EXT ? t->ext_type : 0;
        v->as.bytes.ptr = t->bytes.ptr;
        v->as.bytes.len = t->bytes.len;
        break;
    }
}

int agx_reader_next(struct agx_reader *r, struct agx_value *ret_value, struct agx_error **err)
{
    struct agx_mp_reader mp;
    struct agx_mp_token t;
    int status = resume(r, &mp, err);

    if (status == 0)
        status = agx_mp_next(&mp, &t, err);
    if (status < 0)
        return status;
    set_value(ret_value, &t);
    r->at = r->start + (mp.at - mp.start);
    return 0;
}

int agx_reader_skip(struct agx_reader *r, const void **ret_bytes, size_t *ret_len,
                    struct agx_error **err)
{
    struct agx_mp_reader mp;
    struct agx_str raw = { NULL, 0 };
    int status = resume(r, &mp, err);

    if (status == 0)
        status = agx_mp_take_raw(&mp, &raw, err);
    if (status < 0)
        return status;
    if (ret_bytes) {
        *ret_bytes = raw.ptr;
        *ret_len = raw.len;
    }
    r->at = r->start + (mp.at - mp.start);
    return 0;
}

int agx_reader_json(struct agx_reader *r, char **ret_json, struct agx_error **err)
{
    /* Escapes turn one byte into six, base64 three into four. */
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(6 * AGX_MESSAGE_MAX);
    struct agx_mp_reader mp;
    char *json;
    int status = resume(r, &mp, err);

    if (status == 0)
        status = agx_mp_to_json(&mp, &text, err);
    if (status < 0)
        return status;
    json = agx_buf_take_cstr(&text);
    if (!json)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "json: no memory for the text");
    *ret_json = json;
    r->at = r->start + (mp.at - mp.start);
    return 0;
}

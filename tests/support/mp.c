/* mp.c: copies and compares msgpack values token by token. */
#include "tests/support/mp.h"

static void write_scalar(struct agx_mp_writer *w, const struct agx_mp_token *t)
{
    switch (t->type) {
    case AGX_MP_NIL:
        agx_mp_write_nil(w);
        break;
    case AGX_MP_BOOL:
        agx_mp_write_bool(w, t->boolean);
        break;
    case AGX_MP_UINT:
        agx_mp_write_uint(w, t->u);
        break;
    case AGX_MP_INT:
        agx_mp_write_int(w, t->i);
        break;
    case AGX_MP_FLOAT:
        agx_mp_write_float(w, t->f);
        break;
    case AGX_MP_STR:
        agx_mp_write_str(w, t->bytes);
        break;
    case AGX_MP_BIN:
        agx_mp_write_bin(w, t->bytes);
        break;
    case AGX_MP_EXT:
        agx_mp_write_ext(w, t->ext_type, t->bytes);
        break;
    case AGX_MP_ARRAY:
        agx_mp_write_array(w, t->count);
        break;
    case AGX_MP_MAP:
        agx_mp_write_map(w, t->count);
        break;
    }
}

int agx_test_mp_copy(struct agx_mp_reader *r, struct agx_mp_writer *w, struct agx_error **err)
{
    struct agx_mp_token t;
    uint64_t n = 0;
    int k = agx_mp_next(r, &t, err);

    if (k < 0)
        return k;
    write_scalar(w, &t);
    if (t.type != AGX_MP_ARRAY && t.type != AGX_MP_MAP)
        return 0;
    k = agx_mp_enter(r, err);
    if (k < 0)
        return k;
    for (n = (uint64_t)t.count * (t.type == AGX_MP_MAP ? 2 : 1); n > 0 && k == 0; n--)
        k = agx_test_mp_copy(r, w, err);
    agx_mp_leave(r);
    return k;
}

static bool same_bytes(struct agx_str s, const void *p, size_t n)
{
    return agx_str_eq(s, agx_str_bytes(p, n));
}

/* Compares bits, so that a NaN equals itself. */
static bool same_float(double a, double b)
{
    uint64_t x, y;

    memcpy(&x, &a, sizeof(x));
    memcpy(&y, &b, sizeof(y));
    return x == y;
}

static bool same_map(struct agx_mp_reader *r, uint32_t count, const msgpack_object_map *m)
{
    if (count != m->size)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!agx_test_mp_same(r, &m->ptr[i].key) || !agx_test_mp_same(r, &m->ptr[i].val))
            return false;
    }
    return true;
}

static bool same_array(struct agx_mp_reader *r, uint32_t count, const msgpack_object_array *a)
{
    if (count != a->size)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!agx_test_mp_same(r, &a->ptr[i]))
            return false;
    }
    return true;
}

bool agx_test_mp_same(struct agx_mp_reader *r, const msgpack_object *o)
{
    struct agx_mp_token t;

    if (agx_mp_next(r, &t, NULL) < 0)
        return false;
    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        return t.type == AGX_MP_NIL;
    case MSGPACK_OBJECT_BOOLEAN:
        return t.type == AGX_MP_BOOL && t.boolean == o->via.boolean;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        return t.type == AGX_MP_UINT && t.u == o->via.u64;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        return t.type == AGX_MP_INT && t.i == o->via.i64;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        return t.type == AGX_MP_FLOAT && same_float(t.f, o->via.f64);
    case MSGPACK_OBJECT_STR:
        return t.type == AGX_MP_STR && same_bytes(t.bytes, o->via.str.ptr, o->via.str.size);
    case MSGPACK_OBJECT_BIN:
        return t.type == AGX_MP_BIN && same_bytes(t.bytes, o->via.bin.ptr, o->via.bin.size);
    case MSGPACK_OBJECT_EXT:
        return t.type == AGX_MP_EXT && t.ext_type == o->via.ext.type &&
               same_bytes(t.bytes, o->via.ext.ptr, o->via.ext.size);
    case MSGPACK_OBJECT_ARRAY:
        return t.type == AGX_MP_ARRAY && same_array(r, t.count, &o->via.array);
    case MSGPACK_OBJECT_MAP:
        return t.type == AGX_MP_MAP && same_map(r, t.count, &o->via.map);
    }
    return false;
}

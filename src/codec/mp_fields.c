/* mp_fields.c: finds the fields of a message map without decoding their values. */
#include "codec/mp_fields.h"

#include "base/macros.h"
#include "base/utf8.h"

#include "base/banned.h"

enum { NAME_QUOTED_MAX = 64 }; /* bytes of a field's name in an error text */

/*
 * The search begins where the last field was found. Peers send their fields in a fixed order, so
 * with a table in that order nearly every first comparison matches.
 */
static struct agx_mp_field *mp_fields_find(struct agx_mp_field *fields, size_t n, size_t from,
                                           struct agx_str name)
{
    for (size_t k = 0, i = from; k < n; k++, i++) {
        if (i >= n)
            i -= n;
        if (agx_str_eq(fields[i].name, name))
            return &fields[i];
    }
    return NULL;
}

static int read_key(struct agx_mp_reader *r, struct agx_str *ret_name, struct agx_error **err)
{
    size_t offset = (size_t)(r->at - r->start);
    struct agx_mp_token key;
    int k = agx_mp_next(r, &key, err);

    if (k < 0)
        return k;
    if (key.type != AGX_MP_STR && key.type != AGX_MP_BIN)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "msgpack: at offset %zu: the key is of type %s, not str or bin",
                             offset, agx_mp_type_name(key.type));
    *ret_name = key.bytes;
    return 0;
}

/* What is wrong with `value` for field `f`; NULL if it fits. */
static const char *complaint(const struct agx_mp_field *f, const struct agx_mp_token *value)
{
    if (f->present)
        return "was sent twice";
    if (!(f->wanted & AGX_MP_BIT(value->type)))
        return "has the wrong type";
    if (value->type == AGX_MP_STR && !agx_utf8_valid(value->bytes))
        return "is not UTF-8";
    return NULL;
}

/* One pass over a message. */
struct scan {
    struct agx_mp_reader r;
    struct agx_mp_field *fields;
    size_t n;
    size_t from;             /* where in the table the next search begins */
    int refused;             /* 0, or the code of the first field that did not fit */
    struct agx_error *error; /* its error */
};

/* The first value that does not fit is noted, and reading goes on. */
static void take_value(struct scan *s, struct agx_mp_field *f, size_t offset,
                       const struct agx_mp_token *value, struct agx_str raw)
{
    const char *wrong = complaint(f, value);

    if (!wrong) {
        f->present = true;
        f->value = *value;
        f->raw = raw;
    } else if (s->refused == 0) {
        s->refused = agx_error_set(&s->error, AGX_INVALID_ARGUMENT,
                                   "msgpack: at offset %zu: field '%.*s' (%s) %s", offset,
                                   (int)AGX_MIN(f->name.len, (size_t)NAME_QUOTED_MAX), f->name.ptr,
                                   agx_mp_type_name(value->type), wrong);
    }
}

static int read_value(struct scan *s, struct agx_mp_field *f, struct agx_error **err)
{
    const uint8_t *from = s->r.at;
    struct agx_mp_token value;
    int k = agx_mp_next(&s->r, &value, err);

    if (k < 0)
        return k;
    if (value.type == AGX_MP_ARRAY || value.type == AGX_MP_MAP) {
        s->r.at = from;
        k = agx_mp_skip(&s->r, err);
        if (k < 0)
            return k;
    }
    take_value(s, f, (size_t)(from - s->r.start), &value,
               agx_str_bytes(from, (size_t)(s->r.at - from)));
    return 0;
}

static int read_pair(struct scan *s, struct agx_error **err)
{
    struct agx_mp_field *f;
    struct agx_str name = { 0 };
    int k = read_key(&s->r, &name, err);

    if (k < 0)
        return k;
    f = mp_fields_find(s->fields, s->n, s->from, name);
    if (!f)
        return agx_mp_skip(&s->r, err);
    s->from = (size_t)(f - s->fields) + 1;
    return read_value(s, f, err);
}

/* Reads the map's header; the reader is then inside the map. */
static int open_map(struct agx_mp_reader *r, uint32_t *ret_pairs, struct agx_error **err)
{
    struct agx_mp_token map;
    int k = agx_mp_next(r, &map, err);

    if (k < 0)
        return k;
    if (map.type != AGX_MP_MAP)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "msgpack: at offset 0: the message is of type %s, not a map",
                             agx_mp_type_name(map.type));
    *ret_pairs = map.count;
    return agx_mp_enter(r, err);
}

int agx_mp_read_fields(struct agx_str msg, const struct agx_mp_limits *limits,
                       struct agx_mp_field *fields, size_t n, struct agx_error **err)
{
    struct scan s = { .fields = fields, .n = n };
    uint32_t pairs = 0;
    int k;

    for (size_t i = 0; i < n; i++)
        fields[i].present = false;
    k = agx_mp_reader_init(&s.r, msg, limits, err);
    if (k == 0)
        k = open_map(&s.r, &pairs, err);
    while (k == 0 && pairs-- > 0)
        k = read_pair(&s, err);
    if (k == 0)
        k = agx_mp_expect_end(&s.r, err);
    agx_error_propagate(err, &s.error);
    return k < 0 ? k : s.refused;
}

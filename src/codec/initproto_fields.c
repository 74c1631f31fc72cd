/* initproto_fields.c: fields in and out of packets. */
#include "codec/initproto_fields.h"

#include <endian.h>

#include "base/banned.h"

enum {
    HEAD = 4,
    NUMBERS_MAX = 64,  /* descriptors: one for each controller of cgroups */
    MOUNTS_MAX = 4096, /* the kernel allows 100,000 in a namespace */
};

int agx_init_malformed(struct agx_error **err, const char *what)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "a packet of init: %s", what);
}

static uint32_t load_u32(const char *p)
{
    uint32_t le;

    memcpy(&le, p, sizeof(le));
    return le32toh(le);
}

static uint64_t load_u64(const char *p)
{
    uint64_t le;

    memcpy(&le, p, sizeof(le));
    return le64toh(le);
}

static bool initproto_fields_take(struct agx_str *in, size_t n, const char **ret)
{
    if (in->len < n)
        return false;
    *ret = in->ptr;
    *in = agx_str_skip(*in, n);
    return true;
}

static bool take_u32(struct agx_str *in, uint32_t *ret)
{
    const char *p;

    if (!initproto_fields_take(in, 4, &p))
        return false;
    *ret = load_u32(p);
    return true;
}

static bool take_u64(struct agx_str *in, uint64_t *ret)
{
    const char *p;

    if (!initproto_fields_take(in, 8, &p))
        return false;
    *ret = load_u64(p);
    return true;
}

static bool take_data(struct agx_str *in, struct agx_str *ret)
{
    uint32_t len;

    if (!take_u32(in, &len) || !initproto_fields_take(in, len, &ret->ptr))
        return false;
    ret->len = len;
    return true;
}

/* A length, that many bytes without a NUL among them, a NUL. */
static bool take_text(struct agx_str *in, struct agx_str *ret)
{
    const char *end;

    return take_data(in, ret) && initproto_fields_take(in, 1, &end) && *end == '\0' &&
           memchr(ret->ptr, '\0', ret->len) == NULL;
}

static bool take_id(struct agx_str *in, struct agx_str *ret)
{
    return take_text(in, ret) && ret->len > 0 && ret->len <= AGX_INIT_ID_MAX;
}

static bool take_one(struct agx_str *in, enum agx_init_type type)
{
    struct agx_str text;
    const char *p;

    switch (type) {
    case AGX_FIELD_WORDS:
        return take_text(in, &text);
    case AGX_FIELD_LIMITS:
        return initproto_fields_take(in, AGX_INIT_RLIMIT_SIZE, &p);
    case AGX_FIELD_NUMBERS:
        return initproto_fields_take(in, 4, &p);
    default:
        return initproto_fields_take(in, 4, &p) && take_text(in, &text) && take_text(in, &text) &&
               initproto_fields_take(in, 4, &p);
    }
}

static const struct {
    const char *name;
    uint32_t max;
} lists[] = {
    [AGX_FIELD_WORDS] = { "words", AGX_INIT_WORDS_MAX },
    [AGX_FIELD_LIMITS] = { "resource limits", AGX_INIT_RLIMITS_MAX },
    [AGX_FIELD_NUMBERS] = { "numbers", NUMBERS_MAX },
    [AGX_FIELD_MOUNTS] = { "mounts", MOUNTS_MAX },
};

static int take_list(struct agx_str *in, enum agx_init_type type, struct agx_init_list *ret,
                     struct agx_error **err)
{
    if (!take_u32(in, &ret->count))
        return agx_init_malformed(err, "it is cut off");
    if (ret->count > lists[type].max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a packet of init: %u %s, the limit is %u", ret->count,
                             lists[type].name, lists[type].max);
    ret->bytes.ptr = in->ptr;
    for (uint32_t i = 0; i < ret->count; i++) {
        if (!take_one(in, type))
            return agx_init_malformed(err, "a list is cut off, or a string in it is malformed");
    }
    ret->bytes.len = (size_t)(in->ptr - ret->bytes.ptr);
    return 0;
}

static int take_field(struct agx_str *in, enum agx_init_type type, void *to, struct agx_error **err)
{
    bool ok = true;

    switch (type) {
    case AGX_FIELD_U32:
        ok = take_u32(in, to);
        break;
    case AGX_FIELD_U64:
        ok = take_u64(in, to);
        break;
    case AGX_FIELD_DATA:
        ok = take_data(in, to);
        break;
    case AGX_FIELD_ID:
        ok = take_id(in, to);
        break;
    case AGX_FIELD_TEXT:
        ok = take_text(in, to);
        break;
    case AGX_FIELD_WORDS:
    case AGX_FIELD_LIMITS:
    case AGX_FIELD_NUMBERS:
    case AGX_FIELD_MOUNTS:
        return take_list(in, type, to, err);
    case AGX_FIELD_END:
        break;
    }
    return ok ? 0 : agx_init_malformed(err, "it is cut off, or a string is malformed");
}

int agx_init_head_take(struct agx_str packet, struct agx_str *ret_in, unsigned *ret_kind,
                       struct agx_error **err)
{
    const char *head;

    if (packet.len > AGX_INIT_PACKET_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a packet of init has %zu bytes, the limit is %zu", packet.len,
                             AGX_INIT_PACKET_MAX);
    *ret_in = packet;
    if (!initproto_fields_take(ret_in, HEAD, &head) || head[0] != 'A' || head[1] != 'X')
        return agx_init_malformed(err, "unknown protocol");
    if (head[2] != AGX_INIT_VERSION)
        return agx_init_malformed(err, "unsupported protocol version");
    *ret_kind = (uint8_t)head[3];
    return 0;
}

int agx_init_fields_take(struct agx_str in, const struct agx_init_field *row, void *to,
                         struct agx_error **err)
{
    for (const struct agx_init_field *f = row; f->type != AGX_FIELD_END; f++) {
        int r = take_field(&in, f->type, (char *)to + f->at, err);

        if (r < 0)
            return r;
    }
    return in.len > 0 ? agx_init_malformed(err, "bytes after its end") : 0;
}

static void initproto_fields_put(struct agx_init_out *o, const void *bytes, size_t n)
{
    if (n > 0 && n <= o->size && o->len <= o->size - n)
        memcpy(o->at + o->len, bytes, n);
    o->len += n;
}

void agx_init_u32_put(struct agx_init_out *o, uint32_t v)
{
    uint32_t le = htole32(v);

    initproto_fields_put(o, &le, sizeof(le));
}

void agx_init_u64_put(struct agx_init_out *o, uint64_t v)
{
    uint64_t le = htole64(v);

    initproto_fields_put(o, &le, sizeof(le));
}

static void put_data(struct agx_init_out *o, struct agx_str data)
{
    agx_init_u32_put(o, (uint32_t)data.len);
    initproto_fields_put(o, data.ptr, data.len);
}

void agx_init_text_put(struct agx_init_out *o, struct agx_str text)
{
    put_data(o, text);
    initproto_fields_put(o, "", 1);
}

static void put_list(struct agx_init_out *o, const struct agx_init_list *l)
{
    agx_init_u32_put(o, l->count);
    initproto_fields_put(o, l->bytes.ptr, l->bytes.len);
}

static void put_field(struct agx_init_out *o, enum agx_init_type type, const void *from)
{
    switch (type) {
    case AGX_FIELD_U32:
        agx_init_u32_put(o, *(const uint32_t *)from);
        break;
    case AGX_FIELD_U64:
        agx_init_u64_put(o, *(const uint64_t *)from);
        break;
    case AGX_FIELD_ID:
    case AGX_FIELD_TEXT:
        agx_init_text_put(o, *(const struct agx_str *)from);
        break;
    case AGX_FIELD_DATA:
        put_data(o, *(const struct agx_str *)from);
        break;
    case AGX_FIELD_WORDS:
    case AGX_FIELD_LIMITS:
    case AGX_FIELD_NUMBERS:
    case AGX_FIELD_MOUNTS:
        put_list(o, from);
        break;
    case AGX_FIELD_END:
        break;
    }
}

void agx_init_packet_put(struct agx_init_out *o, unsigned kind, const struct agx_init_field *row,
                         const void *from)
{
    const uint8_t head[HEAD] = { 'A', 'X', AGX_INIT_VERSION, (uint8_t)kind };

    initproto_fields_put(o, head, HEAD);
    for (const struct agx_init_field *f = row; f->type != AGX_FIELD_END; f++)
        put_field(o, f->type, (const char *)from + f->at);
}

uint32_t agx_init_u32_next(struct agx_str *in)
{
    uint32_t v = load_u32(in->ptr);

    *in = agx_str_skip(*in, 4);
    return v;
}

uint64_t agx_init_u64_next(struct agx_str *in)
{
    uint64_t v = load_u64(in->ptr);

    *in = agx_str_skip(*in, 8);
    return v;
}

struct agx_str agx_init_text_next(struct agx_str *in)
{
    size_t len = agx_init_u32_next(in);
    struct agx_str text = { in->ptr, len };

    *in = agx_str_skip(*in, len + 1);
    return text;
}

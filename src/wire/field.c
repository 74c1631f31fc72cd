/*
 * field.c: a field is a key (number and type), then a number, or a length and that many bytes.
 */
#include "wire/field.h"

#include "base/banned.h"

/* Field numbers have 29 bits. */
#define NUMBER_MAX ((UINT64_C(1) << 29) - 1)

static bool read_varint(struct agx_str *in, uint64_t *ret)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && in->len > 0; shift += 7) {
        uint8_t byte = (uint8_t)in->ptr[0];

        *in = agx_str_skip(*in, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* How many bytes follow the key; none for a varint, which is read here. */
static bool read_size(struct agx_str *in, unsigned type, uint64_t *ret)
{
    uint64_t ignored;

    switch (type) {
    case AGX_FIELD_VARINT:
        *ret = 0;
        return read_varint(in, &ignored);
    case AGX_FIELD_FIXED64:
        *ret = 8;
        return true;
    case AGX_FIELD_BYTES:
        return read_varint(in, ret);
    case AGX_FIELD_FIXED32:
        *ret = 4;
        return true;
    default:
        return false;
    }
}

bool agx_field_next(struct agx_str *in, struct agx_field *ret)
{
    struct agx_str rest = *in;
    uint64_t key, n;

    if (rest.len == 0 || !read_varint(&rest, &key) || key >> 3 == 0 || key >> 3 > NUMBER_MAX ||
        !read_size(&rest, key & 7, &n) || n > rest.len)
        return false;
    *ret = (struct agx_field){ .number = (uint32_t)(key >> 3), .type = key & 7 };
    if (ret->type == AGX_FIELD_BYTES)
        ret->bytes = (struct agx_str){ rest.ptr, (size_t)n };
    *in = agx_str_skip(rest, (size_t)n);
    return true;
}

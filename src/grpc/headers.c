/* headers.c: header fields, packed into one buffer. */
#include "grpc/headers.h"

#include "base/banned.h"

struct lengths {
    uint32_t name, value;
};

void agx_grpc_headers_init(struct agx_grpc_headers *h, size_t max)
{
    *h = (struct agx_grpc_headers){ .packed = AGX_BUF_INIT(max) };
}

int agx_grpc_headers_add(struct agx_grpc_headers *h, struct agx_str name, struct agx_str value)
{
    const struct lengths lengths = { (uint32_t)name.len, (uint32_t)value.len };
    size_t size = name.len + value.len + AGX_GRPC_FIELD_OVERHEAD;
    int r;

    if (size > h->packed.max - h->size)
        return -AGX_RESOURCE_EXHAUSTED;
    r = agx_buf_reserve(&h->packed, sizeof(lengths) + name.len + value.len);
    if (r == 0)
        r = agx_buf_append(&h->packed, agx_str_bytes(&lengths, sizeof(lengths)));
    if (r == 0)
        r = agx_buf_append(&h->packed, name);
    if (r == 0)
        r = agx_buf_append(&h->packed, value);
    if (r < 0)
        return r; /* on a failure nothing was added */
    h->size += size;
    h->count++;
    return 0;
}

bool agx_grpc_headers_next(const struct agx_grpc_headers *h, size_t *at, struct agx_str *ret_name,
                           struct agx_str *ret_value)
{
    struct lengths lengths;
    const char *p;

    if (*at >= h->packed.len)
        return false;
    p = (const char *)h->packed.data + *at;
    memcpy(&lengths, p, sizeof(lengths));
    p += sizeof(lengths);
    *ret_name = (struct agx_str){ p, lengths.name };
    *ret_value = (struct agx_str){ p + lengths.name, lengths.value };
    *at += sizeof(lengths) + lengths.name + lengths.value;
    return true;
}

struct agx_str agx_grpc_headers_peek(const struct agx_grpc_headers *h, struct agx_str name)
{
    struct agx_str found, value;

    for (size_t at = 0; agx_grpc_headers_next(h, &at, &found, &value);) {
        if (agx_str_eq(found, name))
            return value;
    }
    return (struct agx_str){ NULL, 0 };
}

size_t agx_grpc_headers_nv(const struct agx_grpc_headers *h, nghttp2_nv *nv, size_t max)
{
    struct agx_str name, value;
    size_t n = 0;

    for (size_t at = 0; n < max && agx_grpc_headers_next(h, &at, &name, &value); n++) {
        nv[n] = (nghttp2_nv){ .name = (uint8_t *)name.ptr,
                              .namelen = name.len,
                              .value = (uint8_t *)value.ptr,
                              .valuelen = value.len };
    }
    return n;
}

void agx_grpc_headers_done(struct agx_grpc_headers *h)
{
    agx_buf_done(&h->packed);
    h->count = h->size = 0;
}

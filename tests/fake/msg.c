/* msg.c: messages as bytes. */
#include "tests/fake/msg.h"

#include <endian.h>

#include "base/banned.h"

static void put(struct agx_fake_out *o, const void *bytes, size_t n)
{
    if (!o->failed && agx_buf_append(o->buf, agx_str_bytes(bytes, n)) < 0)
        o->failed = true;
}

void agx_fake_out_u64(struct agx_fake_out *o, uint64_t n)
{
    uint64_t le = htole64(n);

    put(o, &le, sizeof(le));
}

void agx_fake_out_str(struct agx_fake_out *o, struct agx_str s)
{
    agx_fake_out_u64(o, s.len);
    put(o, s.ptr, s.len);
}

void agx_fake_out_cstr(struct agx_fake_out *o, const char *s)
{
    agx_fake_out_str(o, agx_str_from(s));
}

void agx_fake_out_begin(struct agx_fake_out *o, struct agx_buf *buf, enum agx_fake_kind kind,
                        uint64_t tag)
{
    const uint8_t head[6] = { 0, 0, 0, 0, (uint8_t)kind, 0 };

    *o = (struct agx_fake_out){ .buf = buf, .start = buf->len };
    put(o, head, sizeof(head));
    agx_fake_out_u64(o, tag);
}

int agx_fake_out_end(struct agx_fake_out *o, unsigned n_fds)
{
    size_t n = o->buf->len - o->start;
    uint32_t le;

    if (o->failed || n > AGX_FAKE_MESSAGE_MAX) {
        o->buf->len = o->start;
        return -AGX_RESOURCE_EXHAUSTED;
    }
    le = htole32((uint32_t)n);
    memcpy(o->buf->data + o->start, &le, sizeof(le));
    o->buf->data[o->start + 5] = (uint8_t)n_fds;
    return 0;
}

int agx_fake_in_open(struct agx_fake_in *in, struct agx_str bytes, size_t *ret_used)
{
    uint32_t le, n;

    if (bytes.len < AGX_FAKE_HEADER_SIZE)
        return 0;
    memcpy(&le, bytes.ptr, sizeof(le));
    n = le32toh(le);
    if (n < AGX_FAKE_HEADER_SIZE || n > AGX_FAKE_MESSAGE_MAX)
        return -AGX_INVALID_ARGUMENT;
    if (bytes.len < n)
        return 0;
    *in = (struct agx_fake_in){ .kind = (uint8_t)bytes.ptr[4], .n_fds = (uint8_t)bytes.ptr[5] };
    in->rest = (struct agx_str){ bytes.ptr + 6, n - 6 };
    in->tag = agx_fake_in_u64(in);
    *ret_used = n;
    return in->n_fds <= AGX_FAKE_FDS_MAX ? 1 : -AGX_INVALID_ARGUMENT;
}

uint64_t agx_fake_in_u64(struct agx_fake_in *in)
{
    uint64_t le;

    if (in->bad || in->rest.len < sizeof(le)) {
        in->bad = true;
        return 0;
    }
    memcpy(&le, in->rest.ptr, sizeof(le));
    in->rest = agx_str_skip(in->rest, sizeof(le));
    return le64toh(le);
}

struct agx_str agx_fake_in_str(struct agx_fake_in *in)
{
    uint64_t n = agx_fake_in_u64(in);
    struct agx_str s = { in->rest.ptr, 0 };

    if (in->bad || n > in->rest.len) {
        in->bad = true;
        return AGX_STR("");
    }
    s.len = (size_t)n;
    in->rest = agx_str_skip(in->rest, s.len);
    return s;
}

size_t agx_fake_in_count(struct agx_fake_in *in)
{
    uint64_t n = agx_fake_in_u64(in);

    if (n > in->rest.len / 8) {
        in->bad = true;
        return 0;
    }
    return (size_t)n;
}

bool agx_fake_in_ends(const struct agx_fake_in *in)
{
    return !in->bad && in->rest.len == 0;
}

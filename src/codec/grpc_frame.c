/*
 * grpc_frame.c: gRPC's length-prefixed messages.
 *
 * The decoder is either between messages (prefix_len 0), inside a prefix (1..4) or inside a message
 * (5). Invariants:
 *  (1) a prefix is checked when its fifth byte is there, never earlier, and before any byte of the
 *      message is stored: the result does not depend on how the input was cut;
 *  (2) `held` grows with the bytes that arrive, not with the length that the peer announces;
 *  (3) a refused prefix stays where it is, so that asking again gives the same answer; `no_memory`
 *      does the same for a message that lost bytes.
 */
#include "codec/grpc_frame.h"

#include "base/banned.h"

enum { FLAG_PLAIN = 0, FLAG_COMPRESSED = 1 };

void agx_grpc_decoder_init(struct agx_grpc_decoder *d, size_t max)
{
    *d = (struct agx_grpc_decoder){ .max = max, .held = AGX_BUF_INIT(max) };
}

void agx_grpc_decoder_done(struct agx_grpc_decoder *d)
{
    if (d)
        agx_buf_done(&d->held);
}

static struct agx_str grpc_frame_take(struct agx_str *in, size_t n)
{
    struct agx_str head = { in->ptr, AGX_MIN(n, in->len) };

    *in = agx_str_skip(*in, head.len);
    return head;
}

/* True when the prefix is complete. */
static bool gather_prefix(struct agx_grpc_decoder *d, struct agx_str *in)
{
    struct agx_str part = grpc_frame_take(in, AGX_GRPC_PREFIX_SIZE - d->prefix_len);

    if (part.len > 0)
        memcpy(d->prefix + d->prefix_len, part.ptr, part.len);
    d->prefix_len += (unsigned)part.len;
    return d->prefix_len == AGX_GRPC_PREFIX_SIZE;
}

static uint32_t announced_len(const struct agx_grpc_decoder *d)
{
    const uint8_t *p = d->prefix + 1;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The flag is checked first: after a wrong one the length means nothing. */
static int check_prefix(const struct agx_grpc_decoder *d, struct agx_error **err)
{
    if (d->prefix[0] == FLAG_COMPRESSED)
        return agx_error_set(err, AGX_INTERNAL,
                             "compressed flag set with identity or empty grpc-encoding");
    if (d->prefix[0] != FLAG_PLAIN)
        return agx_error_set(err, AGX_INTERNAL, "unknown flag 0x%02x in front of a grpc message",
                             d->prefix[0]);
    if (announced_len(d) > d->max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "received message larger than max (%u vs. %zu)",
                             (unsigned)announced_len(d), d->max);
    return 0;
}

/* Stores the bytes that `in` has of a message of `want` bytes. 1: the message is complete. */
static int gather_message(struct agx_grpc_decoder *d, struct agx_str *in, size_t want,
                          struct agx_error **err)
{
    struct agx_str part = grpc_frame_take(in, want - d->held.len);

    if (d->no_memory || agx_buf_append(&d->held, part) < 0) {
        d->no_memory = true;
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "no memory for a grpc message of %zu bytes", want);
    }
    return d->held.len == want;
}

int agx_grpc_decoder_next(struct agx_grpc_decoder *d, struct agx_str *in,
                          struct agx_str *ret_message, struct agx_error **err)
{
    size_t want;
    int r;

    if (d->prefix_len == 0)
        agx_buf_clear(&d->held); /* drops the message that the last call returned */
    if (!gather_prefix(d, in))
        return 0;
    r = check_prefix(d, err);
    if (r < 0)
        return r;
    want = announced_len(d);
    if (d->held.len == 0 && in->len >= want && !d->no_memory) {
        *ret_message = grpc_frame_take(in, want);
    } else {
        r = gather_message(d, in, want, err);
        if (r <= 0)
            return r;
        *ret_message = agx_buf_peek(&d->held);
    }
    d->prefix_len = 0;
    return 1;
}

int agx_grpc_decoder_end(const struct agx_grpc_decoder *d, struct agx_error **err)
{
    if (d->prefix_len == 0)
        return 0;
    if (d->prefix_len < AGX_GRPC_PREFIX_SIZE)
        return agx_error_set(err, AGX_INTERNAL,
                             "stream ended after %u bytes of a grpc message's prefix",
                             d->prefix_len);
    return agx_error_set(err, AGX_INTERNAL, "stream ended after %zu of %u bytes of a grpc message",
                         d->held.len, (unsigned)announced_len(d));
}

int agx_grpc_frame_begin(struct agx_buf *out, size_t len)
{
    const uint8_t prefix[AGX_GRPC_PREFIX_SIZE] = {
        FLAG_PLAIN, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,
    };
    int r;

    if (len > UINT32_MAX)
        return -AGX_RESOURCE_EXHAUSTED;
    r = agx_buf_reserve(out, sizeof(prefix) + len);
    if (r < 0)
        return r;
    return agx_buf_append(out, agx_str_bytes(prefix, sizeof(prefix)));
}

int agx_grpc_frame_encode(struct agx_buf *out, struct agx_str message)
{
    int r = agx_grpc_frame_begin(out, message.len);

    if (r < 0)
        return r;
    return agx_buf_append(out, message);
}

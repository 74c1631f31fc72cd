/*
 * frame.c: the worker's frames.
 *
 * The decoder is between frames (prefix_len 0), inside a prefix (1..3) or inside a frame (4).
 * Invariants:
 *  (1) a prefix is checked when its fourth byte is there, and before any byte of the frame is kept:
 *      the result does not depend on how the input was cut;
 *  (2) `held` grows with the bytes that arrive, not with the length that the peer announces;
 *  (3) a refused prefix stays where it is, so that asking again gives the same answer.
 */
#include "codec/frame.h"

#include "base/limits.h"

#include "base/banned.h"

static const char empty_map[] = "\x80";

void agx_frame_decoder_init(struct agx_frame_decoder *d, size_t max)
{
    *d = (struct agx_frame_decoder){ .max = max, .held = AGX_BUF_INIT(max) };
}

void agx_frame_decoder_done(struct agx_frame_decoder *d)
{
    if (d)
        agx_buf_done(&d->held);
}

static struct agx_str frame_take(struct agx_str *in, size_t n)
{
    struct agx_str head = { in->ptr, AGX_MIN(n, in->len) };

    *in = agx_str_skip(*in, head.len);
    return head;
}

/* True when the prefix is complete. */
static bool gather_prefix(struct agx_frame_decoder *d, struct agx_str *in)
{
    struct agx_str part = frame_take(in, AGX_FRAME_PREFIX_SIZE - d->prefix_len);

    if (part.len > 0)
        memcpy(d->prefix + d->prefix_len, part.ptr, part.len);
    d->prefix_len += (unsigned)part.len;
    return d->prefix_len == AGX_FRAME_PREFIX_SIZE;
}

static uint32_t announced_len(const struct agx_frame_decoder *d)
{
    const uint8_t *p = d->prefix;

    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* The last frame was handled. The memory of one large frame must not be kept forever. */
static void forget_held(struct agx_frame_decoder *d)
{
    if (d->held.cap > AGX_FRAME_HELD_KEEP)
        agx_buf_done(&d->held);
    else
        agx_buf_clear(&d->held);
}

/* Adds the available bytes of a frame of `want` bytes to `held`. 1 when it is complete. */
static int gather_frame(struct agx_frame_decoder *d, struct agx_str *in, size_t want,
                        struct agx_error **err)
{
    size_t n = AGX_MIN(want - d->held.len, in->len);

    d->no_memory = d->no_memory || agx_buf_append(&d->held, (struct agx_str){ in->ptr, n }) < 0;
    if (d->no_memory)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a frame of %zu bytes",
                             want);
    *in = agx_str_skip(*in, n);
    return d->held.len == want;
}

int agx_frame_decoder_next(struct agx_frame_decoder *d, struct agx_str *in,
                           struct agx_str *ret_frame, struct agx_error **err)
{
    size_t want;

    if (d->prefix_len == 0)
        forget_held(d);
    if (!gather_prefix(d, in))
        return 0;
    want = announced_len(d);
    if (want > d->max)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "frame of %zu bytes, the limit is %zu",
                             want, d->max);
    if (want == 0) {
        *ret_frame = (struct agx_str){ empty_map, 1 };
    } else if (d->held.len == 0 && in->len >= want && !d->no_memory) {
        *ret_frame = frame_take(in, want);
    } else {
        int r = gather_frame(d, in, want, err);

        if (r <= 0)
            return r;
        *ret_frame = agx_buf_peek(&d->held);
    }
    d->prefix_len = 0;
    return 1;
}

int agx_frame_decoder_end(const struct agx_frame_decoder *d, struct agx_error **err)
{
    if (d->prefix_len == 0)
        return 0;
    if (d->prefix_len < AGX_FRAME_PREFIX_SIZE)
        return agx_error_set(err, AGX_DATA_LOSS, "input ended after %u bytes of a frame's length",
                             d->prefix_len);
    return agx_error_set(err, AGX_DATA_LOSS, "input ended after %zu of %u bytes of a frame",
                         d->held.len, (unsigned)announced_len(d));
}

void agx_frame_begin(struct agx_mp_writer *w, struct agx_buf *out)
{
    static const char no_length_yet[AGX_FRAME_PREFIX_SIZE];

    agx_mp_writer_init(w, out);
    agx_mp_write_raw(w, agx_str_bytes(no_length_yet, sizeof(no_length_yet)));
}

int agx_frame_end(struct agx_mp_writer *w, size_t max, struct agx_error **err)
{
    int r = agx_mp_writer_end(w, err);
    size_t len;

    if (r < 0)
        return r;
    len = w->out->len - w->start - AGX_FRAME_PREFIX_SIZE;
    if (len > max || len > UINT32_MAX) {
        w->out->len = w->start;
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "frame of %zu bytes, the limit is %zu",
                             len, AGX_MIN(max, (size_t)UINT32_MAX));
    }
    for (unsigned i = 0; i < AGX_FRAME_PREFIX_SIZE; i++)
        w->out->data[w->start + i] = (uint8_t)(len >> (8 * i));
    return 0;
}

/* dockerstream.c: splits the engine's multiplexed output into frames. */
#include "codec/dockerstream.h"

#include "base/banned.h"

bool agx_dockerstream_is_whole(const struct agx_dockerstream *d)
{
    return d->head_len == 0 && d->left == 0;
}

/* The head is complete: begins the frame that it announces. */
static int begin_frame(struct agx_dockerstream *d, struct agx_error **err)
{
    const uint8_t *h = d->head;

    if (h[0] > AGX_DOCKERSTREAM_SYSTEM || h[1] || h[2] || h[3])
        return agx_error_set(err, AGX_DATA_LOSS, "the stream is not in frames");
    d->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
    if (d->left == 0)
        d->head_len = 0; /* an empty frame */
    return 0;
}

int agx_dockerstream_next(struct agx_dockerstream *d, struct agx_str *in,
                          struct agx_dockerstream_piece *ret_piece, struct agx_error **err)
{
    size_t n;

    while (d->left == 0) {
        int r;

        if (d->head_len == sizeof(d->head)) /* it was refused before */
            return begin_frame(d, err);
        n = sizeof(d->head) - d->head_len;
        n = n < in->len ? n : in->len;
        if (n > 0)
            memcpy(d->head + d->head_len, in->ptr, n);
        d->head_len = (uint8_t)(d->head_len + n);
        *in = agx_str_skip(*in, n);
        if (d->head_len < sizeof(d->head))
            return 0;
        r = begin_frame(d, err);
        if (r < 0)
            return r;
    }
    if (in->len == 0)
        return 0;
    n = d->left < in->len ? d->left : in->len;
    *ret_piece = (struct agx_dockerstream_piece){ .stream = (enum agx_dockerstream_kind)d->head[0],
                                                  .bytes = { in->ptr, n } };
    *in = agx_str_skip(*in, n);
    d->left -= (uint32_t)n;
    if (d->left == 0)
        d->head_len = 0;
    return 1;
}

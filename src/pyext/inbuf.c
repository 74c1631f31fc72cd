/* inbuf.c: see inbuf.h. */
#include "pyext/inbuf.h"

#include "base/limits.h"
#include "codec/frame.h"

#include "base/banned.h"

void agx_inbuf_init(struct agx_inbuf *in)
{
    *in = (struct agx_inbuf){ .buf = AGX_BUF_INIT(AGX_FRAME_MAX + AGX_IN_READ) };
}

/* The length in the prefix at `at`; false if the prefix is not complete yet. */
static bool announced(const struct agx_inbuf *in, size_t *ret)
{
    const uint8_t *p;

    if (in->buf.len - in->at < AGX_FRAME_PREFIX_SIZE)
        return false;
    p = in->buf.data + in->at;
    *ret = (size_t)p[3] << 24 | (size_t)p[2] << 16 | (size_t)p[1] << 8 | p[0];
    return true;
}

int agx_inbuf_peek(const struct agx_inbuf *in, struct agx_str *ret_frame, struct agx_error **err)
{
    size_t len;

    if (!announced(in, &len))
        return 0;
    if (len > AGX_FRAME_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "frame of %zu bytes, the limit is %zu",
                             len, AGX_FRAME_MAX);
    if (in->buf.len - in->at - AGX_FRAME_PREFIX_SIZE < len)
        return 0;
    /* Length 0 stands for the empty map. */
    *ret_frame = len == 0 ? AGX_STR("\x80")
                          : agx_str_bytes(in->buf.data + in->at + AGX_FRAME_PREFIX_SIZE, len);
    return 1;
}

void agx_inbuf_used(struct agx_inbuf *in)
{
    size_t len = 0;

    (void)announced(in, &len);
    in->at += AGX_FRAME_PREFIX_SIZE + len;
}

/* Moves the remaining bytes to the front. Frees a buffer that grew for one large frame. */
static void compact(struct agx_inbuf *in)
{
    if (in->at == in->buf.len && in->buf.cap > AGX_IN_KEEP)
        agx_buf_done(&in->buf);
    else
        agx_buf_consume(&in->buf, in->at);
    in->at = 0;
}

int agx_inbuf_room(struct agx_inbuf *in, uint8_t **ret_at, size_t *ret_len, struct agx_error **err)
{
    size_t want = AGX_IN_READ, len;

    compact(in);
    if (announced(in, &len) && len <= AGX_FRAME_MAX && len + AGX_FRAME_PREFIX_SIZE > in->buf.len)
        want = AGX_MAX(want, len + AGX_FRAME_PREFIX_SIZE - in->buf.len);
    if (agx_buf_reserve(&in->buf, want) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for %zu bytes of a frame",
                             want);
    *ret_at = in->buf.data + in->buf.len;
    *ret_len = want;
    return 0;
}

void agx_inbuf_read(struct agx_inbuf *in, size_t n)
{
    in->buf.len += n;
}

/* eio.c: Engine.IO packets. */
#include "codec/eio.h"

#include "base/banned.h"
#include "base/utf8.h"

int agx_eio_decode_text(struct agx_str text, struct agx_eio_packet *ret, struct agx_error **err)
{
    if (text.len == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "empty Engine.IO packet");
    if (text.ptr[0] < '0' || text.ptr[0] > '0' + AGX_EIO_NOOP)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "unknown Engine.IO packet type 0x%02x",
                             (unsigned char)text.ptr[0]);
    if (!agx_utf8_valid(text))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "Engine.IO text packet is not UTF-8");
    *ret = (struct agx_eio_packet){ .type = (enum agx_eio_type)(text.ptr[0] - '0'),
                                    .data = agx_str_skip(text, 1) };
    return 0;
}

int agx_eio_encode(struct agx_buf *out, const struct agx_eio_packet *p)
{
    size_t digit = p->binary ? 0 : 1;
    int r;

    if (p->data.len > SIZE_MAX - digit)
        return -AGX_RESOURCE_EXHAUSTED;
    r = agx_buf_reserve(out, p->data.len + digit);
    if (r < 0)
        return r;
    if (!p->binary)
        out->data[out->len++] = (uint8_t)('0' + p->type);
    return agx_buf_append(out, p->data);
}

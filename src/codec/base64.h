/* base64.h: standard base64 (RFC 4648, '+' and '/'), with or without padding. */
#ifndef AGX_CODEC_BASE64_H
#define AGX_CODEC_BASE64_H

#include "base/buf.h"

/* Appends the text form of `bytes`; `pad` adds '='. */
int agx_base64_encode(struct agx_buf *out, struct agx_str bytes, bool pad) AGX_MUST_CHECK;

/*
 * Appends the bytes that `text` stands for. Padding is optional but must be complete. Other
 * characters, a lone last character and set bits past the end are -AGX_INVALID_ARGUMENT; `out` is
 * then unchanged.
 */
int agx_base64_decode(struct agx_buf *out, struct agx_str text,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif

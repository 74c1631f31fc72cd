/* base64.c: base64, strict in what it accepts so that each byte string has one text form. */
#include "codec/base64.h"

#include "base/banned.h"

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int agx_base64_encode(struct agx_buf *out, struct agx_str bytes, bool pad)
{
    const uint8_t *p = (const uint8_t *)bytes.ptr;
    size_t n = bytes.len, tail = bytes.len % 3;
    uint8_t *o;
    int r;

    if (bytes.len > SIZE_MAX / 4)
        return -AGX_RESOURCE_EXHAUSTED;
    r = agx_buf_reserve(out, n / 3 * 4 + (tail == 0 ? 0 : pad ? 4 : tail + 1));
    if (r < 0 || n == 0)
        return r;
    o = out->data + out->len;
    for (; n >= 3; n -= 3, p += 3) {
        *o++ = (uint8_t)alphabet[p[0] >> 2];
        *o++ = (uint8_t)alphabet[(p[0] & 3) << 4 | p[1] >> 4];
        *o++ = (uint8_t)alphabet[(p[1] & 15) << 2 | p[2] >> 6];
        *o++ = (uint8_t)alphabet[p[2] & 63];
    }
    if (n > 0) {
        unsigned b1 = n > 1 ? p[1] : 0;

        *o++ = (uint8_t)alphabet[p[0] >> 2];
        *o++ = (uint8_t)alphabet[(p[0] & 3) << 4 | b1 >> 4];
        if (n > 1)
            *o++ = (uint8_t)alphabet[(b1 & 15) << 2];
        else if (pad)
            *o++ = '=';
        if (pad)
            *o++ = '=';
    }
    out->len = (size_t)(o - out->data);
    return 0;
}

/* The six bits of a character, or -1. */
static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int agx_base64_decode(struct agx_buf *out, struct agx_str text, struct agx_error **err)
{
    size_t n = text.len, start = out->len;
    uint32_t bits = 0;
    unsigned held = 0; /* bits in `bits` that are not yet part of a byte */

    if (n % 4 == 0 && n > 0 && text.ptr[n - 1] == '=')
        n -= text.ptr[n - 2] == '=' ? 2 : 1;
    if (n % 4 == 1)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "base64 text of %zu characters is cut off",
                             text.len);
    if (agx_buf_reserve(out, n / 4 * 3 + (n % 4 > 0 ? n % 4 - 1 : 0)) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "base64 text of %zu characters is too long", text.len);
    for (size_t i = 0; i < n; i++) {
        int v = sextet(text.ptr[i]);

        if (v < 0) {
            out->len = start;
            return agx_error_set(err, AGX_INVALID_ARGUMENT,
                                 "base64 text has byte 0x%02x at offset %zu",
                                 (unsigned char)text.ptr[i], i);
        }
        bits = bits << 6 | (uint32_t)v;
        held += 6;
        if (held >= 8) {
            held -= 8;
            out->data[out->len++] = (uint8_t)(bits >> held);
        }
    }
    if (bits & ((1u << held) - 1)) {
        out->len = start;
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "base64 text has bits past its end");
    }
    return 0;
}

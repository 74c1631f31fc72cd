/* json_text.c: escapes of JSON strings. */
#include "codec/json_text.h"

#include "base/banned.h"

/* The value of the four hexadecimal digits at `p`, or -1. */
static int32_t hex4(const char *p)
{
    int32_t v = 0;

    for (int i = 0; i < 4; i++) {
        char c = p[i];

        if (c >= '0' && c <= '9')
            v = v * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            v = v * 16 + (c - 'A' + 10);
        else
            return -1;
    }
    return v;
}

/* \uXXXX, or two of them that are a surrogate pair. */
static size_t unicode_escape(struct agx_str s, uint32_t *ret_char)
{
    int32_t hi = s.len >= 6 ? hex4(s.ptr + 2) : -1, lo;

    if (hi < 0 || (hi >= 0xdc00 && hi <= 0xdfff))
        return 0;
    if (hi < 0xd800 || hi > 0xdbff) {
        *ret_char = (uint32_t)hi;
        return 6;
    }
    if (s.len < 12 || s.ptr[6] != '\\' || s.ptr[7] != 'u')
        return 0;
    lo = hex4(s.ptr + 8);
    if (lo < 0xdc00 || lo > 0xdfff)
        return 0;
    *ret_char = 0x10000 + ((uint32_t)(hi - 0xd800) << 10) + (uint32_t)(lo - 0xdc00);
    return 12;
}

size_t agx_json_text_escape(struct agx_str s, uint32_t *ret_char)
{
    static const char letters[] = "\"\\/bfnrt", stands_for[] = "\"\\/\b\f\n\r\t";
    const char *at;

    if (s.len < 2 || s.ptr[0] != '\\')
        return 0;
    if (s.ptr[1] == 'u')
        return unicode_escape(s, ret_char);
    at = memchr(letters, s.ptr[1], sizeof(letters) - 1);
    if (!at)
        return 0;
    *ret_char = (unsigned char)stands_for[at - letters];
    return 2;
}

static int push_utf8(struct agx_buf *out, uint32_t c)
{
    char b[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (n == 1)
        return agx_buf_push(out, (uint8_t)c);
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        b[i] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)((0xf00u >> n) | c); /* n ones and a zero, then the first bits of the character */
    return agx_buf_append(out, (struct agx_str){ b, n });
}

int agx_json_text_unquote(struct agx_buf *out, struct agx_str inner, struct agx_error **err)
{
    size_t start = out->len;

    while (inner.len > 0) {
        size_t plain = agx_str_find(inner, '\\'), n = 0;
        uint32_t c = 0;
        int r = agx_buf_append(out, (struct agx_str){ inner.ptr, plain });

        inner = agx_str_skip(inner, plain);
        if (r == 0 && inner.len > 0) {
            n = agx_json_text_escape(inner, &c);
            if (n == 0) {
                out->len = start;
                return agx_error_set(err, AGX_INVALID_ARGUMENT, "malformed escape in JSON string");
            }
            r = push_utf8(out, c);
        }
        if (r < 0) {
            out->len = start;
            return agx_error_set(err, (enum agx_code) - r, "JSON string is too long");
        }
        inner = agx_str_skip(inner, n);
    }
    return 0;
}

/* Bytes of `s` up to the first that must be escaped. */
static size_t plain_length(struct agx_str s)
{
    size_t i = 0;

    while (i < s.len && (unsigned char)s.ptr[i] >= 0x20 && s.ptr[i] != '"' && s.ptr[i] != '\\')
        i++;
    return i;
}

static int push_escape(struct agx_buf *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char u[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

    if (c == '"' || c == '\\')
        return agx_buf_append(out, (struct agx_str){ (char[]){ '\\', (char)c }, 2 });
    return agx_buf_append(out, (struct agx_str){ u, sizeof(u) });
}

int agx_json_text_quote(struct agx_buf *out, struct agx_str text)
{
    size_t start = out->len;
    int r = agx_buf_push(out, '"');

    while (r == 0 && text.len > 0) {
        size_t n = plain_length(text);

        r = agx_buf_append(out, (struct agx_str){ text.ptr, n });
        text = agx_str_skip(text, n);
        if (r == 0 && text.len > 0) {
            r = push_escape(out, (unsigned char)text.ptr[0]);
            text = agx_str_skip(text, 1);
        }
    }
    if (r == 0)
        r = agx_buf_push(out, '"');
    if (r < 0)
        out->len = start;
    return r;
}

/* utf8.c: validation of UTF-8. */
#include "base/utf8.h"

#include "base/banned.h"

/* Length of the sequence of several bytes that `p` begins, 0 when it is malformed or cut off at
 * `end`. */
static size_t sequence(const unsigned char *p, const unsigned char *end)
{
    unsigned char lo = 0x80, hi = 0xbf; /* bounds of the second byte */
    size_t n;

    if (*p >= 0xc2 && *p <= 0xdf)
        n = 2;
    else if (*p >= 0xe0 && *p <= 0xef)
        n = 3;
    else if (*p >= 0xf0 && *p <= 0xf4)
        n = 4;
    else
        return 0;
    if ((size_t)(end - p) < n)
        return 0;
    if (*p == 0xe0)
        lo = 0xa0; /* overlong */
    else if (*p == 0xed)
        hi = 0x9f; /* surrogates */
    else if (*p == 0xf0)
        lo = 0x90; /* overlong */
    else if (*p == 0xf4)
        hi = 0x8f; /* past U+10FFFF */
    if (p[1] < lo || p[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return n;
}

size_t agx_utf8_sequence(struct agx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;

    return *p < 0x80 ? 1 : sequence(p, p + s.len);
}

bool agx_utf8_valid(struct agx_str s)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end;

    if (s.len == 0)
        return true; /* its pointer may be NULL, and arithmetic on NULL is undefined */
    end = p + s.len;
    while (p < end) {
        size_t n;

        /* Eight ASCII bytes at a time: nearly all text is that. */
        while (end - p >= 8) {
            uint64_t w;

            memcpy(&w, p, sizeof(w));
            if (w & UINT64_C(0x8080808080808080))
                break;
            p += 8;
        }
        if (p == end)
            break;
        if (*p < 0x80) {
            p++;
            continue;
        }
        n = sequence(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

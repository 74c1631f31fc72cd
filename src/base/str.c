/* str.c: borrowed strings. */
#include "base/str.h"

#include "base/banned.h"
#include "base/macros.h"

#include <stdlib.h>

static unsigned char lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

bool agx_str_eq_nocase(struct agx_str a, struct agx_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i]))
            return false;
    }
    return true;
}

bool agx_str_eq_secret(struct agx_str a, struct agx_str b)
{
    volatile unsigned char diff = 0;

    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        diff |= (unsigned char)(a.ptr[i] ^ b.ptr[i]);
    return diff == 0;
}

struct agx_str agx_str_trim(struct agx_str s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = agx_str_skip(s, 1);
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

size_t agx_str_find(struct agx_str s, char c)
{
    const char *at = s.len > 0 ? memchr(s.ptr, c, s.len) : NULL;

    return at ? (size_t)(at - s.ptr) : s.len;
}

bool agx_str_split(struct agx_str *rest, char sep, struct agx_str *ret_part)
{
    size_t n;

    if (!rest->ptr)
        return false;
    n = agx_str_find(*rest, sep);
    *ret_part = (struct agx_str){ rest->ptr, n };
    *rest = n < rest->len ? agx_str_skip(*rest, n + 1) : (struct agx_str){ NULL, 0 };
    return true;
}

char *agx_str_dup(struct agx_str s)
{
    char *z = s.len < SIZE_MAX ? malloc(s.len + 1) : NULL;

    if (!z)
        return NULL;
    if (s.len > 0)
        memcpy(z, s.ptr, s.len);
    z[s.len] = '\0';
    return z;
}

bool agx_parse_u64(struct agx_str s, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned d = (unsigned char)s.ptr[i] - (unsigned)'0';

        if (d > 9 || v > (max - AGX_MIN(max, d)) / 10 || v * 10 + d > max)
            return false;
        v = v * 10 + d;
    }
    *ret = v;
    return true;
}

/* buf.c: a growing buffer with a ceiling. */
#include "base/buf.h"

#include "base/banned.h"

#include <stdarg.h>

enum { FIRST_CAP = 64 };

int agx_buf_reserve_slow(struct agx_buf *b, size_t n)
{
    size_t cap = b->cap > 0 ? b->cap : FIRST_CAP;
    uint8_t *data;

    if (n > b->max - b->len)
        return -AGX_RESOURCE_EXHAUSTED;
    while (cap - b->len < n)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    if (cap > b->max)
        cap = b->max;
    if (cap <= b->cap)
        return 0;
    data = realloc(b->data, cap);
    if (!data)
        return -AGX_RESOURCE_EXHAUSTED;
    b->data = data;
    b->cap = cap;
    return 0;
}

int agx_buf_printf(struct agx_buf *b, const char *fmt, ...)
{
    va_list ap;
    int n, r;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -AGX_INTERNAL;
    /* vsnprintf also writes a NUL, which is not part of the content but needs its room. */
    r = agx_buf_reserve(b, (size_t)n + 1);
    if (r < 0)
        return r;
    va_start(ap, fmt);
    (void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

void agx_buf_consume(struct agx_buf *b, size_t n)
{
    if (n < b->len)
        memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
}

char *agx_buf_take_cstr(struct agx_buf *b)
{
    char *z = realloc(b->data, b->len + 1);

    if (!z)
        return NULL;
    z[b->len] = '\0';
    *b = (struct agx_buf)AGX_BUF_INIT(b->max);
    return z;
}

void agx_buf_done(struct agx_buf *b)
{
    if (!b)
        return;
    free(b->data);
    *b = (struct agx_buf)AGX_BUF_INIT(b->max);
}

/*
 * buf.h: owned bytes, up to a maximum that every buffer must set.
 *
 * Appending past `max` or without memory gives -AGX_RESOURCE_EXHAUSTED and leaves the content
 * unchanged.
 */
#ifndef AGX_BASE_BUF_H
#define AGX_BASE_BUF_H

#include "base/error.h"
#include "base/macros.h"
#include "base/str.h"

#include <stdint.h>

struct agx_buf {
    uint8_t *data;
    size_t len, cap, max;
};

#define AGX_BUF_INIT(limit)                                                                        \
    {                                                                                              \
        .max = (limit)                                                                             \
    }

int agx_buf_reserve_slow(struct agx_buf *b, size_t n) AGX_MUST_CHECK;

/* Makes room for `n` more bytes at data + len. */
AGX_MUST_CHECK static inline int agx_buf_reserve(struct agx_buf *b, size_t n)
{
    if (b->cap - b->len >= n && b->max - b->len >= n)
        return 0;
    return agx_buf_reserve_slow(b, n);
}

AGX_MUST_CHECK static inline int agx_buf_append(struct agx_buf *b, struct agx_str s)
{
    int r = agx_buf_reserve(b, s.len);

    if (r < 0)
        return r;
    if (s.len > 0)
        memcpy(b->data + b->len, s.ptr, s.len);
    b->len += s.len;
    return 0;
}

AGX_MUST_CHECK static inline int agx_buf_push(struct agx_buf *b, uint8_t byte)
{
    int r = agx_buf_reserve(b, 1);

    if (r < 0)
        return r;
    b->data[b->len++] = byte;
    return 0;
}

int agx_buf_printf(struct agx_buf *b, const char *fmt, ...) AGX_PRINTF(2, 3) AGX_MUST_CHECK;

/* Borrowed; valid until the next append. */
static inline struct agx_str agx_buf_peek(const struct agx_buf *b)
{
    return (struct agx_str){ (const char *)b->data, b->len };
}

/* Drops the first `n` bytes (n <= len) and moves the rest to the front. */
void agx_buf_consume(struct agx_buf *b, size_t n);

/* Empties it and keeps its memory. */
static inline void agx_buf_clear(struct agx_buf *b)
{
    b->len = 0;
}

/* Takes the content as a C string and empties the buffer. NULL without memory. */
char *agx_buf_take_cstr(struct agx_buf *b);

/* Frees the bytes; the buffer can be used again. Accepts NULL. */
void agx_buf_done(struct agx_buf *b);

#define _cleanup_buf_ _cleanup_(agx_buf_done)

#endif

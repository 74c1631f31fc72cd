/* outq.c: see outq.h. */
#include "pyext/outq.h"

#include "base/limits.h"
#include "codec/frame.h"

#include "base/banned.h"

void agx_outq_init(struct agx_outq *q)
{
    /* The end of a frame checks AGX_MESSAGE_MAX; credit limits how many frames wait. */
    *q = (struct agx_outq){ .urgent = AGX_BUF_INIT(SIZE_MAX), .bulk = AGX_BUF_INIT(SIZE_MAX) };
}

void agx_outq_done(struct agx_outq *q)
{
    agx_buf_done(&q->urgent);
    agx_buf_done(&q->bulk);
}

static size_t frame_size(const uint8_t *p)
{
    return AGX_FRAME_PREFIX_SIZE +
           ((size_t)p[3] << 24 | (size_t)p[2] << 16 | (size_t)p[1] << 8 | p[0]);
}

/* Whole frames of bulk, as many as fit into a chunk, at least one. */
static size_t next_chunk(const struct agx_outq *q)
{
    size_t n = 0;

    while (q->bulk_at + n < q->bulk.len && n < AGX_OUT_CHUNK)
        n += frame_size(q->bulk.data + q->bulk_at + n);
    return n;
}

struct agx_str agx_outq_next(struct agx_outq *q)
{
    if (q->chunk_left == 0) {
        if (q->urgent_at < q->urgent.len)
            return agx_str_bytes(q->urgent.data + q->urgent_at, q->urgent.len - q->urgent_at);
        q->chunk_left = next_chunk(q);
    }
    if (q->chunk_left == 0)
        return (struct agx_str){ 0 };
    return agx_str_bytes(q->bulk.data + q->bulk_at, q->chunk_left);
}

/* Bytes before `at` are written: drops them if they are all or most of the buffer. */
static void trim(struct agx_buf *b, size_t *at)
{
    if (*at == b->len) {
        if (b->cap > AGX_OUT_KEEP)
            agx_buf_done(b);
        else
            agx_buf_clear(b);
    } else if (*at < AGX_OUT_KEEP || *at < b->len / 2) {
        return;
    } else {
        agx_buf_consume(b, *at);
    }
    *at = 0;
}

void agx_outq_written(struct agx_outq *q, size_t n)
{
    if (q->chunk_left > 0) {
        q->chunk_left -= n;
        q->bulk_at += n;
        trim(&q->bulk, &q->bulk_at);
    } else {
        q->urgent_at += n;
        trim(&q->urgent, &q->urgent_at);
    }
}

/*
 * outq.h: frames that wait to be written to a lane, short answers ahead of streams.
 *
 * Two queues: `urgent` (results, errors of unary calls, credit) and `bulk` (stream items and the
 * ends of streams, which must not overtake the items). Urgent frames go first, but never in the
 * middle of a bulk frame. Bulk frames go in chunks, so that an urgent frame waits for at most one
 * chunk. No I/O here.
 */
#ifndef AGX_PYEXT_OUTQ_H
#define AGX_PYEXT_OUTQ_H

#include "base/buf.h"

struct agx_outq {
    struct agx_buf urgent, bulk; /* append whole frames to these (agx_frame_begin()) */
    size_t urgent_at, bulk_at;   /* how much of each is written */
    size_t chunk_left;           /* bytes of a begun bulk chunk, which must be finished first */
};

void agx_outq_init(struct agx_outq *q);
void agx_outq_done(struct agx_outq *q);

static inline size_t agx_outq_waiting(const struct agx_outq *q)
{
    return q->urgent.len - q->urgent_at + q->bulk.len - q->bulk_at;
}

/* The next bytes to write; empty if nothing waits. Borrowed until the queue changes. */
struct agx_str agx_outq_next(struct agx_outq *q);

/* `n` bytes from agx_outq_next() were written. */
void agx_outq_written(struct agx_outq *q, size_t n);

#endif

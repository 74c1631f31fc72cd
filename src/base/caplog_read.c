/*
 * caplog_read.c: the reader, beside a writer that may be active, dead or hostile.
 *
 * Reads the index, the data, then the index again. Bytes still in the second index were intact
 * while we read them, because the writer removes bytes from the index before it overwrites them.
 */
#include "base/caplog_internal.h"

#include <sched.h>

#include "base/banned.h"

enum {
    TRIES_INDEX = 50, /* a torn index is whole again some microseconds later */
    TRIES_READ = 4,   /* if the writer laps us this often, the reader skips the bytes */
};

static int read_index(int fd, struct agx_caplog_index *ret, struct agx_error **err)
{
    uint8_t bytes[AGX_CAPLOG_INDEX_SIZE];

    for (int i = 0; i < TRIES_INDEX; i++) {
        int fault;
        size_t n = agx_caplog_pread(fd, bytes, sizeof(bytes), 0, &fault);

        if (fault)
            return agx_error_errno(err, fault, "read the index of a log");
        if (n == 0) {
            *ret = (struct agx_caplog_index){ 0 };
            return 0;
        }
        if (n == sizeof(bytes) && agx_caplog_index_decode(bytes, ret))
            return 0;
        (void)sched_yield();
    }
    return agx_error_set(err, AGX_DATA_LOSS, "the index of a log is damaged");
}

/* The first available byte at or after `offset`; x->total if there is none. */
static uint64_t first_kept(const struct agx_caplog_index *x, uint64_t offset)
{
    if (offset < x->head_max && offset < x->total)
        return offset;
    return AGX_MIN(AGX_MAX(offset, x->tail_from), x->total);
}

/* Only the newest part of the stream may have changed, and the tail may have shrunk. */
static bool same_places(const struct agx_caplog_index *a, const struct agx_caplog_index *b)
{
    return a->head_max == b->head_max && a->tail_max == b->tail_max && a->tail_at == b->tail_at;
}

/* Reads one contiguous piece from *at on. Moves *at past missing bytes. */
static int read_run(int fd, const struct agx_caplog_index *x, uint64_t *at, uint8_t *out,
                    size_t size, size_t *ret_n, struct agx_error **err)
{
    uint64_t run, place = agx_caplog_place(x, *at, &run);
    size_t want = (size_t)AGX_MIN(run, size);
    int fault;

    *ret_n = agx_caplog_pread(fd, out, want, place, &fault);
    if (*ret_n > 0 || want == 0)
        return 0;
    if (fault && fault != EIO)
        return agx_error_errno(err, fault, "read a log");
    *at += run;
    return 0;
}

/* Cuts from the front the bytes that the writer has overwritten meanwhile. */
static size_t cut_overwritten(const struct agx_caplog_index *now, uint64_t *at, uint8_t *out,
                              size_t n)
{
    uint64_t gone;

    if (*at < now->head_max || *at >= now->tail_from)
        return n;
    gone = now->tail_from - *at;
    *at = now->tail_from;
    if (gone >= n)
        return 0;
    memmove(out, out + gone, n - (size_t)gone);
    return n - (size_t)gone;
}

int agx_caplog_read(int data_fd, int index_fd, uint64_t offset, uint8_t *out, size_t size,
                    struct agx_caplog_piece *ret, struct agx_error **err)
{
    struct agx_caplog_index before = { 0 }, after = { 0 };
    uint64_t at = offset, next;
    size_t n = 0;
    int r = read_index(index_fd, &before, err);

    if (r < 0)
        return r;
    for (int i = 0; i < TRIES_READ && n == 0; i++) {
        at = first_kept(&before, at);
        next = at;
        if (at >= before.total || at < offset || size == 0)
            break;
        r = read_run(data_fd, &before, &next, out, size, &n, err);
        if (r == 0)
            r = read_index(index_fd, &after, err);
        if (r < 0)
            return r;
        if (same_places(&before, &after)) {
            n = cut_overwritten(&after, &next, out, n);
            at = next;
        } else {
            n = 0;
        }
        before = after;
    }
    *ret = (struct agx_caplog_piece){ .skipped = at > offset ? at - offset : 0,
                                      .len = n,
                                      .total = before.total,
                                      .ended = before.ended };
    return 0;
}

/* store.c: common to all stores: checks arguments and counts queued bytes. */
#include "store/store_internal.h"

#include "base/limits.h"

#include <assert.h>
#include <sys/stat.h>

#include "base/banned.h"

int agx_store_key_cmp(struct agx_str a, struct agx_str b)
{
    size_t n = AGX_MIN(a.len, b.len);
    int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;

    if (order != 0 || a.len == b.len)
        return order;
    return a.len < b.len ? -1 : 1;
}

#ifndef NDEBUG
static bool tables_are_known(const struct agx_store *st, const struct agx_store_batch *b)
{
    struct agx_store_change c;

    for (size_t at = 0; agx_store_batch_next(b, &at, &c);) {
        if (c.table >= st->layout->n_tables)
            return false;
    }
    return true;
}
#endif

int agx_store_commit(struct agx_store *st, struct agx_store_batch **take_batch, agx_done_fn done,
                     void *user, struct agx_error **err)
{
    struct agx_store_batch *b = *take_batch;

    agx_loop_assert(st->loop);
    assert(!st->reading);
    if (!b)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "store: no memory for a batch");
    if (b->error) {
        if (err)
            *err = agx_error_dup(b->error); /* the batch keeps its error */
        return agx_error_wrap(err, -(int)b->error->code, "store");
    }
    if (st->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "store: it is being closed");
    if (b->bytes.len > st->queue_max - st->queued_bytes)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "store: %zu bytes are already waiting for the disk; the limit is %zu",
                             st->queued_bytes, st->queue_max);
    assert(tables_are_known(st, b));
    st->queued_bytes += b->bytes.len;
    *take_batch = NULL;
    b->done = done;
    b->user = user;
    st->ops->commit(st, b);
    return 0;
}

void agx_store_finish(struct agx_store *st, struct agx_store_batch *b)
{
    st->queued_bytes -= b->bytes.len;
    b->done(b->user, AGX_TAKE_PTR(b->error));
    agx_store_batch_free(b);
}

int agx_store_get(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
                  struct agx_error **err)
{
    agx_loop_assert(st->loop);
    assert(!st->reading && table < st->layout->n_tables);
    if (key.len == 0 || key.len > AGX_STORE_KEY_MAX)
        return 0; /* an invalid key cannot exist */
    return st->ops->get(st, table, key, out, err);
}

static int check_range(const struct agx_store *st, const struct agx_store_range *range,
                       struct agx_error **err)
{
    agx_loop_assert(st->loop);
    assert(!st->reading && range->table < st->layout->n_tables);
    (void)st;
    if (range->from.len > AGX_STORE_KEY_MAX || range->to.len > AGX_STORE_KEY_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "store: an end of a range of more than %d bytes", AGX_STORE_KEY_MAX);
    return 0;
}

int agx_store_scan(struct agx_store *st, const struct agx_store_range *range,
                   agx_store_visit_fn visit, void *user, struct agx_error **err)
{
    int r = check_range(st, range, err);

    if (r < 0)
        return r;
    st->reading = true;
    r = st->ops->scan(st, range, visit, user, err);
    st->reading = false;
    return r;
}

int agx_store_backup(struct agx_store *st, int fd, agx_done_fn done, void *user,
                     struct agx_error **err)
{
    struct stat about;

    agx_loop_assert(st->loop);
    assert(!st->reading);
    if (st->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "store: it is being closed");
    if (fstat(fd, &about) < 0)
        return agx_error_errno(err, errno, "store: stat the backup's file");
    if (!S_ISREG(about.st_mode) || about.st_size != 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "store: the backup's file must be an empty regular file");
    return st->ops->backup(st, fd, done, user, err);
}

void agx_store_stats(struct agx_store *st, struct agx_store_stats *ret)
{
    agx_loop_assert(st->loop);
    *ret = (struct agx_store_stats){ 0 };
    st->ops->stats(st, ret);
}

void agx_store_close(struct agx_store *st, agx_done_fn closed, void *user)
{
    agx_loop_assert(st->loop);
    assert(!st->closing && !st->reading);
    st->closing = true;
    st->ops->close(st, closed, user);
}

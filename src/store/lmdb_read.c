/*
 * lmdb_read.c: reads of the loop thread. Each uses one snapshot, which is open only during the
 * call.
 */
#include "store/lmdb_env.h"

#include "store/lmdb_err.h"
#include "store/lmdb_record.h"

#include "base/banned.h"

static struct agx_str str_of(const MDB_val *v)
{
    return agx_str_bytes(v->mv_data, v->mv_size);
}

int agx_lmdb_env_begin_read(struct agx_lmdb_env *e, struct agx_error **err)
{
    int rc;

    pthread_rwlock_rdlock(&e->map_lock);
    rc = e->mdb ? mdb_txn_renew(e->reader) : MDB_PANIC;
    if (rc == 0)
        return 0;
    pthread_rwlock_unlock(&e->map_lock);
    return agx_lmdb_err_set(err, rc, "read '%s'", e->data_path);
}

void agx_lmdb_env_end_read(struct agx_lmdb_env *e)
{
    mdb_txn_reset(e->reader);
    pthread_rwlock_unlock(&e->map_lock);
}

static int get_record(struct agx_lmdb_env *e, unsigned table, struct agx_str key,
                      struct agx_buf *out, struct agx_error **err)
{
    MDB_val k = { key.len, (void *)key.ptr }, record;
    struct agx_str value;
    int rc = mdb_get(e->reader, e->tables[table], &k, &record);

    if (rc == MDB_NOTFOUND)
        return 0;
    if (rc != 0)
        return agx_lmdb_err_set(err, rc, "read '%s'", e->data_path);
    if (!agx_lmdb_record_read(key, str_of(&record), &value))
        return agx_lmdb_env_bad_record(e, e->layout->tables[table], key, err);
    if (agx_buf_append(out, value) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "store: a value of %zu bytes is too large here", value.len);
    return 1;
}

int agx_lmdb_env_get(struct agx_lmdb_env *e, unsigned table, struct agx_str key,
                     struct agx_buf *out, struct agx_error **err)
{
    int r = agx_lmdb_env_begin_read(e, err);

    if (r < 0)
        return r;
    r = get_record(e, table, key, out, err);
    agx_lmdb_env_end_read(e);
    return r;
}

/* A walk over a range, at most `left` records. */
struct walk {
    MDB_cursor *cursor;
    const struct agx_store_range *range;
    size_t left;
    bool started;
};

/* Moves to the walk's first record; returns LMDB's code. */
static int walk_start(struct walk *w, MDB_val *key, MDB_val *record)
{
    struct agx_str edge = w->range->backward ? w->range->to : w->range->from;
    int rc;

    *key = (MDB_val){ edge.len, (void *)edge.ptr };
    if (!w->range->backward)
        return mdb_cursor_get(w->cursor, key, record, edge.len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    if (edge.len == 0)
        return mdb_cursor_get(w->cursor, key, record, MDB_LAST);
    rc = mdb_cursor_get(w->cursor, key, record, MDB_SET_RANGE);
    if (rc == MDB_NOTFOUND)
        return mdb_cursor_get(w->cursor, key, record, MDB_LAST);
    return rc == 0 ? mdb_cursor_get(w->cursor, key, record, MDB_PREV) : rc;
}

/* Moves to the next record; MDB_NOTFOUND at the end of the range. */
static int walk_next(struct walk *w, MDB_val *key, MDB_val *record)
{
    const struct agx_store_range *range = w->range;
    int rc;

    if (w->left-- == 0)
        return MDB_NOTFOUND;
    if (w->started)
        rc = mdb_cursor_get(w->cursor, key, record, range->backward ? MDB_PREV : MDB_NEXT);
    else
        rc = walk_start(w, key, record);
    w->started = true;
    if (rc != 0)
        return rc;
    if (agx_store_key_cmp(str_of(key), range->from) < 0 ||
        (range->to.len > 0 && agx_store_key_cmp(str_of(key), range->to) >= 0))
        return MDB_NOTFOUND;
    return 0;
}

static int visit_record(struct agx_lmdb_env *e, const struct agx_store_range *range,
                        const MDB_val *key, const MDB_val *record, struct agx_str *ret_value,
                        struct agx_error **err)
{
    if (agx_lmdb_record_read(str_of(key), str_of(record), ret_value))
        return 0;
    return agx_lmdb_env_bad_record(e, e->layout->tables[range->table], str_of(key), err);
}

static int scan(struct agx_lmdb_env *e, const struct agx_store_range *range,
                agx_store_visit_fn visit, void *user, struct agx_error **err)
{
    struct walk w = { .range = range, .left = range->limit > 0 ? range->limit : SIZE_MAX };
    MDB_val key, record;
    int rc = mdb_cursor_open(e->reader, e->tables[range->table], &w.cursor), r = 0;

    while (rc == 0 && r == 0 && (rc = walk_next(&w, &key, &record)) == 0) {
        struct agx_str value;

        r = visit_record(e, range, &key, &record, &value, err);
        if (r == 0)
            r = visit(user, str_of(&key), value, err);
    }
    if (w.cursor)
        mdb_cursor_close(w.cursor);
    if (rc != 0 && rc != MDB_NOTFOUND)
        return agx_lmdb_err_set(err, rc, "read '%s'", e->data_path);
    return AGX_MIN(r, 0);
}

int agx_lmdb_env_scan(struct agx_lmdb_env *e, const struct agx_store_range *range,
                      agx_store_visit_fn visit, void *user, struct agx_error **err)
{
    int r = agx_lmdb_env_begin_read(e, err);

    if (r < 0)
        return r;
    r = scan(e, range, visit, user, err);
    agx_lmdb_env_end_read(e);
    return r;
}

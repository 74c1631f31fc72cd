/*
 * lmdb_env.c: opens, grows and writes LMDB's environment.
 *
 * Functions here that return `int rc` return LMDB's codes; those with an `err` return ours.
 *
 * Invariants:
 *  (1) never MDB_WRITEMAP: a stray write must not reach the file.
 *  (2) after the map has grown a transaction is repeated from the start: nothing of the failed one
 *      is left, neither in the file nor in the batches.
 *  (3) after LMDB has failed to write its meta page it refuses everything, even reads (MDB_PANIC),
 *      until it is opened again. We do that at once, and if it fails, with the next commit.
 */
#include "store/lmdb_env.h"

#include "base/mem.h"
#include "store/lmdb_dir.h"
#include "store/lmdb_err.h"
#include "store/lmdb_record.h"

#include <endian.h>
#include <fcntl.h>

#include "base/banned.h"

/* The format of our records in the file; we cannot read another one. */
#define FORMAT 1

/* Our own table. Its only record: format and version, 32 bits each, little endian. */
#define META_TABLE "agentix"
static const struct agx_str meta_key = { "version", 7 };

/* The loop's reader, the backup's, and some spare ones. */
#define READERS 8

static MDB_val val_of(struct agx_str s)
{
    return (MDB_val){ s.len, (void *)s.ptr };
}

static struct agx_str str_of(const MDB_val *v)
{
    return agx_str_bytes(v->mv_data, v->mv_size);
}

static int open_tables(struct agx_lmdb_env *e)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(e->mdb, NULL, 0, &txn);

    if (rc != 0)
        return rc;
    rc = mdb_dbi_open(txn, META_TABLE, MDB_CREATE, &e->meta);
    for (size_t i = 0; rc == 0 && i < e->layout->n_tables; i++)
        rc = mdb_dbi_open(txn, e->layout->tables[i], MDB_CREATE, &e->tables[i]);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    return mdb_txn_commit(txn);
}

static void close_env(struct agx_lmdb_env *e)
{
    if (e->reader)
        mdb_txn_abort(e->reader);
    e->reader = NULL;
    if (e->mdb)
        mdb_env_close(e->mdb);
    e->mdb = NULL;
}

/* LMDB does not do this for the file itself, and a child that inherits it could write to it. */
static int close_on_exec(MDB_env *mdb)
{
    int fd = -1, rc = mdb_env_get_fd(mdb, &fd);

    if (rc == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        rc = errno;
    return rc;
}

/* Requires map_lock exclusively, or an environment that no other thread has yet. */
static int open_env(struct agx_lmdb_env *e)
{
    MDB_envinfo info;
    int rc = mdb_env_create(&e->mdb);

    if (rc == 0)
        rc = mdb_env_set_maxdbs(e->mdb, (MDB_dbi)e->layout->n_tables + 1);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(e->mdb, READERS);
    if (rc == 0)
        rc = mdb_env_set_mapsize(e->mdb, e->map_bytes);
    if (rc == 0)
        rc = mdb_env_open(e->mdb, e->dir, MDB_NOTLS, 0600);
    if (rc == 0)
        rc = close_on_exec(e->mdb);
    if (rc == 0)
        rc = mdb_env_info(e->mdb, &info);
    if (rc == 0)
        e->map_bytes = info.me_mapsize; /* larger if the file is larger */
    if (rc == 0)
        rc = open_tables(e);
    if (rc == 0)
        rc = mdb_txn_begin(e->mdb, NULL, MDB_RDONLY, &e->reader);
    if (rc == 0)
        mdb_txn_reset(e->reader);
    else
        close_env(e);
    return rc;
}

/* The next larger map size; false at the maximum. */
static bool next_size(const struct agx_lmdb_env *e, size_t *ret)
{
    *ret = AGX_MIN(e->map_bytes * 2, e->map_max);
    return *ret > e->map_bytes;
}

/* Enlarges the map while no transaction is open. After a failure the map has its old size, or the
 * environment is closed. */
static int lmdb_env_grow(struct agx_lmdb_env *e)
{
    size_t size;
    int rc = MDB_MAP_FULL;

    pthread_rwlock_wrlock(&e->map_lock);
    if (next_size(e, &size)) {
        rc = mdb_env_set_mapsize(e->mdb, size);
        if (rc == 0) {
            e->map_bytes = size;
            e->growths++;
        } else {
            close_env(e); /* it has no map now */
            (void)open_env(e);
        }
    }
    pthread_rwlock_unlock(&e->map_lock);
    return rc;
}

int agx_lmdb_env_open(const struct agx_lmdb_env_config *c, const struct agx_store_layout *layout,
                      struct agx_lmdb_env **ret_env, struct agx_error **err)
{
    struct agx_lmdb_env *e = agx_new(struct agx_lmdb_env);
    int rc, r;

    e->layout = layout;
    e->map_max = c->map_max;
    e->map_bytes = c->map_bytes;
    e->tables = agx_alloc(layout->n_tables * sizeof(MDB_dbi));
    e->dir = strdup(c->dir);
    if (!e->dir || asprintf(&e->data_path, "%s/data.mdb", c->dir) < 0)
        abort();
    pthread_rwlock_init(&e->map_lock, NULL);
    /* The first tables of a new file may not fit into a map of a few pages. */
    while ((rc = open_env(e)) == MDB_MAP_FULL && next_size(e, &e->map_bytes))
        ;
    if (rc != 0) {
        r = agx_lmdb_err_set(err, rc, "open store '%s'", e->data_path);
        agx_lmdb_env_close(e);
        return r;
    }
    *ret_env = e;
    return 0;
}

struct agx_lmdb_env *agx_lmdb_env_close(struct agx_lmdb_env *e)
{
    if (!e)
        return NULL;
    close_env(e);
    pthread_rwlock_destroy(&e->map_lock);
    free(e->tables);
    free(e->data_path);
    free(e->dir);
    free(e);
    return NULL;
}

int agx_lmdb_env_bad_record(const struct agx_lmdb_env *e, const char *table, struct agx_str key,
                            struct agx_error **err)
{
    return agx_lmdb_dir_damaged(e->data_path, err, "the checksum of '%.*s' in '%s' differs",
                                AGX_STR_ARG(key), table);
}

static int read_version(struct agx_lmdb_env *e, uint32_t *ret_version, struct agx_error **err)
{
    MDB_val key = val_of(meta_key), record;
    struct agx_str value;
    uint32_t words[2];
    int rc = mdb_get(e->reader, e->meta, &key, &record);

    if (rc == MDB_NOTFOUND) {
        *ret_version = 0;
        return 0;
    }
    if (rc != 0)
        return agx_lmdb_err_set(err, rc, "read the version of '%s'", e->data_path);
    if (!agx_lmdb_record_read(meta_key, str_of(&record), &value) || value.len != sizeof(words))
        return agx_lmdb_env_bad_record(e, META_TABLE, meta_key, err);
    memcpy(words, value.ptr, sizeof(words));
    if (le32toh(words[0]) != FORMAT)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "'%s' has the file format %u; this program reads format %d: use the "
                             "program that wrote it",
                             e->data_path, le32toh(words[0]), FORMAT);
    *ret_version = le32toh(words[1]);
    return 0;
}

int agx_lmdb_env_version(struct agx_lmdb_env *e, uint32_t *ret_version, struct agx_error **err)
{
    int r = agx_lmdb_env_begin_read(e, err);

    if (r < 0)
        return r;
    r = read_version(e, ret_version, err);
    agx_lmdb_env_end_read(e);
    return r;
}

static int lmdb_env_put(MDB_txn *txn, MDB_dbi dbi, struct agx_str key, struct agx_str value)
{
    MDB_val k = val_of(key), v = { AGX_LMDB_RECORD_SUM + value.len, NULL };
    int rc = mdb_put(txn, dbi, &k, &v, MDB_RESERVE);

    if (rc == 0)
        agx_lmdb_record_write(v.mv_data, key, value);
    return rc;
}

static int put_version(MDB_txn *txn, MDB_dbi meta, uint32_t version)
{
    const uint32_t words[2] = { htole32(FORMAT), htole32(version) };

    return lmdb_env_put(txn, meta, meta_key, agx_str_bytes(words, sizeof(words)));
}

static int delete_range(MDB_txn *txn, MDB_dbi dbi, struct agx_str from, struct agx_str to)
{
    MDB_val key = val_of(from), value;
    MDB_cursor *cursor;
    int rc = mdb_cursor_open(txn, dbi, &cursor);

    if (rc != 0)
        return rc;
    rc = mdb_cursor_get(cursor, &key, &value, from.len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    while (rc == 0 && (to.len == 0 || agx_store_key_cmp(str_of(&key), to) < 0)) {
        rc = mdb_cursor_del(cursor, 0);
        if (rc == 0)
            rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static int apply_change(struct agx_lmdb_env *e, MDB_txn *txn, const struct agx_store_change *c)
{
    MDB_val key = val_of(c->key);
    int rc = 0;

    if (c->kind == AGX_STORE_PUT)
        return lmdb_env_put(txn, e->tables[c->table], c->key, c->value);
    if (c->kind == AGX_STORE_DELETE_RANGE)
        return delete_range(txn, e->tables[c->table], c->key, c->value);
    if (c->kind == AGX_STORE_DELETE)
        rc = mdb_del(txn, e->tables[c->table], &key, NULL);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

/* Returns LMDB's rc; when the expectation does not hold, 0 and the batch has its error. */
static int check_expectation(struct agx_lmdb_env *e, MDB_txn *txn, const struct agx_store_change *c,
                             struct agx_store_batch *b)
{
    const char *table = e->layout->tables[c->table];
    MDB_val key = val_of(c->key), record;
    struct agx_str value = { NULL, 0 };
    int rc = mdb_get(txn, e->tables[c->table], &key, &record);

    if (rc != 0 && rc != MDB_NOTFOUND)
        return rc;
    if (rc == 0 && !agx_lmdb_record_read(c->key, str_of(&record), &value)) {
        (void)agx_lmdb_env_bad_record(e, table, c->key, &b->error);
        return 0;
    }
    if (rc == 0)
        (void)agx_store_batch_refuse(c, table, &b->error);
    return 0;
}

/* Checks the expectations first, and applies the changes only when all hold. */
static int apply_batch(struct agx_lmdb_env *e, MDB_txn *txn, struct agx_store_batch *b)
{
    struct agx_store_change c;
    int rc = 0;

    for (size_t at = 0; rc == 0 && !b->error && agx_store_batch_next(b, &at, &c);) {
        if (c.kind == AGX_STORE_EXPECT_ABSENT)
            rc = check_expectation(e, txn, &c, b);
    }
    if (b->error)
        return 0;
    for (size_t at = 0; rc == 0 && agx_store_batch_next(b, &at, &c);)
        rc = apply_change(e, txn, &c);
    return rc;
}

/* One transaction from begin to commit or abort. */
static int try_commit(struct agx_lmdb_env *e, const struct agx_store_queue *q, uint32_t version)
{
    struct agx_store_batch *b = q ? agx_store_queue_peek(q) : NULL;
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(e->mdb, NULL, 0, &txn);

    if (rc != 0)
        return rc;
    for (; rc == 0 && b; b = AGX_LIST_NEXT(&q->batches, b, node)) {
        b->error = agx_error_free(b->error); /* of an earlier try */
        rc = apply_batch(e, txn, b);
    }
    if (rc == 0 && version != 0)
        rc = put_version(txn, e->meta, version);
    if (rc != 0) {
        mdb_txn_abort(txn);
        return rc;
    }
    return mdb_txn_commit(txn);
}

static int reopen(struct agx_lmdb_env *e)
{
    int rc;

    pthread_rwlock_wrlock(&e->map_lock);
    close_env(e);
    rc = open_env(e);
    pthread_rwlock_unlock(&e->map_lock);
    return rc;
}

/* After a failure: makes reads work again. */
static void revive(struct agx_lmdb_env *e)
{
    MDB_txn *txn = NULL;
    int rc = e->mdb ? mdb_txn_begin(e->mdb, NULL, 0, &txn) : 0;

    if (txn)
        mdb_txn_abort(txn);
    if (rc == MDB_PANIC)
        (void)reopen(e);
}

int agx_lmdb_env_commit(struct agx_lmdb_env *e, const struct agx_store_queue *q, uint32_t version,
                        struct agx_error **err)
{
    /* Only this thread replaces `mdb`, so it may read it without the lock. */
    int rc = e->mdb ? 0 : reopen(e);

    if (rc == 0)
        rc = try_commit(e, q, version);
    while (rc == MDB_MAP_FULL && (rc = lmdb_env_grow(e)) == 0)
        rc = try_commit(e, q, version);
    if (rc == 0)
        return 0;
    revive(e);
    if (rc == MDB_MAP_FULL)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "'%s' has reached its limit of %zu bytes",
                             e->data_path, e->map_max);
    return agx_lmdb_err_set(err, rc, "write '%s'", e->data_path);
}

void agx_lmdb_env_stats(struct agx_lmdb_env *e, struct agx_store_stats *ret)
{
    MDB_envinfo info;
    MDB_stat stat;

    pthread_rwlock_rdlock(&e->map_lock);
    ret->map_bytes = e->map_bytes;
    ret->map_growths = e->growths;
    if (e->mdb && mdb_env_info(e->mdb, &info) == 0 && mdb_env_stat(e->mdb, &stat) == 0)
        ret->file_bytes = (info.me_last_pgno + 1) * stat.ms_psize;
    pthread_rwlock_unlock(&e->map_lock);
}

int agx_lmdb_env_copy(struct agx_lmdb_env *e, int fd, struct agx_error **err)
{
    int rc;

    pthread_rwlock_rdlock(&e->map_lock);
    rc = e->mdb ? mdb_env_copyfd2(e->mdb, fd, MDB_CP_COMPACT) : MDB_PANIC;
    pthread_rwlock_unlock(&e->map_lock);
    if (rc == 0 && fsync(fd) < 0)
        rc = errno;
    return rc == 0 ? 0 : agx_lmdb_err_set(err, rc, "back up '%s'", e->data_path);
}

/*
 * lmdb_env.h: LMDB's environment: the map of the file, the tables in it, transactions.
 *
 * Two sorts of threads use one at the same time: one that writes (commit, from any one thread at a
 * time) and those that read: the loop's thread (get, scan), and one that copies. LMDB lets
 * them go side by side but for one thing: the map can be replaced by a larger one only while no
 * transaction is open. So readers hold `map_lock` shared, and growing takes it alone.
 */
#ifndef AGX_STORE_LMDB_ENV_H
#define AGX_STORE_LMDB_ENV_H

#include "store/store.h"
#include "store/store_batch.h"

#include <lmdb.h>
#include <pthread.h>

struct agx_lmdb_env_config {
    const char *dir;
    size_t map_bytes; /* initial address space */
    size_t map_max;   /* maximum address space */
};

struct agx_lmdb_env {
    const struct agx_store_layout *layout;
    char *dir, *data_path;
    size_t map_max;
    pthread_rwlock_t map_lock;
    /* Under map_lock: shared to use, exclusive to replace. */
    MDB_env *mdb; /* NULL: reopening failed */
    MDB_dbi meta;
    MDB_dbi *tables;
    MDB_txn *reader; /* the loop thread's; reset between reads */
    size_t map_bytes;
    uint64_t growths;
};

/* Opens the file; creates it and the layout's tables if missing. The directory must be locked and
 * examined (store/lmdb_dir.h). */
int agx_lmdb_env_open(const struct agx_lmdb_env_config *c, const struct agx_store_layout *layout,
                      struct agx_lmdb_env **ret_env, struct agx_error **err) AGX_MUST_CHECK;

/* Requires that no transaction is open. Accepts NULL. */
struct agx_lmdb_env *agx_lmdb_env_close(struct agx_lmdb_env *e);

/* The version of the owner's data; 0 in a new file. -AGX_FAILED_PRECONDITION for another file
 * format or a file that is not ours. */
int agx_lmdb_env_version(struct agx_lmdb_env *e, uint32_t *ret_version,
                         struct agx_error **err) AGX_MUST_CHECK;

/*
 * Stores the batches (NULL: none) in one durable transaction. A batch whose expectations do
 * not hold gets its error and changes nothing; a failure of the transaction is returned, and then
 * nothing is stored. `version`, if not 0, becomes that of the owner's data.
 *
 * The map grows as needed. Any thread, one at a time.
 */
int agx_lmdb_env_commit(struct agx_lmdb_env *e, const struct agx_store_queue *q, uint32_t version,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Writes a compact copy of the last committed state. Runs on its own thread. */
int agx_lmdb_env_copy(struct agx_lmdb_env *e, int fd, struct agx_error **err) AGX_MUST_CHECK;

/* Fills in the figures of the map and the file. */
void agx_lmdb_env_stats(struct agx_lmdb_env *e, struct agx_store_stats *ret);

/* As in struct agx_store_ops. Loop thread. */
int agx_lmdb_env_get(struct agx_lmdb_env *e, unsigned table, struct agx_str key,
                     struct agx_buf *out, struct agx_error **err) AGX_MUST_CHECK;
int agx_lmdb_env_scan(struct agx_lmdb_env *e, const struct agx_store_range *range,
                      agx_store_visit_fn visit, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* Loop thread: opens a snapshot, and prevents growth of the map until agx_lmdb_env_end_read(). */
int agx_lmdb_env_begin_read(struct agx_lmdb_env *e, struct agx_error **err) AGX_MUST_CHECK;
void agx_lmdb_env_end_read(struct agx_lmdb_env *e);

/* Makes a -AGX_DATA_LOSS error for a record with a wrong checksum. */
int agx_lmdb_env_bad_record(const struct agx_lmdb_env *e, const char *table, struct agx_str key,
                            struct agx_error **err);

#endif

/*
 * store.h: bytes under keys in named tables, kept for ever: the vtable, and what callers use.
 *
 * A store knows nothing of what it keeps. Its owner names the tables (struct agx_store_layout) and
 * says which version of its own data that is. Data of any other version are refused.
 *
 * Writing: changes are gathered in a batch (store/store_batch.h) and committed. A batch is durable
 * as a whole or leaves no trace. All batches of one turn of the loop, and those that come while the
 * disk is busy, share one commit.
 *
 * Reading: at once, on the loop thread, of what is committed. Once a batch's `done` came without an
 * error, every read sees it; before that a read may see it as a whole, or not. Who must see what is
 * on its way to the disk keeps it in memory, or says in the batch what it relies on (`expect`).
 *
 * Loop thread only. docs/design/store.md has the whole story.
 */
#ifndef AGX_STORE_STORE_H
#define AGX_STORE_STORE_H

#include "base/buf.h"
#include "loop/loop.h"

struct agx_store;
struct agx_store_batch;

/* What the owner keeps. Lives as long as the store. */
struct agx_store_layout {
    const char *const *tables; /* their names; elsewhere a table is its index in here */
    size_t n_tables;
    uint32_t version; /* of the owner's data, from 1 */
};

/* The records with from <= key < to, in the order of their bytes. */
struct agx_store_range {
    unsigned table;
    struct agx_str from; /* empty: from the first */
    struct agx_str to;   /* empty: to the last */
    bool backward;
    size_t limit; /* at most so many; 0: all */
};

/*
 * One record of a scan. Key and value are borrowed for this call, and it must call nothing of the
 * store: a snapshot is held open meanwhile. 0: go on; positive: enough; negative: the scan ends
 * with that error.
 */
typedef int (*agx_store_visit_fn)(void *user, struct agx_str key, struct agx_str value,
                                  struct agx_error **err);

struct agx_store_stats {
    uint64_t commits;     /* transactions that were made durable */
    uint64_t batches;     /* in those; batches / commits is how well grouping works */
    uint64_t refused;     /* batches whose expectations did not hold */
    uint64_t failed;      /* batches that could not be made durable */
    uint64_t bytes;       /* of the batches that were stored */
    uint64_t group_max;   /* most batches in one commit */
    uint64_t map_bytes;   /* address space set aside; 0 where there is none */
    uint64_t file_bytes;  /* the file's size, its free pages included; 0 where there is none */
    uint64_t map_growths; /* how often the address space had to grow */
};

/* What an implementation provides. Tables, keys and ranges were checked before. */
struct agx_store_ops {
    const char *name;
    /* Owns the batch from now on: has its `done` called, in the order of commits. */
    void (*commit)(struct agx_store *st, struct agx_store_batch *batch);
    /* 1: the value was appended to `out`; 0: there is none. */
    int (*get)(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
               struct agx_error **err);
    int (*scan)(struct agx_store *st, const struct agx_store_range *range, agx_store_visit_fn visit,
                void *user, struct agx_error **err);
    int (*backup)(struct agx_store *st, int fd, agx_done_fn done, void *user,
                  struct agx_error **err);
    void (*stats)(struct agx_store *st, struct agx_store_stats *ret);
    /* Finishes what was committed, then frees the store and calls `closed`. */
    void (*close)(struct agx_store *st, agx_done_fn closed, void *user);
};

/* Embedded first by implementations. */
struct agx_store {
    const struct agx_store_ops *ops;
    const struct agx_store_layout *layout;
    struct agx_loop *loop;
    size_t queued_bytes, queue_max; /* of batches whose `done` is not yet called */
    bool closing;
    bool reading; /* a scan is under way */
};

/*
 * Takes the batch and makes it durable; `done` follows (loop/loop.h), in the order of commits.
 * Failures of `done`: what an expectation says, -AGX_RESOURCE_EXHAUSTED when disk or map are full,
 * -AGX_UNAVAILABLE when the disk cannot be written. The batch has left no trace then.
 *
 * Failures at once, without `done`, and the batch stays the caller's: what spoilt the batch while
 * it was filled; -AGX_RESOURCE_EXHAUSTED when too many bytes wait for the disk; -AGX_UNAVAILABLE
 * when the store is closing.
 */
int agx_store_commit(struct agx_store *st, struct agx_store_batch **take_batch, agx_done_fn done,
                     void *user, struct agx_error **err) AGX_MUST_CHECK;

/* 1: the value was appended to `out`; 0: no such key. -AGX_DATA_LOSS when the record is damaged. */
int agx_store_get(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Calls `visit` for each record of the range, all of one snapshot. 0, or negative. */
int agx_store_scan(struct agx_store *st, const struct agx_store_range *range,
                   agx_store_visit_fn visit, void *user, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Writes one consistent state of all tables into an empty regular file, which the caller keeps
 * open until `done`; commits go on meanwhile. Nothing else: a pipe that nobody reads could hold
 * commits up. One at a time: -AGX_FAILED_PRECONDITION while another runs. One that hangs is given
 * up when the store is closed: AGX_DEADLINE_EXCEEDED.
 */
int agx_store_backup(struct agx_store *st, int fd, agx_done_fn done, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

void agx_store_stats(struct agx_store *st, struct agx_store_stats *ret);

/* Finishes what was committed (each `done` comes, and may still read), then frees the store and
 * calls `closed`, which may be NULL. */
void agx_store_close(struct agx_store *st, agx_done_fn closed, void *user);

/* The order of keys: by their bytes, a prefix first. Negative, 0 or positive. */
int agx_store_key_cmp(struct agx_str a, struct agx_str b);

#endif

/*
 * store.h: a durable store of keys and values in named tables: the vtable, and the API for callers.
 *
 * A store knows nothing of what it keeps. Its owner names the tables (struct agx_store_layout) and
 * says which version of its own data that is. Data of any other version are refused.
 *
 * Writing: changes are collected in a batch (store/store_batch.h) and committed. A batch is durable
 * as a whole or leaves no trace. All batches of one turn of the loop, and those that arrive while
 * the disk is busy, share one commit.
 *
 * Reading: at once, on the loop thread, of committed data. After a batch's `done` without an error
 * every read sees it; before that a read may see the whole batch or nothing of it. A caller that
 * must see data on their way to the disk keeps them in memory, or states in the batch what it
 * relies on (`expect`).
 *
 * Loop thread only. docs/design/store.md has the details.
 */
#ifndef AGX_STORE_STORE_H
#define AGX_STORE_STORE_H

#include "base/buf.h"
#include "loop/loop.h"

struct agx_store;
struct agx_store_batch;

/* What the owner keeps. Lives as long as the store. */
struct agx_store_layout {
    const char *const *tables; /* their names; a table's id is its index here */
    size_t n_tables;
    uint32_t version; /* of the owner's data, from 1 */
};

/* The records with from <= key < to, in byte order of the keys. */
struct agx_store_range {
    unsigned table;
    struct agx_str from; /* empty: from the first */
    struct agx_str to;   /* empty: to the last */
    bool backward;
    size_t limit; /* maximum number of records; 0: all */
};

/*
 * One record of a scan. Key and value are borrowed for this call. It must not call the store, since
 * a snapshot is open. 0: go on; positive: stop; negative: the scan ends with that error.
 */
typedef int (*agx_store_visit_fn)(void *user, struct agx_str key, struct agx_str value,
                                  struct agx_error **err);

struct agx_store_stats {
    uint64_t commits;     /* durable transactions */
    uint64_t batches;     /* batches in them; batches / commits shows how well grouping works */
    uint64_t refused;     /* batches whose expectations did not hold */
    uint64_t failed;      /* batches that could not be stored */
    uint64_t bytes;       /* of stored batches */
    uint64_t group_max;   /* the most batches in one commit */
    uint64_t map_bytes;   /* reserved address space; 0 for none */
    uint64_t file_bytes;  /* the file's size with its free pages; 0 for none */
    uint64_t map_growths; /* how often the address space grew */
};

/* The functions of an implementation. Tables, keys and ranges are valid. */
struct agx_store_ops {
    const char *name;
    /* Takes the batch and calls its `done`, in the order of commits. */
    void (*commit)(struct agx_store *st, struct agx_store_batch *batch);
    /* 1: appended the value to `out`; 0: no such key. */
    int (*get)(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
               struct agx_error **err);
    int (*scan)(struct agx_store *st, const struct agx_store_range *range, agx_store_visit_fn visit,
                void *user, struct agx_error **err);
    int (*backup)(struct agx_store *st, int fd, agx_done_fn done, void *user,
                  struct agx_error **err);
    void (*stats)(struct agx_store *st, struct agx_store_stats *ret);
    /* Finishes the commits in flight, then frees the store and calls `closed`. */
    void (*close)(struct agx_store *st, agx_done_fn closed, void *user);
};

/* The first member of each implementation. */
struct agx_store {
    const struct agx_store_ops *ops;
    const struct agx_store_layout *layout;
    struct agx_loop *loop;
    size_t queued_bytes, queue_max; /* of batches without `done` yet */
    bool closing;
    bool reading; /* a scan is running */
};

/*
 * Takes the batch and makes it durable; `done` follows (loop/loop.h), in the order of commits.
 * Errors of `done`: that of an expectation, -AGX_RESOURCE_EXHAUSTED when disk or map are full,
 * -AGX_UNAVAILABLE when the disk cannot be written. Such a batch has left no trace.
 *
 * Errors at once, without `done`, and the caller keeps the batch: an error while it was filled;
 * -AGX_RESOURCE_EXHAUSTED when too many bytes wait for the disk; -AGX_UNAVAILABLE when the store is
 * closing.
 */
int agx_store_commit(struct agx_store *st, struct agx_store_batch **take_batch, agx_done_fn done,
                     void *user, struct agx_error **err) AGX_MUST_CHECK;

/* 1: appended the value to `out`; 0: no such key. -AGX_DATA_LOSS for a damaged record. */
int agx_store_get(struct agx_store *st, unsigned table, struct agx_str key, struct agx_buf *out,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Calls `visit` for each record of the range, in one snapshot. 0, or negative. */
int agx_store_scan(struct agx_store *st, const struct agx_store_range *range,
                   agx_store_visit_fn visit, void *user, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Writes one consistent state of all tables into an empty regular file, which the caller keeps open
 * until `done`; commits continue meanwhile. Only a regular file, because an unread pipe could block
 * commits. One backup at a time: -AGX_FAILED_PRECONDITION while another runs. A backup that hangs
 * is given up when the store is closed: AGX_DEADLINE_EXCEEDED.
 */
int agx_store_backup(struct agx_store *st, int fd, agx_done_fn done, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

void agx_store_stats(struct agx_store *st, struct agx_store_stats *ret);

/* Finishes the commits in flight (each `done` is called, and may still read), then frees the store
 * and calls `closed`, which may be NULL. */
void agx_store_close(struct agx_store *st, agx_done_fn closed, void *user);

/* The order of keys: by their bytes, a prefix first. Negative, 0 or positive. */
int agx_store_key_cmp(struct agx_str a, struct agx_str b);

#endif

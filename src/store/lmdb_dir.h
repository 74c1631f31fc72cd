/*
 * lmdb_dir.h: the store's directory: who may use it, and whether its file can be opened.
 *
 *     data.mdb   LMDB's file, 0600
 *     lock.mdb   LMDB's table of readers; worth nothing after the process
 *     lock       held (flock) by the process that uses the store, with its number inside
 *     state      whether the store was closed in good order, and what data.mdb was then
 *
 * LMDB maps its file: what is missing at its end, or nonsense in its pages, ends in a signal and
 * not in an error. So the file is looked at before it is mapped.
 */
#ifndef AGX_STORE_LMDB_DIR_H
#define AGX_STORE_LMDB_DIR_H

#include "base/error.h"

#include <stdint.h>

struct agx_lmdb_dir {
    char *path;
    char *data_path; /* of data.mdb, for messages */
    int fd;
    int lock_fd;
    int state_fd; /* -1: there is no state yet */
};

enum agx_lmdb_trust {
    AGX_LMDB_NEW,     /* there is nothing yet */
    AGX_LMDB_TRUSTED, /* as it was closed */
    AGX_LMDB_SUSPECT, /* not closed, or changed since: look at every page, in a child */
};

/* Makes the directory where it is missing (not those above it), 0700, and takes its lock:
 * -AGX_FAILED_PRECONDITION when another process has it. */
int agx_lmdb_dir_open(const char *path, struct agx_lmdb_dir **ret_dir,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Lets go of the lock. Accepts NULL. */
struct agx_lmdb_dir *agx_lmdb_dir_close(struct agx_lmdb_dir *d);

/* Compares size, meta pages and state. -AGX_DATA_LOSS for a file that cannot be opened. */
int agx_lmdb_dir_examine(struct agx_lmdb_dir *d, enum agx_lmdb_trust *ret_trust,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Says in `state` that the store is in use. Before the first write. */
int agx_lmdb_dir_mark_open(struct agx_lmdb_dir *d, struct agx_error **err) AGX_MUST_CHECK;

/* Says in `state` that data.mdb, as it is now, is whole. After LMDB has closed it. */
int agx_lmdb_dir_mark_clean(struct agx_lmdb_dir *d, struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_DATA_LOSS: what is wrong, with the file and what to do. */
int agx_lmdb_dir_damaged(const char *data_path, struct agx_error **err, const char *fmt, ...)
    AGX_PRINTF(3, 4);

#endif

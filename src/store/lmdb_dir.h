/*
 * lmdb_dir.h: the store's directory: locks it, and checks whether its file can be opened.
 *
 *     data.mdb   LMDB's file, 0600
 *     lock.mdb   LMDB's table of readers; meaningless after the process
 *     lock       locked (flock) by the process that uses the store; contains its pid
 *     state      whether the store was closed cleanly, and data.mdb's properties then
 *
 * LMDB maps its file: a truncated file or damaged pages cause a signal instead of an error. So the
 * file is checked before it is mapped.
 */
#ifndef AGX_STORE_LMDB_DIR_H
#define AGX_STORE_LMDB_DIR_H

#include "base/error.h"

#include <stdint.h>

struct agx_lmdb_dir {
    char *path;
    char *data_path; /* path of data.mdb, for messages */
    int fd;
    int lock_fd;
    int state_fd; /* -1: no state yet */
};

enum agx_lmdb_trust {
    AGX_LMDB_NEW,     /* no store yet */
    AGX_LMDB_TRUSTED, /* unchanged since a clean close */
    AGX_LMDB_SUSPECT, /* not closed, or changed since: check every page, in a child */
};

/* Creates the directory if missing (not its parents), with mode 0700, and locks it:
 * -AGX_FAILED_PRECONDITION when another process holds the lock. */
int agx_lmdb_dir_open(const char *path, struct agx_lmdb_dir **ret_dir,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Releases the lock. Accepts NULL. */
struct agx_lmdb_dir *agx_lmdb_dir_close(struct agx_lmdb_dir *d);

/* Compares size, meta pages and state. -AGX_DATA_LOSS for a file that cannot be opened. */
int agx_lmdb_dir_examine(struct agx_lmdb_dir *d, enum agx_lmdb_trust *ret_trust,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Records in `state` that the store is in use. Call before the first write. */
int agx_lmdb_dir_mark_open(struct agx_lmdb_dir *d, struct agx_error **err) AGX_MUST_CHECK;

/* Records in `state` that data.mdb is intact as it is now. Call after LMDB has closed it. */
int agx_lmdb_dir_mark_clean(struct agx_lmdb_dir *d, struct agx_error **err) AGX_MUST_CHECK;

/* -AGX_DATA_LOSS; the message has the file, the damage and what to do. */
int agx_lmdb_dir_damaged(const char *data_path, struct agx_error **err, const char *fmt, ...)
    AGX_PRINTF(3, 4);

#endif

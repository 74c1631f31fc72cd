/*
 * copytree.h: which parts of a copy's source go into the sandbox: agbox.md 6.5.
 *
 * Blocking: for a pool thread. The source is opened once, and everything beneath it is reached from
 * there without following a symlink, so another writer in the source cannot make us read elsewhere.
 */
#ifndef AGX_BACKEND_FILES_COPYTREE_H
#define AGX_BACKEND_FILES_COPYTREE_H

#include "backend/files/sources.h"

#include <stdatomic.h>
#include <sys/stat.h>

struct agx_copytree;

/* A file, a directory (before its content) or a symlink. Borrowed for the call. */
struct agx_copytree_entry {
    const char *path; /* relative to the source; "": the source is a file, and this is it */
    const struct stat *st;
    int fd;           /* a file's, at offset 0; otherwise -1 */
    const char *link; /* the text of a symlink; otherwise NULL */
};

typedef int (*agx_copytree_fn)(void *user, const struct agx_copytree_entry *e,
                               struct agx_error **err);

/* Opens a source that `asker` may be given. `copy` is borrowed until close. Setting *stop ends the
 * walk with -AGX_CANCELLED. */
int agx_copytree_open(const struct agx_copy *copy, const struct agx_sources_asker *asker,
                      const atomic_bool *stop, struct agx_copytree **ret_tree,
                      struct agx_error **err) AGX_MUST_CHECK;

/* The stat of the source itself, a directory or a file. Borrowed. */
const struct stat *agx_copytree_stat(const struct agx_copytree *t);

/*
 * Calls `fn` for each entry. The only guaranteed order: a directory comes before its content. A
 * negative result of `fn` ends the walk. -AGX_FAILED_PRECONDITION for a symlink that leads out of
 * the source and that no .gitignore covers, and for a socket, FIFO or device.
 */
int agx_copytree_each(struct agx_copytree *t, agx_copytree_fn fn, void *user,
                      struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; returns NULL. */
struct agx_copytree *agx_copytree_close(struct agx_copytree *t);

static inline void agx_copytree_closep(struct agx_copytree **t)
{
    *t = agx_copytree_close(*t);
}

#endif

/*
 * hostpath.h: opens a host path component by component, so that checking, mounting and copying all
 * use one descriptor.
 *
 * A path that is resolved twice may lead to two different files. Here each component is opened
 * without following symlinks, and checks are made on what is open. A symlink is followed by its
 * text, and only where no other user can have made it:
 *
 *   - it and its directory belong to root, to us or to the caller;
 *   - group and others cannot write to the directory, or it is sticky;
 *   - it is not at or beneath a directory that a sandbox has, or had, as a writable mount.
 *
 * Blocking: for a pool thread.
 */
#ifndef AGX_BACKEND_FILES_HOSTPATH_H
#define AGX_BACKEND_FILES_HOSTPATH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agx_writables;

/* Identifies a file, whatever its name. The birth time distinguishes it from an earlier file with
 * the same inode number; 0 where the file system does not record it. */
struct agx_file_id {
    uint64_t dev, ino, birth_ns;
};

static inline bool agx_file_id_eq(const struct agx_file_id *a, const struct agx_file_id *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->birth_ns == b->birth_ns;
}

struct agx_hostpath_rules {
    uid_t caller;                    /* trusted besides root and us */
    uid_t unmapped;                  /* host root's uid as seen in our user namespace; 0:
                                      * unchanged */
    struct agx_writables *writables; /* NULL: there are none */
    const struct agx_file_id *marks; /* files that `marked` reports */
    size_t n_marks;
    bool follow_last; /* else a symlink at the end is itself opened */
};

struct agx_hostpath {
    int fd; /* O_PATH */
    struct agx_file_id id;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    bool marked; /* it is, or is beneath, one of `marks` */
    char *path;  /* without symlinks, except in the last component */
};

#define AGX_HOSTPATH_INIT                                                                          \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* `path` is absolute. -AGX_INVALID_ARGUMENT with the symlink that is not followed, and why;
 * otherwise the kernel's error. */
int agx_hostpath_open(const char *path, const struct agx_hostpath_rules *rules,
                      struct agx_hostpath *ret, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; afterwards as before agx_hostpath_open(). */
void agx_hostpath_done(struct agx_hostpath *h);

/* Identifies the file of a descriptor. -errno. */
int agx_hostpath_identify(int fd, struct agx_file_id *ret);

#endif

/*
 * hostpath.h: a path of the host, opened part by part: one descriptor for what is checked, mounted
 * and copied.
 *
 * A path that is resolved twice may lead to two things. Here each part is opened without following
 * a symlink, and what is decided is decided about what is open. A symlink is followed by its text,
 * and only where nobody else can have made it:
 *
 *   - it and its directory belong to root, to us or to the caller;
 *   - group and others cannot write to the directory, or it is sticky;
 *   - it is not at or beneath a directory that a sandbox has, or had, as a writable mount.
 *
 * Blocking: for a pool thread.
 */
#ifndef AGX_BACKEND_HOSTPATH_H
#define AGX_BACKEND_HOSTPATH_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agx_writables;

/* A file, whatever it is called. The time of its birth tells it from an earlier one whose number it
 * was given; 0 where the file system knows none. */
struct agx_file_id {
    uint64_t dev, ino, birth_ns;
};

static inline bool agx_file_id_eq(const struct agx_file_id *a, const struct agx_file_id *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->birth_ns == b->birth_ns;
}

struct agx_hostpath_rules {
    uid_t caller;                    /* besides root and us */
    uid_t unmapped;                  /* what root of the host is called here; 0: as he is */
    struct agx_writables *writables; /* NULL: there are none */
    const struct agx_file_id *marks; /* files, of which `marked` tells */
    size_t n_marks;
    bool follow_last; /* else a symlink at the end is what is opened */
};

struct agx_hostpath {
    int fd; /* O_PATH */
    struct agx_file_id id;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    bool marked; /* it is one of `marks`, or beneath one */
    char *path;  /* without symlinks but for the last part */
};

#define AGX_HOSTPATH_INIT                                                                          \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* `path` is absolute. -AGX_INVALID_ARGUMENT with the symlink that is not followed, and why; what
 * the kernel says otherwise. */
int agx_hostpath_open(const char *path, const struct agx_hostpath_rules *rules,
                      struct agx_hostpath *ret, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; as before agx_hostpath_open() afterwards. */
void agx_hostpath_done(struct agx_hostpath *h);

/* What a descriptor is of. -errno. */
int agx_hostpath_identify(int fd, struct agx_file_id *ret);

#endif

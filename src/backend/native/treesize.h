/*
 * treesize.h: how much disk the files of a directory take, which somebody else may be writing to.
 *
 * No symlink is followed and no other file system entered; nothing is changed. Whoever made the
 * tree chose how deep and how large it is, so both have limits.
 */
#ifndef AGX_BACKEND_NATIVE_TREESIZE_H
#define AGX_BACKEND_NATIVE_TREESIZE_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdint.h>

struct agx_treesize_limits {
    unsigned depth;          /* of directories in each other, at most AGX_NATIVE_USE_DEPTH */
    uint64_t deadline_ns;    /* agx_clock_ns() at which it is given up */
    const atomic_bool *stop; /* somebody else wants it to end; may be NULL */
};

/*
 * Bytes on disk of the directory `name` and all that is in it. A file of several names counts once,
 * as far as they are all in here. -AGX_RESOURCE_EXHAUSTED: deeper than allowed;
 * -AGX_DEADLINE_EXCEEDED; -AGX_CANCELLED: it was stopped. May block; from any thread.
 */
int agx_treesize(int dirfd, const char *name, const struct agx_treesize_limits *limits,
                 uint64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * treesize.h: the disk usage of a directory that others may be writing to.
 *
 * Follows no symlink, enters no other file system, changes nothing. The tree's depth and size are
 * chosen by others, so both have limits.
 */
#ifndef AGX_BACKEND_NATIVE_LIMITS_TREESIZE_H
#define AGX_BACKEND_NATIVE_LIMITS_TREESIZE_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdint.h>

struct agx_treesize_limits {
    unsigned depth;          /* of nested directories, at most AGX_NATIVE_USAGE_DEPTH */
    uint64_t deadline_ns;    /* agx_clock_ns() at which it gives up */
    const atomic_bool *stop; /* set by another thread to end it; may be NULL */
};

/*
 * Bytes on disk of the directory `name` and everything in it. A file with several names in it
 * counts once. -AGX_RESOURCE_EXHAUSTED: deeper than allowed; -AGX_DEADLINE_EXCEEDED;
 * -AGX_CANCELLED: it was stopped. May block; from any thread.
 */
int agx_treesize(int dirfd, const char *name, const struct agx_treesize_limits *limits,
                 uint64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

#endif

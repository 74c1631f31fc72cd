/* path_internal.h: what the files of path share, and its tests. */
#ifndef AGX_BASE_PATH_INTERNAL_H
#define AGX_BASE_PATH_INTERNAL_H

#include "base/error.h"

#include <limits.h>
#include <sys/types.h>

/* A checked path: components joined by single slashes, no "." among them; "." if none is left. */
struct path_name {
    char text[PATH_MAX];
    bool is_dir; /* it ended in a slash or in ".", so it must be a directory */
};

int path_check(const char *path, struct path_name *ret, struct agx_error **err);

/* Cuts the last component off: what is before it ("." if nothing), and the component itself. */
void path_cut(struct path_name *p, const char **ret_parent, const char **ret_last);

/* The two ways to open a checked path: openat2(2), and a component at a time where the kernel or a
 * system call filter does not have it. A descriptor, or -1 and errno; both give the same. */
int path_open_kernel(int dirfd, const char *path, int flags, mode_t mode);
int path_open_walk(int dirfd, const char *path, int flags, mode_t mode);

#endif

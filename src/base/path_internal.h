/* path_internal.h: declarations shared by the files of path and its tests. */
#ifndef AGX_BASE_PATH_INTERNAL_H
#define AGX_BASE_PATH_INTERNAL_H

#include "base/error.h"

#include <limits.h>
#include <sys/types.h>

/* A checked path: components joined by single slashes, without "."; "." if none is left. */
struct path_name {
    char text[PATH_MAX];
    bool is_dir; /* it ended in a slash or in ".", so it must be a directory */
};

int path_check(const char *path, struct path_name *ret, struct agx_error **err);

/* Splits off the last component; the parent is "." if nothing precedes it. */
void path_cut(struct path_name *p, const char **ret_parent, const char **ret_last);

/* Two ways to open a checked path: openat2(2), or component by component where the kernel or a
 * system call filter does not allow openat2. A descriptor, or -1 and errno; the results are equal.
 */
int path_open_kernel(int dirfd, const char *path, int flags, mode_t mode);
int path_open_walk(int dirfd, const char *path, int flags, mode_t mode);

#endif

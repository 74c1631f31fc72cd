/*
 * path.h: files by name beneath a directory that we hold open, where others may write.
 *
 * A sandbox's files belong to whoever runs in it, so any component of a name may become a symlink
 * to somewhere else at any moment. Nothing here follows one, whether in the middle of a path or at
 * its end, and nothing leaves the directory. A path is relative, not empty and has no ".."
 * (-AGX_INVALID_ARGUMENT); a symlink in it is -AGX_FAILED_PRECONDITION.
 */
#ifndef AGX_BASE_PATH_H
#define AGX_BASE_PATH_H

#include "base/error.h"
#include "base/str.h"

#include <sys/types.h>

/* As openat(2); O_CLOEXEC is added. The descriptor, or negative. `mode` counts with O_CREAT only.
 */
int agx_path_open(int dirfd, const char *path, int flags, mode_t mode,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Makes the directory and those above it that are missing. A descriptor (O_RDONLY) of it, or
 * negative. */
int agx_path_mkdirs(int dirfd, const char *path, mode_t mode,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Replaces a file, or makes it, so that after a crash there is the old content or the new, never
 * part of it, and on return the new one is on disk. `mode` is not subject to the umask. A crash may
 * leave another file beside it, whose name begins so.
 */
#define AGX_PATH_TEMP ".tmp-"
int agx_path_write_file(int dirfd, const char *path, struct agx_str bytes, mode_t mode,
                        struct agx_error **err) AGX_MUST_CHECK;

/*
 * Removes a file, a symlink or a whole tree; 0 also when there is none. However deep the tree, it
 * takes a handful of descriptors and no recursion. It stops at a mount inside the tree
 * (-AGX_FAILED_PRECONDITION): what is mounted there is not ours to empty. It moves directories
 * about inside the tree as it goes, so after a failure the rest is not in its old places.
 */
int agx_path_remove_tree(int dirfd, const char *path, struct agx_error **err) AGX_MUST_CHECK;

#endif

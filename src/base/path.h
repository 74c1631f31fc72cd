/*
 * path.h: files by name beneath an open directory in which others may write.
 *
 * Code in a sandbox controls the sandbox's files, so any component of a name may become a symlink
 * to somewhere else at any moment. Nothing here follows a symlink, in the middle of a path or at
 * its end, and nothing leaves the directory. A path is relative, not empty and without ".."
 * (-AGX_INVALID_ARGUMENT); a symlink in it is -AGX_FAILED_PRECONDITION.
 */
#ifndef AGX_BASE_PATH_H
#define AGX_BASE_PATH_H

#include "base/error.h"
#include "base/str.h"

#include <sys/types.h>

/* As openat(2), with O_CLOEXEC. Returns the descriptor, or negative. `mode` only applies with
 * O_CREAT. */
int agx_path_open(int dirfd, const char *path, int flags, mode_t mode,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Makes the directory and its missing parents. Returns a descriptor (O_RDONLY) of it, or negative.
 */
int agx_path_mkdirs(int dirfd, const char *path, mode_t mode,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Replaces or creates a file, so that after a crash it has the old content or the new, never a mix;
 * on return the new content is on disk. `mode` is not subject to the umask. A crash may leave
 * another file beside it, whose name has this prefix.
 */
#define AGX_PATH_TEMP ".tmp-"
int agx_path_write_file(int dirfd, const char *path, struct agx_str bytes, mode_t mode,
                        struct agx_error **err) AGX_MUST_CHECK;

/*
 * Removes a file, a symlink or a whole tree; 0 also when there is none. Whatever the depth, it uses
 * a few descriptors and no recursion. It stops at a mount inside the tree
 * (-AGX_FAILED_PRECONDITION), since what is mounted there is not ours. It moves directories inside
 * the tree while it works, so after a failure the rest is not in its old places.
 */
int agx_path_remove_tree(int dirfd, const char *path, struct agx_error **err) AGX_MUST_CHECK;

#endif

/* dirs.h: the daemon's own directories. */
#ifndef AGX_DAEMON_DIRS_H
#define AGX_DAEMON_DIRS_H

#include "base/error.h"

#include <sys/types.h>

/*
 * Makes the directory, and with mode 0700 its missing parents. Gives it `mode` even if it existed.
 * -AGX_FAILED_PRECONDITION when it belongs to another user or is not a directory.
 */
int agx_dirs_own(const char *path, mode_t mode, struct agx_error **err) AGX_MUST_CHECK;

/* The same, but leaves an existing directory as it is, with any owner. */
int agx_dirs_any(const char *path, struct agx_error **err) AGX_MUST_CHECK;

#endif

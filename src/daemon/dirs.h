/* dirs.h: directories of the daemon's own. */
#ifndef AGX_DAEMON_DIRS_H
#define AGX_DAEMON_DIRS_H

#include "base/error.h"

#include <sys/types.h>

/*
 * Makes the directory, and with 0700 those above it that are missing, and gives it `mode`, also
 * when it was there. -AGX_FAILED_PRECONDITION when it belongs to somebody else or is none.
 */
int agx_dirs_own(const char *path, mode_t mode, struct agx_error **err) AGX_MUST_CHECK;

/* The same, but a directory that is there is left as it is: it may be anybody's. */
int agx_dirs_any(const char *path, struct agx_error **err) AGX_MUST_CHECK;

#endif

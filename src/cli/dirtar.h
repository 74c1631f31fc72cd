/* dirtar.h: a directory as the bytes of a tar: an OCI layout, or a root file system. */
#ifndef AGX_CLI_DIRTAR_H
#define AGX_CLI_DIRTAR_H

#include "image/tarwriter.h"

/*
 * All that is beneath `path`, named from there, with owners, modes, times, hard links and extended
 * attributes. Symlinks in it are entries like others. Sockets are left out, and so is what is
 * mounted inside. -AGX_ABORTED: a file became shorter while it was read.
 */
int agx_dirtar_write(const char *path, agx_tar_fn fn, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

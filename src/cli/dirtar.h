/* dirtar.h: a directory as the bytes of a tar: an OCI layout, or a root file system. */
#ifndef AGX_CLI_DIRTAR_H
#define AGX_CLI_DIRTAR_H

#include "image/tarwriter.h"

/*
 * Everything beneath `path`, with relative names, owners, modes, times, hard links and extended
 * attributes. Symlinks are stored as symlinks. Leaves out sockets and mounts inside the tree.
 * -AGX_ABORTED: a file shrank while it was read.
 */
int agx_dirtar_write(const char *path, agx_tar_fn fn, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

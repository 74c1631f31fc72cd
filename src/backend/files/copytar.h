/* copytar.h: writes a copy's source as a tar. Blocking: for a pool thread. */
#ifndef AGX_BACKEND_FILES_COPYTAR_H
#define AGX_BACKEND_FILES_COPYTAR_H

#include "backend/files/copytree.h"
#include "image/tarwriter.h"

/*
 * `name` is the prefix of every path in the tar. With an empty name, a directory is only its
 * content; otherwise its own entry comes first. A file gets that name.
 */
int agx_copytar_write(struct agx_copytree *t, const char *name, agx_tar_fn fn, void *user,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif

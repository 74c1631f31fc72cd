/* copytar.h: a copy's source as the bytes of a tar. Blocking: for a pool thread. */
#ifndef AGX_BACKEND_COPYTAR_H
#define AGX_BACKEND_COPYTAR_H

#include "backend/copytree.h"
#include "image/tarwriter.h"

/*
 * `name` stands in front of every path in the tar. A directory with an empty name is its content
 * alone; with another, its own entry comes first. A file has that name.
 */
int agx_copytar_write(struct agx_copytree *t, const char *name, agx_tar_fn fn, void *user,
                      struct agx_error **err) AGX_MUST_CHECK;

#endif

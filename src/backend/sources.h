/*
 * sources.h: what a path on the host is, for mounts and copies, and whether a sandbox may have it.
 *
 * Whoever reaches an engine's socket, ours or our data owns the host, or all sandboxes. So neither
 * they nor anything beneath them is given away, by whatever name. A directory above them is: who
 * mounts /run or a whole home directory is taken to mean it.
 */
#ifndef AGX_BACKEND_SOURCES_H
#define AGX_BACKEND_SOURCES_H

#include "core/spec.h"

/* Paths of ours; borrowed. */
struct agx_sources {
    const char *const *private_paths;
    size_t private_paths_len;
};

/* For struct agx_spec_host; `user` is a struct agx_sources. May block, from any thread. */
int agx_sources_look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err);

#endif

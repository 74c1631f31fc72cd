/*
 * sources.h: which host paths may be given to sandboxes, as a mount or a copy.
 *
 * Access to an engine's socket, to our socket or to our data means control of the host or of all
 * sandboxes. So neither they nor anything beneath them is given away, by whatever name. A directory
 * above them is allowed: mounting /run or a whole home directory is taken as intended.
 *
 * What was checked is what is given: a source is opened once, by the rules of hostpath.h, and that
 * descriptor is mounted or copied.
 */
#ifndef AGX_BACKEND_FILES_SOURCES_H
#define AGX_BACKEND_FILES_SOURCES_H

#include "backend/files/hostpath.h"
#include "backend/files/writables.h"
#include "core/spec.h"

struct agx_sources;

struct agx_sources_config {
    const char *const *private_paths; /* our own paths */
    size_t n_private_paths;
    bool mapped; /* we are in a user namespace where host root is unmapped */
};

/* Shared by backends, manager and threads. Everything is copied. */
int agx_sources_new(const struct agx_sources_config *c, struct agx_sources **ret_sources,
                    struct agx_error **err) AGX_MUST_CHECK;
struct agx_sources *agx_sources_ref(struct agx_sources *s);
/* Accepts NULL; returns NULL. */
struct agx_sources *agx_sources_unref(struct agx_sources *s);

struct agx_writables *agx_sources_writables(struct agx_sources *s);

/* The requester; the requester's own symlinks are followed. */
struct agx_sources_asker {
    struct agx_sources *sources; /* NULL: nothing is private, and nothing was given away yet */
    uid_t uid;
};

/*
 * Opens a source of any kind. `follow_last`: opens the target of a symlink at the end, else the
 * symlink itself. -AGX_INVALID_ARGUMENT for a path that is not given away and for a symlink that is
 * not followed. May block, from any thread.
 */
int agx_sources_open(const struct agx_sources_asker *asker, const char *path, bool follow_last,
                     struct agx_hostpath *ret, struct agx_error **err) AGX_MUST_CHECK;

/* For struct agx_spec_host; `user` is a struct agx_sources_asker. May block, from any thread. */
int agx_sources_look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err);

/* The kind that a mode describes. */
enum agx_path_kind agx_sources_kind(mode_t mode);

#endif

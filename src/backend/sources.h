/*
 * sources.h: what of the host may be given to sandboxes, as a mount or a copy.
 *
 * Whoever reaches an engine's socket, ours or our data owns the host, or all sandboxes. So neither
 * they nor anything beneath them is given away, by whatever name. A directory above them is: who
 * mounts /run or a whole home directory is taken to mean it.
 *
 * What is given is what was looked at: a source is opened once, by the rules of hostpath.h, and its
 * descriptor is what is mounted or copied.
 */
#ifndef AGX_BACKEND_SOURCES_H
#define AGX_BACKEND_SOURCES_H

#include "backend/hostpath.h"
#include "backend/writables.h"
#include "core/spec.h"

struct agx_sources;

struct agx_sources_config {
    const char *const *private_paths; /* paths of ours */
    size_t n_private_paths;
    bool mapped; /* we are in a user namespace, where root of the host has no id */
};

/* Shared by backends, engine and threads. Everything is copied. */
int agx_sources_new(const struct agx_sources_config *c, struct agx_sources **ret_sources,
                    struct agx_error **err) AGX_MUST_CHECK;
struct agx_sources *agx_sources_ref(struct agx_sources *s);
/* Accepts NULL; returns NULL. */
struct agx_sources *agx_sources_unref(struct agx_sources *s);

struct agx_writables *agx_sources_writables(struct agx_sources *s);

/* Who asks: his own symlinks are followed. */
struct agx_sources_asker {
    struct agx_sources *sources; /* NULL: nothing is private, and nothing was given away yet */
    uid_t uid;
};

/*
 * Opens a source, of whatever kind. `follow_last`: what a symlink at its end leads to, else the
 * symlink itself. -AGX_INVALID_ARGUMENT for what is not given away and for a symlink that is not
 * followed. May block, from any thread.
 */
int agx_sources_open(const struct agx_sources_asker *asker, const char *path, bool follow_last,
                     struct agx_hostpath *ret, struct agx_error **err) AGX_MUST_CHECK;

/* For struct agx_spec_host; `user` is a struct agx_sources_asker. May block, from any thread. */
int agx_sources_look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err);

/* What a mode says. */
enum agx_path_kind agx_sources_kind(mode_t mode);

#endif

/* binds.h: what of the host a container shows: a list of paths and where they appear. */
#ifndef AGX_BACKEND_BINDS_H
#define AGX_BACKEND_BINDS_H

#include "backend/sources.h"

struct agx_bind {
    char *source, *target; /* absolute; owned */
    bool writable;
};

struct agx_binds {
    struct agx_bind *items;
    size_t len;
};

/*
 * Adds a copy. -AGX_INVALID_ARGUMENT when something else appears at that target, or when a path is
 * not UTF-8, which no engine could be told.
 */
int agx_binds_add(struct agx_binds *b, const char *source, const char *target, bool writable,
                  struct agx_error **err) AGX_MUST_CHECK;

/* All mounts of a spec. */
int agx_binds_add_mounts(struct agx_binds *b, const struct agx_spec *spec,
                         struct agx_error **err) AGX_MUST_CHECK;

/* What appears at that target, or NULL. */
const struct agx_bind *agx_binds_at(const struct agx_binds *b, const char *target);

/*
 * Looks at every source, right before a sandbox shows them: a file, directory or socket that
 * `sources` does not keep to itself, and (`user` is whom commands run as; NULL: no matter) one that
 * he may write to where the mount is writable. May block, from any thread. -AGX_INVALID_ARGUMENT,
 * -AGX_FAILED_PRECONDITION.
 */
int agx_binds_check(const struct agx_binds *b, const struct agx_sources *sources, const char *user,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Empties it. Accepts NULL. */
void agx_binds_done(struct agx_binds *b);

#endif

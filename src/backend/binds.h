/* binds.h: what of the host a container shows: a list of paths and where they appear. */
#ifndef AGX_BACKEND_BINDS_H
#define AGX_BACKEND_BINDS_H

#include "backend/sources.h"

struct agx_bind {
    char *source, *target; /* absolute; owned */
    bool writable;
    struct agx_hostpath from; /* the source, once it was opened */
    bool layered;             /* a directory below a layer of the sandbox's own; not writable */
    bool suid;                /* files there may get the setuid and setgid bits */
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

/* Is there one that the host would have setuid programs from? */
bool agx_binds_need_suid_guard(const struct agx_binds *b);

/* What appears at that target, or NULL. */
const struct agx_bind *agx_binds_at(const struct agx_binds *b, const char *target);

/* Adds one whose source is open already; takes that, also when it fails. */
int agx_binds_take(struct agx_binds *b, struct agx_hostpath *take_from, const char *target,
                   bool writable, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Opens every source, right before a sandbox shows them: a file, directory or socket that `asker`
 * may be given, and (`user` is whom commands run as; NULL: no matter) one that he may write to
 * where the mount is writable. May block, from any thread. -AGX_INVALID_ARGUMENT,
 * -AGX_FAILED_PRECONDITION.
 */
int agx_binds_open(struct agx_binds *b, const struct agx_sources_asker *asker, const char *user,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Directories that are writable are among the writables from now on: as agx_writables_keep(), whose
 * results these are. `sources` NULL: 1. Their sources are open. */
int agx_binds_keep(const struct agx_binds *b, struct agx_sources *sources, agx_done_fn done,
                   void *user, struct agx_writables_keep **ret_keep,
                   struct agx_error **err) AGX_MUST_CHECK;

/* What the sources are, for a record: "DEVICE:INODE:TARGET" of each. */
int agx_binds_list(const struct agx_binds *b, struct agx_words *ret,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Logs each whose source is another file than in that list. Nothing is refused: editors save by
 * renaming, and directories are made anew. */
void agx_binds_log_changed(const struct agx_binds *b, const struct agx_words *list,
                           const char *sandbox_id);

/* Empties it. Accepts NULL. */
void agx_binds_done(struct agx_binds *b);

#endif

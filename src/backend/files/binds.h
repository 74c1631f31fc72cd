/* binds.h: the bind mounts of a container: host paths and where they appear in it. */
#ifndef AGX_BACKEND_FILES_BINDS_H
#define AGX_BACKEND_FILES_BINDS_H

#include "backend/files/sources.h"

struct agx_bind {
    char *source, *target; /* absolute; owned */
    bool writable;
    struct agx_hostpath from; /* the source, once it is open */
    bool layered;             /* a directory under a writable layer of the sandbox; itself
                               * read-only */
    bool suid;                /* setuid and setgid bits may be set on files there */
};

struct agx_binds {
    struct agx_bind *items;
    size_t len;
};

/*
 * Adds a copy. -AGX_INVALID_ARGUMENT when that target is already taken, or when a path is not
 * UTF-8, which an engine cannot be given.
 */
int agx_binds_add(struct agx_binds *b, const char *source, const char *target, bool writable,
                  struct agx_error **err) AGX_MUST_CHECK;

/* Adds all mounts of a spec. */
int agx_binds_add_mounts(struct agx_binds *b, const struct agx_spec *spec,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Could a sandbox leave setuid programs on the host through one of them? */
bool agx_binds_need_suid_guard(const struct agx_binds *b);

/* The bind with that target, or NULL. */
const struct agx_bind *agx_binds_at(const struct agx_binds *b, const char *target);

/* Adds one whose source is already open; takes the source, even on failure. */
int agx_binds_take(struct agx_binds *b, struct agx_hostpath *take_from, const char *target,
                   bool writable, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Opens every source, right before a sandbox gets them. A source is a file, directory or socket
 * that `asker` may be given; where the mount is writable, `user` (whom commands run as; NULL: any)
 * must be able to write to it. May block, from any thread. -AGX_INVALID_ARGUMENT,
 * -AGX_FAILED_PRECONDITION.
 */
int agx_binds_open(struct agx_binds *b, const struct agx_sources_asker *asker, const char *user,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Adds the writable directories to the writables; returns as agx_writables_keep(). `sources` NULL:
 * returns 1. The binds must be open. */
int agx_binds_keep(const struct agx_binds *b, struct agx_sources *sources, agx_done_fn done,
                   void *user, struct agx_writables_keep **ret_keep,
                   struct agx_error **err) AGX_MUST_CHECK;

/* Identifies the sources for a record: "DEVICE:INODE:TARGET" of each. */
int agx_binds_list(const struct agx_binds *b, struct agx_words *ret,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Logs each bind whose source is another file than in that list. Nothing is refused: editors save
 * by renaming, and directories are recreated. */
void agx_binds_log_changed(const struct agx_binds *b, const struct agx_words *list,
                           const char *sandbox_id);

/* Empties it. Accepts NULL. */
void agx_binds_done(struct agx_binds *b);

#endif

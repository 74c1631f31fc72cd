/*
 * writables.h: the directories that a sandbox has, or had, as a writable mount. Symlinks in them
 * may be a sandbox's work and are never followed (hostpath.h).
 *
 * A directory is known by its inode number and by its path: the number survives renaming and bind
 * mounts, the path survives a reboot that renumbers file systems. None is ever forgotten: what a
 * sandbox wrote stays when the sandbox is gone.
 */
#ifndef AGX_BACKEND_FILES_WRITABLES_H
#define AGX_BACKEND_FILES_WRITABLES_H

#include "backend/files/hostpath.h"
#include "base/map.h"
#include "loop/loop.h"

#include <pthread.h>

struct agx_writable {
    struct agx_file_id id; /* zeroes: only the path is known */
    const char *path;      /* without symlinks */
};

/* Makes them durable: `done` follows. Arguments are borrowed only for the call. */
typedef int (*agx_writables_store_fn)(void *user, const struct agx_writable *dirs, size_t n,
                                      agx_done_fn done, void *done_user, struct agx_error **err);

struct agx_writables {
    pthread_mutex_t lock; /* protects the maps: path walks run on threads */
    struct agx_map ids, paths;
    struct agx_map rows;          /* id and path -> struct agx_writables_row */
    bool unknown;                 /* some could not be loaded, so any directory may be one */
    agx_writables_store_fn store; /* NULL: nothing is made durable */
    void *user;
};

struct agx_writables_keep;

int agx_writables_init(struct agx_writables *w, struct agx_error **err) AGX_MUST_CHECK;
/* Call it when no keep is in progress. Accepts a zeroed struct that was never initialised. */
void agx_writables_done(struct agx_writables *w);

/* Call it before the first keep. */
void agx_writables_set_store(struct agx_writables *w, agx_writables_store_fn store, void *user);

/* Adds one that the store has. */
int agx_writables_load(struct agx_writables *w, const struct agx_writable *dir,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Some rows are unreadable: from now on every directory is treated as writable. */
void agx_writables_lose(struct agx_writables *w);

/* From any thread. */
bool agx_writables_has(struct agx_writables *w, const struct agx_file_id *id, const char *path);

/*
 * They are known from now on, and durable when `done` comes. 1: they are durable already, and
 * `done` does not come. Loop thread.
 */
int agx_writables_keep(struct agx_writables *w, const struct agx_writable *dirs, size_t n,
                       agx_done_fn done, void *user, struct agx_writables_keep **ret_keep,
                       struct agx_error **err) AGX_MUST_CHECK;
/* `done` is not called any more. Accepts NULL. */
void agx_writables_abandon(struct agx_writables_keep *k);

#endif

/*
 * writables.h: the directories that a sandbox has, or had, as a writable mount. Symlinks in them
 * may be a sandbox's work and are followed by nobody (hostpath.h).
 *
 * One is known by its number and by its path: the first survives that it is renamed or bound
 * elsewhere, the second that the host numbers its file systems anew at its next start. None is ever
 * forgotten: what a sandbox made stays when the sandbox is gone.
 */
#ifndef AGX_BACKEND_WRITABLES_H
#define AGX_BACKEND_WRITABLES_H

#include "backend/hostpath.h"
#include "base/map.h"
#include "loop/loop.h"

#include <pthread.h>

struct agx_writable {
    struct agx_file_id id; /* zeroes: only the path is known */
    const char *path;      /* without symlinks */
};

/* Makes them durable: `done` follows. Nothing is borrowed but for the call. */
typedef int (*agx_writables_store_fn)(void *user, const struct agx_writable *dirs, size_t n,
                                      agx_done_fn done, void *done_user, struct agx_error **err);

struct agx_writables {
    pthread_mutex_t lock; /* of the maps: whoever walks is on a thread */
    struct agx_map ids, paths;
    struct agx_map rows;          /* id and path -> struct agx_writables_row */
    bool unknown;                 /* some could not be loaded: any directory may be one */
    agx_writables_store_fn store; /* NULL: nothing is durable */
    void *user;
};

struct agx_writables_keep;

int agx_writables_init(struct agx_writables *w, struct agx_error **err) AGX_MUST_CHECK;
/* When no keep is under way. Accepts what was not initialised but zeroed. */
void agx_writables_done(struct agx_writables *w);

/* Before the first keep. */
void agx_writables_set_store(struct agx_writables *w, agx_writables_store_fn store, void *user);

/* One that the store has. */
int agx_writables_load(struct agx_writables *w, const struct agx_writable *dir,
                       struct agx_error **err) AGX_MUST_CHECK;

/* There are some that cannot be told: from now on every directory is taken for one. */
void agx_writables_lose(struct agx_writables *w);

/* From any thread. */
bool agx_writables_has(struct agx_writables *w, const struct agx_file_id *id, const char *path);

/*
 * From now on these are known, and when `done` comes they are durable. 1: they are already, and
 * `done` does not come. Loop thread.
 */
int agx_writables_keep(struct agx_writables *w, const struct agx_writable *dirs, size_t n,
                       agx_done_fn done, void *user, struct agx_writables_keep **ret_keep,
                       struct agx_error **err) AGX_MUST_CHECK;
/* `done` does not come. Accepts NULL. */
void agx_writables_abandon(struct agx_writables_keep *k);

#endif

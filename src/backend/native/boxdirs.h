/*
 * boxdirs.h: the files of sandboxes: <data>/native.
 *
 *     boxes/<id>/state.json     state.h
 *     boxes/<id>/<part>/fs/     limited by its disk limit; part "0" is the primary, "1" the first
 *                               companion
 *         upper, work           what it wrote, and the overlay's own
 *         etc/                  hosts, resolv.conf, hostname
 *     trash/                    waits to be removed
 *
 * Nothing here follows a symlink or opens a path that code of a sandbox may change: only `upper` is
 * such a place, and only the kernel goes into it. All of it may block; from any thread.
 */
#ifndef AGX_BACKEND_NATIVE_BOXDIRS_H
#define AGX_BACKEND_NATIVE_BOXDIRS_H

#include "backend/native/state.h"

struct agx_boxdirs {
    int boxes_fd, trash_fd;
};

/* Makes the missing directories. */
int agx_boxdirs_open(struct agx_boxdirs *d, const char *dir, struct agx_error **err) AGX_MUST_CHECK;
/* In the same directory: the lowest layer of every sandbox. It is empty except for mount points
 * that each sandbox needs and that not every image has, so they need not be made for each
 * sandbox. */
#define AGX_BOXDIRS_GROUND "ground"
int agx_boxdirs_ground(const char *dir, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_boxdirs_close(struct agx_boxdirs *d);

/* The ids of all sandboxes with a directory, even without a record. */
int agx_boxdirs_list(const struct agx_boxdirs *d, struct agx_words *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
bool agx_boxdirs_has(const struct agx_boxdirs *d, const char *id);

/* -AGX_NOT_FOUND: there is no record. */
int agx_boxdirs_read(const struct agx_boxdirs *d, const char *id, struct agx_native_state *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Replaces the record as a whole. `durable`: it is on disk on return and survives a power failure;
 * otherwise it only survives the daemon. */
int agx_boxdirs_write(const struct agx_boxdirs *d, const struct agx_native_state *s, bool durable,
                      struct agx_error **err) AGX_MUST_CHECK;

/* A directory for a new sandbox. -AGX_ALREADY_EXISTS. */
int agx_boxdirs_make(const struct agx_boxdirs *d, const char *id,
                     struct agx_error **err) AGX_MUST_CHECK;
/* The directory of one part; makes a missing one. Returns the descriptor, or a negative code. */
int agx_boxdirs_part(const struct agx_boxdirs *d, const char *id, size_t part,
                     struct agx_error **err) AGX_MUST_CHECK;
/*
 * Prepares its `fs` for a start: `upper` and `etc` are kept or made, `work` is new (an overlay that
 * is mounted volatile leaves a mark there and refuses to mount on it again). All belong to
 * `id_base`.
 */
int agx_boxdirs_fs(const struct agx_boxdirs *d, int part_fd, uint32_t id_base,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Writes a file that the sandbox's root sees and may change. `name` is "fs/etc/hosts" or the
 * like. */
int agx_boxdirs_put(int part_fd, const char *name, struct agx_str text, uint32_t id_base,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Moves all of it out of the way, at once. Succeeds when there is nothing. */
int agx_boxdirs_trash(const struct agx_boxdirs *d, const char *id,
                      struct agx_error **err) AGX_MUST_CHECK;
/* Slow. */
int agx_boxdirs_empty_trash(const struct agx_boxdirs *d, struct agx_error **err) AGX_MUST_CHECK;

#endif

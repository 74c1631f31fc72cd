/*
 * boxdirs.h: the files of sandboxes: <data>/native.
 *
 *     boxes/<id>/state.json     state.h
 *     boxes/<id>/<part>/fs/     what a limit on its disk counts; part "0" is the primary, "1" the
 *                               first companion
 *         upper, work           what it wrote, and the overlay's own
 *         etc/                  hosts, resolv.conf, hostname
 *     trash/                    what is to be removed
 *
 * Nothing here follows a symlink or opens a path that code of a sandbox may change: only `upper` is
 * such a place, and nobody goes into it but the kernel. All of it may block; from any thread.
 */
#ifndef AGX_BACKEND_NATIVE_BOXDIRS_H
#define AGX_BACKEND_NATIVE_BOXDIRS_H

#include "backend/native/state.h"

struct agx_boxdirs {
    int boxes_fd, trash_fd;
};

/* Makes what is missing of them. */
int agx_boxdirs_open(struct agx_boxdirs *d, const char *dir, struct agx_error **err) AGX_MUST_CHECK;
/* In the same directory the lowest layer of every sandbox: empty, but for what something is mounted
 * on in each of them and not every image has. So nothing of it is made anew for each. */
#define AGX_BOXDIRS_GROUND "ground"
int agx_boxdirs_ground(const char *dir, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_boxdirs_close(struct agx_boxdirs *d);

/* The ids of all that have a directory, also without a record. */
int agx_boxdirs_list(const struct agx_boxdirs *d, struct agx_words *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
bool agx_boxdirs_has(const struct agx_boxdirs *d, const char *id);

/* -AGX_NOT_FOUND: there is no record. */
int agx_boxdirs_read(const struct agx_boxdirs *d, const char *id, struct agx_native_state *ret,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Replaces the record as a whole. `durable`: it is on disk on return, for the power to fail;
 * otherwise it is there for the next daemon. */
int agx_boxdirs_write(const struct agx_boxdirs *d, const struct agx_native_state *s, bool durable,
                      struct agx_error **err) AGX_MUST_CHECK;

/* A directory for a new sandbox. -AGX_ALREADY_EXISTS. */
int agx_boxdirs_make(const struct agx_boxdirs *d, const char *id,
                     struct agx_error **err) AGX_MUST_CHECK;
/* The directory of one part; made when it is missing. The descriptor, or negative. */
int agx_boxdirs_part(const struct agx_boxdirs *d, const char *id, size_t part,
                     struct agx_error **err) AGX_MUST_CHECK;
/*
 * Its `fs`, for a start: `upper` and `etc` are kept or made, `work` is new (an overlay that does
 * without syncing marks it, and is not mounted on that mark again). All belong to `id_base`.
 */
int agx_boxdirs_fs(const struct agx_boxdirs *d, int part_fd, uint32_t id_base,
                   struct agx_error **err) AGX_MUST_CHECK;
/* A file that the sandbox shows and its root may change. `name` is "fs/etc/hosts" or so. */
int agx_boxdirs_put(int part_fd, const char *name, struct agx_str text, uint32_t id_base,
                    struct agx_error **err) AGX_MUST_CHECK;

/* All of it is out of the way, at once. One that is not there is already. */
int agx_boxdirs_trash(const struct agx_boxdirs *d, const char *id,
                      struct agx_error **err) AGX_MUST_CHECK;
/* Takes its time. */
int agx_boxdirs_empty_trash(const struct agx_boxdirs *d, struct agx_error **err) AGX_MUST_CHECK;

#endif

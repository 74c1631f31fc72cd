/*
 * import.h: images out of one stream of bytes: what `docker save` writes, a tar of an OCI layout,
 * or a tar of a root file system; each also in gzip, zstd or xz.
 *
 *     agx_import_start(images, &params, user, &im, err)
 *     agx_import_write(im, bytes, err)        as they come
 *     agx_import_end(im)                      params.done follows
 */
#ifndef AGX_IMAGE_IMPORT_H
#define AGX_IMAGE_IMPORT_H

#include "core/pull.h"
#include "image/intake.h"

struct agx_import;

/* Once, never inside another call; `images` is borrowed for the call (agx_image_ref() what is to
 * stay), `n` is 0 when there is an error, which the callee owns. */
typedef void (*agx_import_fn)(void *user, struct agx_image *const *images, size_t n,
                              struct agx_error *error);

struct agx_import_params {
    /* For the one image of the stream, whatever it is called there; empty: its own names. With more
     * than one image, -AGX_INVALID_ARGUMENT. */
    struct agx_str name;
    /* Loop thread: agx_import_write(), which had said 1, takes more. May be NULL. */
    agx_spool_ready_fn ready;
    /* Loop thread, now and then while layers are unpacked. May be NULL. */
    void (*progress)(void *user, const struct agx_pull *progress);
    agx_import_fn done;
};

/* The name is checked here: -AGX_INVALID_ARGUMENT. */
int agx_import_start(struct agx_images *s, const struct agx_import_params *p, void *user,
                     struct agx_import **ret_import, struct agx_error **err) AGX_MUST_CHECK;

/* As agx_spool_write(). After an error only agx_import_cancel() is left. */
int agx_import_write(struct agx_import *im, struct agx_str bytes,
                     struct agx_error **err) AGX_MUST_CHECK;

/* The stream is whole. `im` is alive until `done`. */
void agx_import_end(struct agx_import *im);

/* At any moment before `done`, which follows with AGX_CANCELLED (or AGX_OK, when it was too late).
 */
void agx_import_cancel(struct agx_import *im);

#endif

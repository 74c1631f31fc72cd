/*
 * import.h: imports images from one byte stream: the output of `docker save`, a tar of an OCI
 * layout, or a tar of a root file system; each may be compressed with gzip, zstd or xz.
 *
 *     agx_import_start(images, &params, user, &im, err)
 *     agx_import_write(im, bytes, err)        as they come
 *     agx_import_end(im)                      params.done follows
 */
#ifndef AGX_IMAGE_IMPORT_H
#define AGX_IMAGE_IMPORT_H

#include "core/pull.h"
#include "image/ingest.h"

struct agx_import;

/* Called once, never inside another call; `images` is borrowed for the call (agx_image_ref() those
 * to keep). `n` is 0 when there is an error, which the callee owns. */
typedef void (*agx_import_fn)(void *user, struct agx_image *const *images, size_t n,
                              struct agx_error *error);

struct agx_import_params {
    /* Name for the only image of the stream, instead of its names there; empty: keep those. With
     * more than one image, -AGX_INVALID_ARGUMENT. */
    struct agx_str name;
    /* Loop thread: agx_import_write(), which returned 1, accepts more. May be NULL. */
    agx_spool_ready_fn ready;
    /* Loop thread, from time to time while layers are unpacked. May be NULL. */
    void (*progress)(void *user, const struct agx_pull *progress);
    agx_import_fn done;
};

/* Checks the name: -AGX_INVALID_ARGUMENT. */
int agx_import_start(struct agx_images *s, const struct agx_import_params *p, void *user,
                     struct agx_import **ret_import, struct agx_error **err) AGX_MUST_CHECK;

/* Like agx_spool_write(). After an error only agx_import_cancel() may be called. */
int agx_import_write(struct agx_import *im, struct agx_str bytes,
                     struct agx_error **err) AGX_MUST_CHECK;

/* The stream is complete. `im` is valid until `done`. */
void agx_import_end(struct agx_import *im);

/* At any time before `done`, which follows with AGX_CANCELLED (or AGX_OK, if it was too late). */
void agx_import_cancel(struct agx_import *im);

#endif

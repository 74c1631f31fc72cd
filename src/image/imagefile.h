/*
 * imagefile.h: what is in a file that somebody imports: images as `docker save` writes them, an OCI
 * layout as a tar, or the tar of a root file system, which is one image of one layer. Each may be
 * compressed. Blocking: for a pool thread.
 */
#ifndef AGX_IMAGE_IMAGEFILE_H
#define AGX_IMAGE_IMAGEFILE_H

#include "core/text.h"
#include "image/blob.h"
#include "image/unpack.h"

struct agx_imagefile_layer {
    struct agx_blob_place place;
    uint64_t size;                /* of the blob */
    char digest[AGX_DIGEST_SIZE]; /* of the blob; empty: not known */
};

struct agx_imagefile_image {
    char *config;           /* its text */
    char *manifest;         /* its text; NULL: there is none */
    struct agx_words names; /* as they are written there */
    struct agx_words diff_ids;
    struct agx_imagefile_layer *layers; /* as many as diff_ids, the lowest first */
};

struct agx_imagefile {
    int plain_fd; /* owned: the archive without its compression, where the layers are; or -1 */
    struct agx_imagefile_image *images;
    size_t n_images;
};

struct agx_imagefile_params {
    int fd;     /* the file: the places of layers may use it */
    int tmp_fd; /* a directory for a file without a name */
    struct agx_unpack_limits limits;
    uint64_t max_bytes;      /* of the archive without its compression */
    const atomic_bool *stop; /* true: end with -AGX_CANCELLED */
};

/*
 * `a` is overwritten, and there is nothing to free on failure. -AGX_INVALID_ARGUMENT for what is
 * none of these, or lacks a part.
 */
int agx_imagefile_read(struct agx_imagefile *a, const struct agx_imagefile_params *p,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; empty afterwards. */
void agx_imagefile_done(struct agx_imagefile *a);

#endif

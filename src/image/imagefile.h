/*
 * imagefile.h: parses a file to import: images as written by `docker save`, an OCI layout as a tar,
 * or the tar of a root file system, which becomes one image with one layer. Each may be compressed.
 * Blocking: for a pool thread.
 */
#ifndef AGX_IMAGE_IMAGEFILE_H
#define AGX_IMAGE_IMAGEFILE_H

#include "core/text.h"
#include "image/blob.h"
#include "image/unpack.h"

struct agx_imagefile_layer {
    struct agx_blob_place place;
    uint64_t size;                /* of the blob */
    char digest[AGX_DIGEST_SIZE]; /* of the blob; empty: unknown */
};

struct agx_imagefile_image {
    char *config;           /* its text */
    char *manifest;         /* its text; NULL: none */
    struct agx_words names; /* as written there */
    struct agx_words diff_ids;
    struct agx_imagefile_layer *layers; /* as many as diff_ids, the lowest first */
};

struct agx_imagefile {
    int plain_fd; /* owned: the uncompressed archive with the layers; or -1 */
    struct agx_imagefile_image *images;
    size_t n_images;
};

struct agx_imagefile_params {
    int fd;     /* the file; places of layers may refer to it */
    int tmp_fd; /* directory for an unnamed file */
    struct agx_unpack_limits limits;
    uint64_t max_bytes;      /* limit for the uncompressed archive */
    const atomic_bool *stop; /* true: ends with -AGX_CANCELLED */
};

/*
 * Overwrites `a`; a failure leaves nothing to free. -AGX_INVALID_ARGUMENT for a file that is none
 * of these, or that lacks a part.
 */
int agx_imagefile_read(struct agx_imagefile *a, const struct agx_imagefile_params *p,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; empty afterwards. */
void agx_imagefile_done(struct agx_imagefile *a);

#endif

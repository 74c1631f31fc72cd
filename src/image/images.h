/*
 * images.h: the store of images: layers, configurations and manifests by their digests, and names.
 *
 *     DIR/layers/sha256-<diff id>/    tree/ is the layer; layer.json says how large it is
 *     DIR/configs/sha256-<id>         as it came; an image is there when this file is
 *     DIR/manifests/sha256-<digest>   as it came
 *     DIR/refs.json                   names and dates of the images
 *     DIR/empty/                      the one layer of an image that has none
 *     DIR/tmp/                        what is in the making or on its way out
 *
 * Everything is made in tmp/ and renamed when it is whole and on disk, layers before the
 * configuration that names them, and that before refs.json: a crash leaves nothing but tmp/ and
 * what no image uses, and opening removes both. A layer is there once, however many images have it.
 *
 * Loop thread only. Memory knows all images, so that finding one does no I/O; what reads or writes
 * much is a job.
 */
#ifndef AGX_IMAGE_IMAGES_H
#define AGX_IMAGE_IMAGES_H

#include "image/image.h"
#include "image/unpack.h"
#include "loop/loop.h"

struct agx_images;

struct agx_images_config {
    const char *dir; /* made with mode 0700 when it is missing */
    struct agx_unpack_limits limits;
    struct agx_idmap idmap;    /* of the sandboxes: layers are on disk with their ids */
    uint64_t import_max_bytes; /* of one import's stream */
    /* What opening found wrong and survived, for the log. May be NULL. */
    void (*notice)(void *user, const char *text);
    void *user;
};

#define AGX_IMAGES_CONFIG_INIT                                                                     \
    {                                                                                              \
        .limits = AGX_UNPACK_LIMITS_INIT, .import_max_bytes = AGX_IMPORT_MAX_BYTES                 \
    }

/* Reads what is there; blocks for as long. Nobody else may have the directory open. */
int agx_images_open(struct agx_loop *l, const struct agx_images_config *c,
                    struct agx_images **ret_images, struct agx_error **err) AGX_MUST_CHECK;

/* Ends what is under way (it is done with AGX_CANCELLED). `stopped` runs when all is; the store is
 * gone then. Images that somebody still references live on without it. */
void agx_images_stop(struct agx_images *s, agx_done_fn stopped, void *user);

/*
 * By name in any spelling ("python:3.13"), by NAME@DIGEST of its manifest, by id with or without
 * "sha256:", or "scratch", the empty image, which is always there. No I/O. The caller owns a
 * reference. -AGX_NOT_FOUND; -AGX_INVALID_ARGUMENT for text that is no reference.
 */
int agx_images_find(struct agx_images *s, struct agx_str ref, struct agx_image **ret_image,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Visits every image but scratch, from *at = 0 on, in no order; NULL at the end. Borrowed. */
struct agx_image *agx_images_next(struct agx_images *s, size_t *at);

/* What left the store. */
struct agx_images_removed {
    struct agx_words names; /* that no longer name anything */
    struct agx_words ids;   /* of the images that are gone */
    uint64_t bytes;         /* of the files of layers that are gone with them */
};

/* Once, never inside the call that began it; `removed` is borrowed for the call and empty when
 * there is an error, which the callee owns. */
typedef void (*agx_images_removed_fn)(void *user, const struct agx_images_removed *removed,
                                      struct agx_error *error);

/*
 * A name of an image with several takes that name away; otherwise (the last name, or an id) the
 * image goes with all its names, and the layers that no other image has. A pinned image stays
 * (-AGX_FAILED_PRECONDITION), though a name that is not its last can be taken away.
 */
void agx_images_remove(struct agx_images *s, struct agx_str ref, agx_images_removed_fn done,
                       void *user);

/* Removes every image that has neither name nor pin. */
void agx_images_prune(struct agx_images *s, agx_images_removed_fn done, void *user);

/* Pins are not on disk. Until whoever had some before a restart has them again, removing and
 * pruning wait: from the first hold to the last unhold, or to the end of the store. */
void agx_images_hold(struct agx_images *s);
void agx_images_unhold(struct agx_images *s);

#endif

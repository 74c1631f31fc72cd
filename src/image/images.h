/*
 * images.h: the store of images: layers, configurations and manifests by their digests, and names.
 *
 *     DIR/layers/sha256-<diff id>/    tree/ is the layer; layer.json has its size
 *     DIR/configs/sha256-<id>         original text; an image exists when this file does
 *     DIR/manifests/sha256-<digest>   original text
 *     DIR/refs.json                   names and dates of the images
 *     DIR/empty/                      the only layer of an image without layers
 *     DIR/tmp/                        unfinished or being removed
 *
 * Everything is made in tmp/ and renamed when it is complete and on disk: first layers, then the
 * configuration that names them, then refs.json. So a crash leaves only files in tmp/ and files
 * that no image uses, and opening removes both. A layer is stored once, however many images use it.
 *
 * Loop thread only. All images are in memory, so finding one does no I/O; anything that reads or
 * writes much is a job.
 */
#ifndef AGX_IMAGE_IMAGES_H
#define AGX_IMAGE_IMAGES_H

#include "image/image.h"
#include "image/unpack.h"
#include "loop/loop.h"

struct agx_images;

struct agx_images_config {
    const char *dir; /* made with mode 0700 if missing */
    struct agx_unpack_limits limits;
    struct agx_idmap idmap;    /* of the sandboxes: layers on disk have their ids */
    uint64_t import_max_bytes; /* of one import's stream */
    /* Non-fatal problems found when opening, for the log. May be NULL. */
    void (*notice)(void *user, const char *text);
    void *user;
};

#define AGX_IMAGES_CONFIG_INIT                                                                     \
    {                                                                                              \
        .limits = AGX_UNPACK_LIMITS_INIT, .import_max_bytes = AGX_IMPORT_MAX_BYTES                 \
    }

/* Reads the store, and blocks meanwhile. No other process may have the directory open. */
int agx_images_open(struct agx_loop *l, const struct agx_images_config *c,
                    struct agx_images **ret_images, struct agx_error **err) AGX_MUST_CHECK;

/* Cancels what is in progress (it ends with AGX_CANCELLED). `stopped` runs when all has ended; the
 * store is gone then. Images that are still referenced live on without it. */
void agx_images_stop(struct agx_images *s, agx_done_fn stopped, void *user);

/*
 * By name in any spelling ("python:3.13"), by NAME@DIGEST of its manifest, by id with or without
 * "sha256:", or "scratch", the empty image, which always exists. No I/O. The caller owns a
 * reference. -AGX_NOT_FOUND; -AGX_INVALID_ARGUMENT for an invalid reference.
 */
int agx_images_find(struct agx_images *s, struct agx_str ref, struct agx_image **ret_image,
                    struct agx_error **err) AGX_MUST_CHECK;

/* Visits every image except scratch, starting with *at = 0, in no order; NULL at the end.
 * Borrowed. */
struct agx_image *agx_images_next(struct agx_images *s, size_t *at);

/* What was removed from the store. */
struct agx_images_removed {
    struct agx_words names; /* names that were removed */
    struct agx_words ids;   /* of the removed images */
    uint64_t bytes;         /* freed by removed layers */
};

/* Called once, never inside the call that began it; `removed` is borrowed for the call. It is empty
 * when there is an error, which the callee owns. */
typedef void (*agx_images_removed_fn)(void *user, const struct agx_images_removed *removed,
                                      struct agx_error *error);

/*
 * If an image has several names, removing one only removes that name. Otherwise (the last name, or
 * an id) the image is removed with all its names, and with the layers that no other image uses. A
 * pinned image stays (-AGX_FAILED_PRECONDITION), but a name that is not its last can be removed.
 */
void agx_images_remove(struct agx_images *s, struct agx_str ref, agx_images_removed_fn done,
                       void *user);

/* Removes every image without a name and without a pin. */
void agx_images_prune(struct agx_images *s, agx_images_removed_fn done, void *user);

/* Pins are not on disk. After a restart, removing and pruning wait until the sandboxes have their
 * pins again: from the first hold to the last unhold, or to the end of the store. */
void agx_images_hold(struct agx_images *s);
void agx_images_unhold(struct agx_images *s);

#endif

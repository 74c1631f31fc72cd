/*
 * intake.h: an image on its way into the store: first its layers, one by one or several at a time,
 * then its configuration, manifest and name. The layers that an intake has named stay in the store
 * until it is freed, though no image has them yet.
 *
 *     in = agx_intake_new(images);
 *     for each layer that agx_intake_has() not: agx_intake_layer(in, &spool, &layer, done, ...)
 *     agx_intake_image(in, &parts, done, ...)
 *     in = agx_intake_free(in);
 *
 * Two intakes that bring the same layer share the work: one unpacks, the other waits for it.
 */
#ifndef AGX_IMAGE_INTAKE_H
#define AGX_IMAGE_INTAKE_H

#include "image/images.h"
#include "image/spool.h"

struct agx_intake;

struct agx_intake *agx_intake_new(struct agx_images *s);

/* What is under way ends as AGX_CANCELLED; its `done` still comes. Accepts NULL; returns NULL. */
struct agx_intake *agx_intake_free(struct agx_intake *in);

/* The store has the layer, and keeps it for this intake. */
bool agx_intake_has(struct agx_intake *in, struct agx_str diff_id);

struct agx_intake_layer {
    struct agx_str digest;  /* "sha256:..." of the blob; empty: not known */
    struct agx_str diff_id; /* "sha256:..." of the tar in it */
};

/*
 * A blob that has wholly been written to *take_spool: tar, or that in gzip, zstd or xz. Its digest
 * is checked, it is unpacked, the digest of the tar is checked, and it is in the store.
 * -AGX_DATA_LOSS for bytes with another digest, -AGX_INVALID_ARGUMENT for a tar that is refused,
 * -AGX_RESOURCE_EXHAUSTED for one that is too large.
 */
int agx_intake_layer(struct agx_intake *in, struct agx_spool **take_spool,
                     const struct agx_intake_layer *layer, agx_done_fn done, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

struct agx_intake_image {
    struct agx_str config;   /* as it came: its digest is the image's id */
    struct agx_str manifest; /* as it came; empty: there is none */
    struct agx_str name;     /* any spelling; another image that has it loses it. Empty: none */
};

/* Once, never inside the call; the callee owns a reference to `image`, or `error`. */
typedef void (*agx_image_fn)(void *user, struct agx_image *image, struct agx_error *error);

/*
 * All layers that the configuration names are in the store (else -AGX_FAILED_PRECONDITION). An
 * image that is there already gets the name. It is on disk before `done`.
 */
int agx_intake_image(struct agx_intake *in, const struct agx_intake_image *parts, agx_image_fn done,
                     void *user, struct agx_error **err) AGX_MUST_CHECK;

#endif

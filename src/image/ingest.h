/*
 * ingest.h: ingest: adds an image to the store: first its layers, one by one or several at a time,
 * then its configuration, manifest and name. The layers that an ingest has named stay in the store
 * until it is freed, although no image uses them yet.
 *
 *     in = agx_ingest_new(images);
 *     for each layer that is not agx_ingest_has(): agx_ingest_layer(in, &spool, &layer, done, ...)
 *     agx_ingest_image(in, &parts, done, ...)
 *     in = agx_ingest_free(in);
 *
 * Two ingests of the same layer share the work: one unpacks, the other waits for it.
 */
#ifndef AGX_IMAGE_INGEST_H
#define AGX_IMAGE_INGEST_H

#include "image/images.h"
#include "image/spool.h"

struct agx_ingest;

struct agx_ingest *agx_ingest_new(struct agx_images *s);

/* Work in progress ends as AGX_CANCELLED; its `done` still comes. Accepts NULL; returns NULL. */
struct agx_ingest *agx_ingest_free(struct agx_ingest *in);

/* Whether the store has the layer; if so, it is held for this ingest. */
bool agx_ingest_has(struct agx_ingest *in, struct agx_str diff_id);

struct agx_ingest_layer {
    struct agx_str digest;  /* "sha256:..." of the blob; empty: unknown */
    struct agx_str diff_id; /* "sha256:..." of the tar in it */
};

/*
 * A blob that was completely written to *take_spool: a tar, also compressed with gzip, zstd or xz.
 * Its digest is checked, it is unpacked, the tar's digest is checked, and it is added to the store.
 * -AGX_DATA_LOSS for a wrong digest, -AGX_INVALID_ARGUMENT for a tar that is refused,
 * -AGX_RESOURCE_EXHAUSTED for one that is too large.
 */
int agx_ingest_layer(struct agx_ingest *in, struct agx_spool **take_spool,
                     const struct agx_ingest_layer *layer, agx_done_fn done, void *user,
                     struct agx_error **err) AGX_MUST_CHECK;

struct agx_ingest_image {
    struct agx_str config;   /* original text: its digest is the image's id */
    struct agx_str manifest; /* original text; empty: none */
    struct agx_str name;     /* in any spelling; an image that has it loses it. Empty: none */
};

/* Called once, never inside the call; the callee owns a reference to `image`, or `error`. */
typedef void (*agx_image_fn)(void *user, struct agx_image *image, struct agx_error *error);

/*
 * All layers that the configuration names must be in the store (else -AGX_FAILED_PRECONDITION). An
 * existing image gets the name. It is on disk before `done`.
 */
int agx_ingest_image(struct agx_ingest *in, const struct agx_ingest_image *parts, agx_image_fn done,
                     void *user, struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * image_wire.h: the answers of agentix.v1.ImageService, as the daemon writes and clients read them.
 *
 * Encoding borrows its input and appends to `out`; it fails only with -AGX_RESOURCE_EXHAUSTED.
 * Decoded values are owned; free them with the function `done`, which accepts NULL. -AGX_INTERNAL
 * for malformed bytes, and then there is nothing to free.
 */
#ifndef AGX_WIRE_IMAGE_WIRE_H
#define AGX_WIRE_IMAGE_WIRE_H

#include "base/buf.h"
#include "core/spec.h"
#include "wire/view.h"

/* Image. */
struct agx_image_view {
    char *id;
    struct agx_words names;
    char *digest;        /* NULL: none */
    int64_t added_at_ns; /* 0: unknown */
    uint64_t size_bytes;
    uint32_t sandboxes;
};

struct agx_image_views {
    struct agx_image_view *items;
    size_t len;
};

/* Adds an element to an ImportImageResponse or ListImagesResponse, or sets the image of a
 * PullImageResponse or InspectImageResponse. */
int agx_reply_image(struct agx_buf *out, const struct agx_image_view *v) AGX_MUST_CHECK;
/* Decodes all images of any of these answers. */
int agx_image_views_decode(struct agx_image_views *v, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_image_views_done(struct agx_image_views *v);

/* PullImageResponse with the progress. */
int agx_reply_image_pull(struct agx_buf *out, const struct agx_pull *pull) AGX_MUST_CHECK;
/* 1: decoded into `v`; 0: the answer has the image instead, and `v` is empty. */
int agx_image_pull_decode(struct agx_pull_view *v, struct agx_str bytes,
                          struct agx_error **err) AGX_MUST_CHECK;

/* The rest of InspectImageResponse. Texts may be NULL: unknown. */
struct agx_image_details {
    char *user, *working_dir, *stop_signal, *architecture, *created;
    struct agx_words env, entrypoint, command, exposed_ports;
    struct agx_pairs labels;
    struct agx_healthcheck healthcheck;
    struct agx_words layers;
};

int agx_reply_image_details(struct agx_buf *out, const struct agx_image_details *d) AGX_MUST_CHECK;
int agx_image_details_decode(struct agx_image_details *d, struct agx_str bytes,
                             struct agx_error **err) AGX_MUST_CHECK;
void agx_image_details_done(struct agx_image_details *d);

/* {Remove,Prune}ImageResponse. */
struct agx_images_removed_view {
    struct agx_words names, ids;
    uint64_t bytes;
};

int agx_reply_images_removed(struct agx_buf *out,
                             const struct agx_images_removed_view *v) AGX_MUST_CHECK;
int agx_images_removed_decode(struct agx_images_removed_view *v, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
void agx_images_removed_done(struct agx_images_removed_view *v);

#endif

/*
 * image.h: an image of the store: its configuration, which sandboxes are made from, and the places
 * of its layers.
 *
 * Nothing of it changes except its names and its pins, which belong to the loop thread.
 */
#ifndef AGX_IMAGE_IMAGE_H
#define AGX_IMAGE_IMAGE_H

#include "core/spec.h"

/* The configuration, in the format of Docker and OCI. */
struct agx_image_config {
    char *os, *architecture, *variant;    /* "linux", "amd64"; NULL: not set */
    char *created;                        /* RFC 3339; NULL: not set */
    char *user;                           /* USER of the image; NULL: root */
    char *workdir;                        /* absolute; NULL: "/" */
    char *stop_signal;                    /* "SIGTERM", "15"; NULL: SIGTERM */
    struct agx_words env;                 /* "NAME=value" */
    struct agx_words entrypoint, command; /* empty: none */
    struct agx_words exposed_ports;       /* "80/tcp" */
    struct agx_pairs labels;
    struct agx_healthcheck healthcheck; /* test as in a spec: "CMD", ..., or "CMD-SHELL", text */
    struct agx_words diff_ids;          /* "sha256:...", the lowest layer first */
};

/*
 * Overwrites `c`; a failure leaves nothing to free. -AGX_INVALID_ARGUMENT for text that is not an
 * image configuration.
 */
int agx_image_config_parse(struct agx_image_config *c, struct agx_str text,
                           struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL; empty afterwards. */
void agx_image_config_done(struct agx_image_config *c);

struct agx_image {
    unsigned refs;
    unsigned pins;          /* sandboxes made from it: it cannot be removed meanwhile */
    char *id;               /* digest of the configuration, "sha256:..." */
    char *digest;           /* of its manifest; NULL: none was given */
    struct agx_words names; /* full names, "docker.io/library/python:3.13"; may be empty */
    /* Absolute directories, the top one first, in overlayfs's order. Never empty: an image without
     * layers has one empty directory. */
    struct agx_words layers;
    struct agx_image_config config;
    char *config_text; /* the configuration's original text */
    uint64_t size;     /* bytes of the files of all its layers */
    int64_t added_ms;  /* when it was added to the store, since 1970 */
};

struct agx_image *agx_image_ref(struct agx_image *i);
/* Accepts and returns NULL. */
struct agx_image *agx_image_unref(struct agx_image *i);

/*
 * A pin for each sandbox, from before its root is mounted until its files are removed; also for
 * those that a restarted daemon finds. A pin holds its own reference.
 */
struct agx_image *agx_image_pin(struct agx_image *i);
/* Accepts and returns NULL. */
struct agx_image *agx_image_unpin(struct agx_image *i);

static inline void agx_image_unrefp(struct agx_image **i)
{
    *i = agx_image_unref(*i);
}

#endif

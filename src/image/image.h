/*
 * image.h: an image of the store: what its configuration says of the sandboxes that are made from
 * it, and where its layers are.
 *
 * Nothing of it changes but its names and its pins, which are the loop thread's.
 */
#ifndef AGX_IMAGE_IMAGE_H
#define AGX_IMAGE_IMAGE_H

#include "core/spec.h"

/* What the configuration says, as Docker and OCI write it. */
struct agx_image_config {
    char *os, *architecture, *variant;    /* "linux", "amd64"; NULL: not said */
    char *created;                        /* RFC 3339; NULL: not said */
    char *user;                           /* as USER has it; NULL: root */
    char *workdir;                        /* NULL: "/" */
    char *stop_signal;                    /* "SIGTERM", "15"; NULL: SIGTERM */
    struct agx_words env;                 /* "NAME=value" */
    struct agx_words entrypoint, command; /* empty: none */
    struct agx_words exposed_ports;       /* "80/tcp" */
    struct agx_pairs labels;
    struct agx_healthcheck healthcheck; /* test as in a spec: "CMD", ..., or "CMD-SHELL", text */
    struct agx_words diff_ids;          /* "sha256:...", the lowest layer first */
};

/*
 * `c` is overwritten; nothing is to be freed on failure. -AGX_INVALID_ARGUMENT for text that is no
 * configuration of an image.
 */
int agx_image_config_parse(struct agx_image_config *c, struct agx_str text,
                           struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL; empty afterwards. */
void agx_image_config_done(struct agx_image_config *c);

struct agx_image {
    unsigned refs;
    unsigned pins;          /* sandboxes that are made from it: it cannot be removed meanwhile */
    char *id;               /* digest of the configuration, "sha256:..." */
    char *digest;           /* of its manifest; NULL: it came without one */
    struct agx_words names; /* whole ones, "docker.io/library/python:3.13"; maybe none */
    /* Directories, absolute, the top one first, as overlayfs wants them. Never empty: an image
     * without layers has one empty directory. */
    struct agx_words layers;
    struct agx_image_config config;
    char *config_text; /* the configuration as it came */
    uint64_t size;     /* bytes of the files of all its layers */
    int64_t added_ms;  /* when it came into the store, since 1970 */
};

struct agx_image *agx_image_ref(struct agx_image *i);
/* Returns NULL; accepts NULL. */
struct agx_image *agx_image_unref(struct agx_image *i);

/*
 * A pin for each sandbox, from before its root is mounted until its files are gone; also for those
 * that a restarted daemon finds. A pin holds a reference of its own.
 */
struct agx_image *agx_image_pin(struct agx_image *i);
/* Returns NULL; accepts NULL. */
struct agx_image *agx_image_unpin(struct agx_image *i);

static inline void agx_image_unrefp(struct agx_image **i)
{
    *i = agx_image_unref(*i);
}

#endif

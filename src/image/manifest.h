/*
 * manifest.h: what a registry knows an image by: a manifest names its configuration and its layers,
 * an index names a manifest for each platform. Docker's (schema 2) and OCI's are read alike. No
 * I/O.
 */
#ifndef AGX_IMAGE_MANIFEST_H
#define AGX_IMAGE_MANIFEST_H

#include "base/error.h"
#include "base/str.h"

/* The value of "Accept" by which all that we read is asked for. */
#define AGX_MANIFEST_ACCEPT                                                                        \
    "application/vnd.oci.image.index.v1+json, "                                                    \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.oci.image.manifest.v1+json, "                                                 \
    "application/vnd.docker.distribution.manifest.v2+json"

/* A blob, or another manifest. */
struct agx_descriptor {
    char *media_type; /* NULL: not said */
    char *digest;     /* "sha256:" and 64 digits */
    uint64_t size;
};

/* As Go's GOOS, GOARCH and GOARM name them. */
struct agx_platform {
    const char *os, *architecture, *variant; /* the variant may be NULL */
};

/* This machine's. */
extern const struct agx_platform agx_platform_here;

struct agx_manifest {
    bool is_index;
    struct agx_descriptor chosen; /* of an index: the manifest for the platform */
    struct agx_descriptor config; /* of a manifest, as the next */
    struct agx_descriptor *layers;
    size_t n_layers; /* the lowest first */
};

/*
 * `m` is overwritten, and there is nothing to free on failure. -AGX_DATA_LOSS for text that is
 * neither, or both; -AGX_FAILED_PRECONDITION for what we cannot use: Docker's schema 1, things that
 * are no images, and an index without the platform, with those that there are.
 */
int agx_manifest_parse(struct agx_manifest *m, struct agx_str text,
                       const struct agx_platform *platform, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; empty afterwards. */
void agx_manifest_done(struct agx_manifest *m);

/* 1: "sha256:" and the digest of these bytes is `digest`; 0: it is not. */
int agx_descriptor_fits(const char *digest, struct agx_str bytes,
                        struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * manifest.h: parses a registry's descriptions of an image: a manifest names its configuration and
 * its layers, an index names a manifest for each platform. Docker's format (schema 2) and OCI's are
 * treated alike. No I/O.
 */
#ifndef AGX_IMAGE_MANIFEST_H
#define AGX_IMAGE_MANIFEST_H

#include "base/error.h"
#include "base/str.h"

/* The value of "Accept" that asks for all types that we can read. */
#define AGX_MANIFEST_ACCEPT                                                                        \
    "application/vnd.oci.image.index.v1+json, "                                                    \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.oci.image.manifest.v1+json, "                                                 \
    "application/vnd.docker.distribution.manifest.v2+json"

/* A blob, or another manifest. */
struct agx_descriptor {
    char *media_type; /* NULL: not given */
    char *digest;     /* "sha256:" and 64 digits */
    uint64_t size;
};

/* In the terms of Go: GOOS, GOARCH and GOARM. */
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
 * Overwrites `m`; a failure leaves nothing to free. -AGX_DATA_LOSS for text that is neither, or
 * both; -AGX_FAILED_PRECONDITION for what we cannot use: Docker's schema 1, artifacts that are not
 * images, and an index without the platform (the error lists those that it has).
 */
int agx_manifest_parse(struct agx_manifest *m, struct agx_str text,
                       const struct agx_platform *platform, struct agx_error **err) AGX_MUST_CHECK;

/* Accepts NULL; empty afterwards. */
void agx_manifest_done(struct agx_manifest *m);

/* 1: "sha256:" and the digest of these bytes is `digest`; 0: it is not. */
int agx_descriptor_fits(const char *digest, struct agx_str bytes,
                        struct agx_error **err) AGX_MUST_CHECK;

#endif

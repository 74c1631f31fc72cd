/*
 * imageref.h: names of images as people write them: "python", "python:3.11",
 * "registry:5000/team/tool@sha256:...". A name without a registry is one of Docker Hub's, and one
 * without tag and digest is the latest.
 */
#ifndef AGX_CORE_IMAGEREF_H
#define AGX_CORE_IMAGEREF_H

#include "core/text.h"

struct agx_imageref {
    char *registry; /* "docker.io", "registry:5000" */
    char *path;     /* "library/python", "team/tool" */
    char *tag;      /* NULL: a digest, or an id */
    char *digest;   /* "sha256:..."; it counts more than the tag. NULL: none */
    char *id;       /* the image's own id: found at the engine only; the others are NULL */
};

/* -AGX_INVALID_ARGUMENT for text that is no such name, with what is wrong. `r` is overwritten, and
 * there is nothing to free on failure. */
int agx_imageref_parse(struct agx_imageref *r, struct agx_str text,
                       struct agx_error **err) AGX_MUST_CHECK;

/* The whole name in the one form that all its spellings have: "docker.io/library/python:latest".
 * Owned; NULL when there is no memory. */
char *agx_imageref_text(const struct agx_imageref *r);

/* Accepts NULL. */
void agx_imageref_done(struct agx_imageref *r);

#endif

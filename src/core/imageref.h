/*
 * imageref.h: image names as users write them: "python", "python:3.11",
 * "registry:5000/team/tool@sha256:...". The default registry is Docker Hub; without tag and digest
 * the name means the tag "latest".
 */
#ifndef AGX_CORE_IMAGEREF_H
#define AGX_CORE_IMAGEREF_H

#include "core/text.h"

struct agx_imageref {
    char *registry; /* "docker.io", "registry:5000" */
    char *path;     /* "library/python", "team/tool" */
    char *tag;      /* NULL: a digest, or an id */
    char *digest;   /* "sha256:..."; takes precedence over the tag. NULL: none */
    char *id;       /* the image's own id, for an engine only; the others are NULL */
};

/* -AGX_INVALID_ARGUMENT with the reason for text that is not an image name. `r` is overwritten; on
 * failure there is nothing to free. */
int agx_imageref_parse(struct agx_imageref *r, struct agx_str text,
                       struct agx_error **err) AGX_MUST_CHECK;

/* The whole name in canonical form: "docker.io/library/python:latest". Owned; NULL without memory.
 */
char *agx_imageref_text(const struct agx_imageref *r);

/* Accepts NULL. */
void agx_imageref_done(struct agx_imageref *r);

#endif

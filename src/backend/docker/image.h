/* image.h: the configuration of an image, for the containers made from it. */
#ifndef AGX_BACKEND_DOCKER_IMAGE_H
#define AGX_BACKEND_DOCKER_IMAGE_H

#include "base/json.h"
#include "core/text.h"

struct agx_docker_image {
    char *id;                             /* "sha256:..." */
    char *user;                           /* USER of the image; NULL: root */
    char *workdir;                        /* NULL: "/" */
    struct agx_words env;                 /* "NAME=value" */
    struct agx_words entrypoint, command; /* empty: none */
};

void agx_docker_image_init(struct agx_docker_image *i);
/* Empty afterwards, as after init. Accepts NULL. */
void agx_docker_image_done(struct agx_docker_image *i);

/*
 * From the engine's answer to GET /images/NAME/json; overwrites `i`, and a failure leaves nothing
 * to free. -AGX_INTERNAL for an invalid answer.
 */
int agx_docker_image_parse(struct agx_docker_image *i, const json_t *inspect,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Does the image's environment set this variable? */
bool agx_docker_image_sets(const struct agx_docker_image *i, const char *name);

#endif

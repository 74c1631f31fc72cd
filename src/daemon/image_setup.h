/*
 * image_setup.h: the daemon's images: the store, and who fills it from registries and engines,
 * opened with our configuration and environment.
 */
#ifndef AGX_DAEMON_IMAGE_SETUP_H
#define AGX_DAEMON_IMAGE_SETUP_H

#include "backend/docker/api/engine_endpoint.h"
#include "daemon/config.h"
#include "image/pull.h"

/* All borrowed for the calls. */
struct agx_image_setup {
    const struct agx_config *config;
    const struct agx_docker_env *env; /* for credentials, and for the engine of "docker-daemon:" */
    const char *dir;
    struct agx_idmap idmap; /* of the sandboxes' ids */
};

int agx_image_setup_store(struct agx_loop *l, const struct agx_image_setup *s,
                          struct agx_images **ret_images, struct agx_error **err) AGX_MUST_CHECK;

/* A host without an engine is none to complain of: whoever wants an image from it is told. */
int agx_image_setup_puller(struct agx_loop *l, const struct agx_image_setup *s,
                           struct agx_images *images, struct agx_puller **ret_puller,
                           struct agx_error **err) AGX_MUST_CHECK;

#endif

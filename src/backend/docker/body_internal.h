/* body_internal.h: what the files of body.h share. */
#ifndef AGX_BACKEND_DOCKER_BODY_INTERNAL_H
#define AGX_BACKEND_DOCKER_BODY_INTERNAL_H

#include "backend/docker/body.h"

/* "44,105": the groups of GPUs. False: no memory. */
bool agx_docker_body_print_groups(const struct agx_docker_primary *p, struct agx_buf *out);

/* The variables of a primary, added to `envs`. */
int agx_docker_body_envs(const struct agx_docker_frame *f, const struct agx_docker_primary *p,
                         struct agx_pairs *envs, struct agx_error **err) AGX_MUST_CHECK;

#endif

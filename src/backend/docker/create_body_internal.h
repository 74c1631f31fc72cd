/* create_body_internal.h: what the files of create_body.h share. */
#ifndef AGX_BACKEND_DOCKER_CREATE_BODY_INTERNAL_H
#define AGX_BACKEND_DOCKER_CREATE_BODY_INTERNAL_H

#include "backend/docker/create_body.h"

/* -1: out of memory, as in jansson. */
static inline int agx_docker_create_body_push(json_t *list, const char *word)
{
    return json_array_append_new(list, json_string(word));
}

/* "44,105": the groups of GPUs. False: no memory. */
bool agx_docker_create_body_print_groups(const struct agx_docker_primary *p, struct agx_buf *out);

/* Init and its options, as a list of words. NULL: out of memory. */
json_t *agx_docker_create_body_init(const struct agx_docker_frame *f,
                                    const struct agx_docker_primary *p);

/* The engine opens the sources of mounts itself: nothing may run before they were compared. */
bool agx_docker_create_body_is_held(const struct agx_docker_frame *f,
                                    const struct agx_docker_primary *p);

/* Whether setuid files must be refused: the host could run what the sandbox leaves in a mount. Not
 * in compatibility mode, where the image has the powers that engines give. */
bool agx_docker_create_body_is_guarded(const struct agx_docker_frame *f,
                                       const struct agx_docker_primary *p);

/* Adds the variables of a primary to `envs`. */
int agx_docker_create_body_envs(const struct agx_docker_frame *f,
                                const struct agx_docker_primary *p, struct agx_pairs *envs,
                                struct agx_error **err) AGX_MUST_CHECK;

#endif

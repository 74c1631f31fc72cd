/* target.h: opens a backend by its user-visible name: "native", "docker", "fake:/run/world". */
#ifndef AGX_BACKEND_TARGET_H
#define AGX_BACKEND_TARGET_H

#include "backend/backend.h"
#include "backend/docker/docker.h"
#include "backend/native/native.h"

/* What each backend is opened with, besides the target; all borrowed. NULL: it cannot be chosen. */
struct agx_backend_setup {
    const struct agx_docker_config *docker; /* its target comes from the choice */
    const struct agx_native_config *native;
};

/* `choice` is NAME or NAME:TARGET; the backend defines what the target means. NULL or empty: no
 * choice was made. -AGX_INVALID_ARGUMENT lists the choices. */
int agx_backend_open(struct agx_loop *l, const char *choice, const struct agx_backend_setup *setup,
                     struct agx_backend **ret_backend, struct agx_error **err) AGX_MUST_CHECK;

/* Does `choice` name this backend? Then *ret_target, which borrows from it, is the text behind the
 * colon; NULL: none. */
bool agx_backend_chosen(const char *choice, const char *name, const char **ret_target);

#endif

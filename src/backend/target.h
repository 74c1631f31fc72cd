/* target.h: a backend by the name that people give it: "native", "docker:tcp://10.0.0.2:2375". */
#ifndef AGX_BACKEND_TARGET_H
#define AGX_BACKEND_TARGET_H

#include "backend/backend.h"
#include "backend/docker/docker.h"
#include "backend/native/native.h"

/* Beside the target, what each backend is opened with; all borrowed. NULL: it cannot be opened. */
struct agx_backend_setup {
    const struct agx_docker_config *docker; /* its target comes from the choice */
    const struct agx_native_config *native;
};

/* A backend that can be chosen. */
struct agx_backend_kind {
    const char *name;
    const char *form; /* how people write it: "docker[:HOST]" */
    /* `target` is the text after the name and a colon; NULL: there is none. */
    int (*open)(struct agx_loop *l, const char *target, const struct agx_backend_setup *setup,
                struct agx_backend **ret_backend, struct agx_error **err);
};

extern const struct agx_backend_kind agx_backend_kind_native, agx_backend_kind_docker;

/* `kinds` are the backends of this program, and NULL. `choice` is NAME or NAME:TARGET, and what the
 * target means is the backend's; NULL or empty: none was made. -AGX_INVALID_ARGUMENT with what
 * there is to choose from. */
int agx_backend_open(struct agx_loop *l, const struct agx_backend_kind *const *kinds,
                     const char *choice, const struct agx_backend_setup *setup,
                     struct agx_backend **ret_backend, struct agx_error **err) AGX_MUST_CHECK;

/* Does `choice` name this backend? Then *ret_target, which borrows from it, is the text behind the
 * colon; NULL: none. */
bool agx_backend_chosen(const char *choice, const char *name, const char **ret_target);

#endif

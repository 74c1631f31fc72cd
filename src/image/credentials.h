/*
 * credentials.h: our credentials for a registry, from Docker's config.json: a helper program for
 * that registry (credHelpers) or for all (credsStore), else an entry of `auths`.
 *
 * Helpers get the environment and the deadline that the caller names. A helper's failure does not
 * prevent a pull, because the registry may need no credentials; the reason is reported beside them.
 */
#ifndef AGX_IMAGE_CREDENTIALS_H
#define AGX_IMAGE_CREDENTIALS_H

#include "base/limits.h"
#include "loop/loop.h"

/* Values of the environment; each may be NULL, and an empty one counts as not set. */
struct agx_credentials_env {
    const char *config;     /* DOCKER_CONFIG: the directory of config.json */
    const char *home;       /* HOME */
    const char *path;       /* PATH, where helpers are */
    const char *const *all; /* the whole environment, for the helpers; ends with NULL */
};

/* A copy with owned strings, to be freed by agx_credentials_env_done(), which accepts NULL. */
struct agx_credentials_env agx_credentials_env_dup(const struct agx_credentials_env *env);
void agx_credentials_env_done(struct agx_credentials_env *env);

/* The directory of Docker's config.json, owned: DOCKER_CONFIG or HOME/.docker. NULL: neither is
 * set. */
char *agx_credentials_dir(const char *config, const char *home);

struct agx_credentials {
    const char *server; /* the registry's name in config.json */
    const char *user;   /* NULL: `secret` is a token that replaces the user */
    const char *secret;
};

struct agx_credentials_lookup;

/* Called once, never inside the start. `found` is borrowed; NULL: none. The callee owns `error`:
 * why there are none although there should be. */
typedef void (*agx_credentials_fn)(void *user, const struct agx_credentials *found,
                                   struct agx_error *error);

struct agx_credentials_lookup_params {
    const struct agx_credentials_env *env; /* borrowed for the call */
    const char *registry;                  /* "docker.io", "registry:5000" */
    uint64_t helper_ms;                    /* time limit of a helper */
};

struct agx_credentials_lookup *
agx_credentials_lookup_start(struct agx_loop *l, const struct agx_credentials_lookup_params *params,
                             agx_credentials_fn done, void *user);

/* No callback comes any more; a helper is killed. Accepts NULL. */
void agx_credentials_lookup_cancel(struct agx_credentials_lookup *k);

#endif

/* backend_config.h: what every backend is opened with, from our configuration and environment. */
#ifndef AGX_DAEMON_BACKEND_CONFIG_H
#define AGX_DAEMON_BACKEND_CONFIG_H

#include "backend/config.h"
#include "daemon/config.h"

/* Values of the environment; borrowed, the last two may be NULL. */
struct agx_backend_env {
    const char *home;          /* of the daemon's user; absolute */
    const char *ssh_auth_sock; /* SSH_AUTH_SOCK */
    const char *runtime_dir;   /* XDG_RUNTIME_DIR */
};

/* Borrows from `env`. But for what subsystems.c adds: the sandbox's home, sources. */
struct agx_backend_config agx_backend_config_make(const struct agx_config *c,
                                                  const struct agx_backend_env *env);

#endif

/* backend_config.c: see backend_config.h. */
#include "daemon/backend_config.h"

#include <unistd.h>

#include "base/banned.h"

struct agx_backend_config agx_backend_config_make(const struct agx_config *c,
                                                  const struct agx_backend_env *env)
{
    return (struct agx_backend_config){ .compat = c->compat,
                                        .lan_blocked = c->lan_blocked,
                                        .host_uid = geteuid(),
                                        .host_gid = getegid(),
                                        .tools = { .home = env->home,
                                                   .ssh_auth_sock = env->ssh_auth_sock,
                                                   .runtime_dir = env->runtime_dir,
                                                   .uid = geteuid(),
                                                   .compat = c->compat } };
}

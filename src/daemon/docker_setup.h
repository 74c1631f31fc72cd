/*
 * docker_setup.h: what the Docker backend is opened with, from our configuration and environment.
 *
 * Everything that can be wrong with it is found before anything is touched: a host that is none, no
 * agentix-init, no right to make the rules that keep sandboxes apart.
 */
#ifndef AGX_DAEMON_DOCKER_SETUP_H
#define AGX_DAEMON_DOCKER_SETUP_H

#include "backend/docker/docker.h"
#include "daemon/config.h"

struct agx_docker_setup {
    struct agx_docker_config
        config;       /* but for what subsystems.c adds: state, what all backends have */
    const char *init; /* what the configuration says of it; borrowed */
    char *init_path;
    char *engine_socket; /* no mount may show it; NULL: it has none here */
    bool used;           /* the configuration chose this backend; else all is empty */
    bool is_local;
};

/* The environment is borrowed. -AGX_INVALID_ARGUMENT: the host is none. */
int agx_docker_setup_init(struct agx_docker_setup *s, const struct agx_config *c,
                          const struct agx_docker_env *env, struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_docker_setup_done(struct agx_docker_setup *s);

/*
 * What the machine must have: agentix-init, and the right to make rules. -AGX_FAILED_PRECONDITION,
 * with the command that helps. An engine on another machine can be given neither: what that means
 * is the backend's.
 */
int agx_docker_setup_complete(struct agx_docker_setup *s, struct agx_error **err) AGX_MUST_CHECK;

#endif

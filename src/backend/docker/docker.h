/*
 * docker.h: sandboxes as containers of a Docker Engine: `--backend docker[:HOST]`.
 *
 * A sandbox is a network, a primary container with agentix-init as its PID 1, and its companions.
 * All that a restarted daemon needs to know is in their labels; docs/design/docker.md.
 */
#ifndef AGX_BACKEND_DOCKER_DOCKER_H
#define AGX_BACKEND_DOCKER_DOCKER_H

#include "backend/backend.h"
#include "backend/config.h"
#include "backend/docker/api/engine_endpoint.h"
#include "backend/docker/control_mode.h"
#include "base/limits.h"

enum agx_docker_isolation {
    AGX_DOCKER_ISOLATION_REQUIRED, /* no sandbox without firewall rules */
    AGX_DOCKER_ISOLATION_OFF,      /* for a remote engine, or without the right to make rules */
};

/* Strings are borrowed for the call of open. */
struct agx_docker_config {
    struct agx_backend_config common; /* compat: names, labels, user and environment */
    const char *target; /* "unix:///path", "tcp://host:port"; NULL: the environment says */
    struct agx_docker_env env;
    const char *state_dir; /* absolute; has the file `instance`: a UUID, made once */
    const char *init_path; /* agentix-init on the engine's host; absolute */
    enum agx_docker_control control;
    const char *pool;        /* address pool of our networks, as a CIDR; NULL: the engine chooses */
    unsigned pool_prefix;    /* prefix length of each network */
    unsigned networks_ready; /* spare networks for creates; 0: none */
    uint32_t pids;           /* processes in one container; 0: no limit */
    enum agx_docker_isolation isolation;
};

#define AGX_DOCKER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .pool = AGX_SUBNETS_POOL, .pool_prefix = AGX_SUBNETS_PREFIX, .pids = AGX_DOCKER_PIDS       \
    }

/*
 * Returns at once; the first operation connects to the engine. -AGX_FAILED_PRECONDITION where
 * isolation is required and this process may not make rules (with the command that grants the
 * right), -AGX_INVALID_ARGUMENT for an invalid host.
 */
int agx_backend_docker_open(struct agx_loop *l, const struct agx_docker_config *c,
                            struct agx_backend **ret_backend,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

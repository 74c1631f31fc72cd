/* docker_setup.c: keys and variables into struct agx_docker_config. */
#include "daemon/docker_setup.h"

#include "backend/net/firewall.h"
#include "backend/program_path.h"
#include "backend/target.h"
#include "base/banned.h"

static void docker_setup_fill(struct agx_docker_setup *s, const struct agx_config *c,
                              const struct agx_docker_env *env)
{
    s->config = (struct agx_docker_config)AGX_DOCKER_CONFIG_INIT;
    s->init = c->docker.init;
    s->config.env = *env;
    s->config.control = c->docker.control;
    if (c->docker.pool)
        s->config.pool = c->docker.pool;
    s->config.pool_prefix = c->docker.pool_prefix;
    s->config.networks_ready = c->docker.networks_ready;
    s->config.pids = c->docker.pids;
    s->config.isolation =
        c->docker.isolation_off ? AGX_DOCKER_ISOLATION_OFF : AGX_DOCKER_ISOLATION_REQUIRED;
}

int agx_docker_setup_init(struct agx_docker_setup *s, const struct agx_config *c,
                          const struct agx_docker_env *env, struct agx_error **err)
{
    struct agx_engine_endpoint endpoint = { 0 };
    const char *target = NULL;
    int r;

    *s = (struct agx_docker_setup){ 0 };
    if (!agx_backend_chosen(c->backend, "docker", &target))
        return 0;
    docker_setup_fill(s, c, env);
    r = agx_engine_endpoint_find(target, env, &endpoint, err);
    if (r < 0)
        return agx_error_wrap(err, r, "find the Docker Engine");
    s->used = true;
    s->is_local = endpoint.is_local;
    s->engine_socket = AGX_TAKE_PTR(endpoint.unix_socket);
    agx_engine_endpoint_done(&endpoint);
    return 0;
}

void agx_docker_setup_done(struct agx_docker_setup *s)
{
    if (!s)
        return;
    free(s->init_path);
    free(s->engine_socket);
    *s = (struct agx_docker_setup){ 0 };
}

int agx_docker_setup_complete(struct agx_docker_setup *s, struct agx_error **err)
{
    int r = 0;

    if (!s->used || !s->is_local)
        return 0;
    if (s->config.isolation == AGX_DOCKER_ISOLATION_REQUIRED)
        r = agx_firewall_allowed(err);
    if (r == 0 && s->config.control != AGX_DOCKER_CONTROL_ENGINE)
        r = agx_program_path_find("agentix-init", s->init, NULL, &s->init_path, err);
    s->config.init_path = s->init_path;
    return r;
}

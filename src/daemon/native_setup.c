/* native_setup.c: keys and variables into struct agx_native_config. */
#include "daemon/native_setup.h"

#include "backend/net/firewall.h"
#include "backend/program_path.h"
#include "backend/target.h"

#include "base/banned.h"

static void native_setup_fill(struct agx_native_setup *s, const struct agx_config *c)
{
    s->config = (struct agx_native_config)AGX_NATIVE_CONFIG_INIT;
    s->init = c->native.init;
    if (c->native.pool)
        s->config.pool = c->native.pool;
    s->config.id_base = c->native.id_base;
    s->config.ready = c->native.ready;
    s->config.pids = c->native.pids;
}

int agx_native_setup_init(struct agx_native_setup *s, const struct agx_config *c,
                          struct agx_error **err)
{
    struct agx_subnet pool;
    const char *target = NULL;
    int r;

    *s = (struct agx_native_setup){ 0 };
    if (!agx_backend_chosen(c->backend, "native", &target))
        return 0;
    if (target)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the backend 'native' takes no target");
    native_setup_fill(s, c);
    r = agx_subnet_parse(agx_str_from(s->config.pool), &pool, err);
    if (r < 0)
        return agx_error_wrap(err, r, "native.pool");
    s->used = true;
    return 0;
}

void agx_native_setup_done(struct agx_native_setup *s)
{
    if (!s)
        return;
    free(s->init_path);
    free(s->unpack_path);
    free(s->forward_path);
    *s = (struct agx_native_setup){ 0 };
}

int agx_native_setup_wrap(const struct agx_native_setup *s, int r, struct agx_error **err)
{
    if (r >= 0 || !s->used)
        return r;
    return agx_error_wrap(
        err, r,
        "the backend 'native' cannot run here ('agentixd --backend docker' takes a "
        "Docker Engine instead)");
}

static int complete(struct agx_native_setup *s, struct agx_error **err)
{
    int r;

    if (!s->used)
        return 0;
    s->rootless = geteuid() != 0;
    if (!s->rootless && (r = agx_firewall_allowed(err)) < 0)
        return r;
    if ((r = agx_program_path_find("agentix-init", s->init, NULL, &s->init_path, err)) < 0 ||
        (r = agx_program_path_find("agentix-unpack", NULL, NULL, &s->unpack_path, err)) < 0 ||
        (r = agx_program_path_find("agentix-forward", NULL, NULL, &s->forward_path, err)) < 0)
        return r;
    s->config.init_path = s->init_path;
    s->config.unpack_path = s->unpack_path;
    s->config.forward_path = s->forward_path;
    return 0;
}

int agx_native_setup_complete(struct agx_native_setup *s, struct agx_error **err)
{
    return agx_native_setup_wrap(s, complete(s, err), err);
}

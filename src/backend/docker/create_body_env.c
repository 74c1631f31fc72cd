/* create_body_env.c: the environment of a primary. */
#include "backend/docker/create_body_internal.h"

#include "backend/files/host_view.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

#define GROUPS_ENV "AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS"
#define NUMBER_SIZE 24

bool agx_docker_create_body_print_groups(const struct agx_docker_primary *p, struct agx_buf *out)
{
    int r = 0;

    out->max = NUMBER_SIZE * (p->gpu_groups_len + 1);
    for (size_t i = 0; r == 0 && i < p->gpu_groups_len; i++)
        r = agx_buf_printf(out, "%s%" PRIu32, i > 0 ? "," : "", p->gpu_groups[i]);
    return r == 0;
}

static int set_env(struct agx_pairs *envs, const char *name, const char *value,
                   struct agx_error **err)
{
    return agx_pairs_set(envs, agx_str_from(name), agx_str_from(value), err);
}

/* For the entrypoints of images that create their user at the start. */
static int set_env_groups(struct agx_pairs *envs, const struct agx_docker_primary *p,
                          struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf list = { 0 };

    if (p->gpu_groups_len == 0)
        return 0;
    if (!agx_docker_create_body_print_groups(p, &list))
        return agx_error_no_memory(err);
    return agx_pairs_set(envs, AGX_STR(GROUPS_ENV), agx_buf_peek(&list), err);
}

/* Later ones override: the caller's variables override ours, and those that init needs override the
 * caller's. */
int agx_docker_create_body_envs(const struct agx_docker_frame *f,
                                const struct agx_docker_primary *p, struct agx_pairs *envs,
                                struct agx_error **err)
{
    int r;

    if ((r = agx_host_view_envs(p->binds, p->tool_envs, p->host_uid, p->host_gid, envs, err)) < 0 ||
        (r = agx_pairs_merge(envs, &f->sandbox->spec.envs, err)) < 0 ||
        (r = set_env_groups(envs, p, err)) < 0)
        return r;
    return f->control == AGX_DOCKER_CONTROL_STDIO
               ? set_env(envs, AGX_DOCKER_INIT_KEY, p->init_key, err)
               : 0;
}

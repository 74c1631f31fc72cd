/* create_body_init.c: init's own part of a primary's command line. */
#include "backend/docker/create_body_internal.h"

#include "base/limits.h"

#include <stdio.h>

#include "base/banned.h"

#define NUMBER_SIZE 24

/* Engines set the HOME of the user that they start, which is root because of init. */
static bool keeps_home(const struct agx_spec *s, const struct agx_docker_image *image)
{
    return agx_pairs_get(&s->envs, "HOME") || agx_docker_image_sets(image, "HOME");
}

static int push_groups(json_t *entry, const struct agx_docker_primary *p)
{
    _cleanup_buf_ struct agx_buf list = { 0 };
    int bad = agx_docker_create_body_push(entry, "--groups");

    if (!agx_docker_create_body_print_groups(p, &list))
        return -1;
    return bad | json_array_append_new(entry, json_stringn((const char *)list.data, list.len));
}

bool agx_docker_create_body_is_held(const struct agx_docker_frame *f,
                                    const struct agx_docker_primary *p)
{
    return f->control != AGX_DOCKER_CONTROL_ENGINE && p->binds && p->binds->len > 0;
}

bool agx_docker_create_body_is_guarded(const struct agx_docker_frame *f,
                                       const struct agx_docker_primary *p)
{
    return !f->maker->compat && p->binds && agx_binds_need_suid_guard(p->binds);
}

json_t *agx_docker_create_body_init(const struct agx_docker_frame *f,
                                    const struct agx_docker_primary *p)
{
    const struct agx_docker_image *image = p->image;
    json_t *entry =
        json_pack("[sssss]", AGX_DOCKER_INIT, "--control", agx_docker_control_mode_name(f->control),
                  "--user", image->user ? image->user : "0");
    char await[NUMBER_SIZE];
    int bad = 0;

    if (agx_docker_create_body_is_held(f, p))
        bad |= agx_docker_create_body_push(entry, "--await-go");
    if (p->gpu_groups_len > 0)
        bad |= push_groups(entry, p);
    if (keeps_home(&f->sandbox->spec, image))
        bad |= agx_docker_create_body_push(entry, "--keep-home");
    if (agx_docker_create_body_is_guarded(f, p))
        bad |= agx_docker_create_body_push(entry, "--no-suid");
    if (f->maker->compat) {
        (void)snprintf(await, sizeof(await), "%u", AGX_DOCKER_AWAIT_USER_MS);
        bad |= agx_docker_create_body_push(entry, "--await-user") |
               agx_docker_create_body_push(entry, await);
    }
    if (bad) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

/* target.c: finds the backend of a name. */
#include "backend/target.h"

#include "base/banned.h"
#include "base/buf.h"

static int open_docker(struct agx_loop *l, const char *target,
                       const struct agx_backend_setup *setup, struct agx_backend **ret_backend,
                       struct agx_error **err)
{
    struct agx_docker_config c;

    if (!setup || !setup->docker)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the backend 'docker' is not set up");
    c = *setup->docker;
    c.target = target;
    return agx_backend_docker_open(l, &c, ret_backend, err);
}

static int open_native(struct agx_loop *l, const char *target,
                       const struct agx_backend_setup *setup, struct agx_backend **ret_backend,
                       struct agx_error **err)
{
    if (target)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the backend 'native' takes no target");
    if (!setup || !setup->native)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the backend 'native' is not set up");
    return agx_backend_native_open(l, setup->native, ret_backend, err);
}

const struct agx_backend_kind agx_backend_kind_native = { "native", "native", open_native };
const struct agx_backend_kind agx_backend_kind_docker = { "docker", "docker[:HOST]", open_docker };

static int target_refuse(const struct agx_backend_kind *const *kinds, const char *choice,
                         struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf forms = AGX_BUF_INIT(200);

    for (size_t i = 0; kinds[i]; i++)
        (void)!agx_buf_printf(&forms, "%s%s", i > 0 ? ", " : "", kinds[i]->form);
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "there is no backend '%s'; there are: %.*s",
                         choice ? choice : "", AGX_STR_ARG(agx_buf_peek(&forms)));
}

bool agx_backend_chosen(const char *choice, const char *name, const char **ret_target)
{
    size_t len = strlen(name);

    if (!choice || strncmp(choice, name, len) != 0 || (choice[len] != ':' && choice[len] != '\0'))
        return false;
    *ret_target = choice[len] == ':' ? choice + len + 1 : NULL;
    return true;
}

int agx_backend_open(struct agx_loop *l, const struct agx_backend_kind *const *kinds,
                     const char *choice, const struct agx_backend_setup *setup,
                     struct agx_backend **ret_backend, struct agx_error **err)
{
    const char *target = NULL;

    for (size_t i = 0; kinds[i]; i++) {
        if (agx_backend_chosen(choice, kinds[i]->name, &target))
            return kinds[i]->open(l, target, setup, ret_backend, err);
    }
    return target_refuse(kinds, choice, err);
}

/* target.c: which backend a name stands for. */
#include "backend/target.h"

#include "backend/fake/fake.h"

#include "base/banned.h"

static int open_fake(struct agx_loop *l, const char *target, struct agx_backend **ret_backend,
                     struct agx_error **err)
{
    struct agx_fake_config c = AGX_FAKE_CONFIG_INIT;

    c.dir = target;
    return agx_backend_fake_open(l, &c, ret_backend, err);
}

static const struct {
    const char *name;
    int (*open)(struct agx_loop *l, const char *target, struct agx_backend **ret_backend,
                struct agx_error **err);
} kinds[] = {
    { "fake", open_fake },
};

int agx_backend_open(struct agx_loop *l, const char *name, struct agx_backend **ret_backend,
                     struct agx_error **err)
{
    const struct agx_str kind = { name, strcspn(name, ":") };
    const char *target = name[kind.len] == ':' ? name + kind.len + 1 : "";

    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++) {
        if (agx_str_eq(kind, agx_str_from(kinds[i].name)))
            return kinds[i].open(l, target, ret_backend, err);
    }
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "there is no backend '%.*s'; there is: fake:DIR", AGX_STR_ARG(kind));
}

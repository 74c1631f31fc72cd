#include "daemon/backends.h"

#include "backend/fake/fake.h"
#include "base/buf.h"
#include "base/banned.h"

/* `target` is what stands behind the name and a colon; NULL: nothing. */
typedef int (*open_fn)(struct agx_loop *l, const char *target, struct agx_backend **ret_backend,
                       struct agx_error **err);

static int open_fake(struct agx_loop *l, const char *target, struct agx_backend **ret_backend,
                     struct agx_error **err)
{
    struct agx_fake_config c = AGX_FAKE_CONFIG_INIT;

    /* The daemon's own directory is "/" when it is in the background. */
    if (!target || target[0] != '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "the backend 'fake' needs a directory: fake:/absolute/path");
    c.dir = target;
    return agx_backend_fake_open(l, &c, ret_backend, err);
}

static const struct {
    const char *name;
    open_fn open;
} backends[] = {
    { "fake", open_fake },
};

static int refuse(const char *choice, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf names = AGX_BUF_INIT(200);

    for (size_t i = 0; i < AGX_ARRAY_LEN(backends); i++)
        (void)!agx_buf_printf(&names, "%s%s", i > 0 ? ", " : "", backends[i].name);
    if (choice && *choice)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "there is no backend '%s'; there are: %.*s",
                             choice, AGX_STR_ARG(agx_buf_peek(&names)));
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "no backend is chosen: give --backend, or set the key 'backend'; there "
                         "are: %.*s",
                         AGX_STR_ARG(agx_buf_peek(&names)));
}

int agx_backends_open(struct agx_loop *l, const char *choice, struct agx_backend **ret_backend,
                      struct agx_error **err)
{
    struct agx_str whole = agx_str_from(choice), name = whole;

    name.len = agx_str_find(whole, ':');
    for (size_t i = 0; i < AGX_ARRAY_LEN(backends); i++) {
        if (agx_str_eq(name, agx_str_from(backends[i].name)))
            return backends[i].open(l, name.len < whole.len ? choice + name.len + 1 : NULL,
                                    ret_backend, err);
    }
    return refuse(choice, err);
}

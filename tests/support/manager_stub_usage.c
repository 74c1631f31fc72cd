/* manager_stub_usage.c: the stub's answers to queries of resource usage. */
#include "daemon/manager/usage_query.h"
#include "tests/support/manager_stub_internal.h"

#include "base/mem.h"

#include "base/banned.h"

struct agx_usage_query {
    struct agx_manager *manager;
    size_t n_parts;
    agx_backend_usage_fn use;
    agx_done_fn done;
    void *user;
    struct agx_usage_query *next;
};

int agx_usage_query_start(struct agx_manager *e, const char *sandbox_id, agx_backend_usage_fn use,
                          agx_done_fn done, void *user, struct agx_usage_query **ret_usage,
                          struct agx_error **err)
{
    struct stub_box *b = stub_box_of(e, sandbox_id);
    struct agx_usage_query *u;

    if (!b)
        return agx_reason_error(AGX_REASON_SANDBOX_NOT_FOUND, sandbox_id, err);
    u = agx_new(struct agx_usage_query);
    *u = (struct agx_usage_query){ .manager = e,
                                   .n_parts = b->sb.spec.companions_len + 1,
                                   .use = use,
                                   .done = done,
                                   .user = user,
                                   .next = e->usages };
    e->usages = u;
    *ret_usage = u;
    stub_wake(e);
    return 0;
}

struct agx_usage_query *agx_usage_query_stop(struct agx_usage_query *u)
{
    struct agx_usage_query **at;

    if (!u)
        return NULL;
    for (at = &u->manager->usages; *at != u;)
        at = &(*at)->next;
    *at = u->next;
    free(u);
    return NULL;
}

void stub_tell_use(struct agx_manager *e)
{
    while (!e->use_held && e->usages) {
        struct agx_usage_query u = *e->usages;
        struct agx_error *error = NULL;

        (void)agx_usage_query_stop(e->usages);
        for (size_t i = 0; e->use_code == AGX_OK && i < u.n_parts; i++)
            u.use(u.user, i, &e->use);
        if (e->use_code != AGX_OK)
            (void)agx_error_set(&error, e->use_code, "on purpose");
        u.done(u.user, error);
    }
}

void stub_use(struct agx_manager *e, const struct agx_resource_usage *use, enum agx_code code,
              bool hold)
{
    e->use = use ? *use : (struct agx_resource_usage){ 0 };
    e->use_code = code;
    e->use_held = hold;
    stub_wake(e);
}

bool stub_use_waits(const struct agx_manager *e)
{
    return e->usages;
}

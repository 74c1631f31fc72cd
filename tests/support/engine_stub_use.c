/* engine_stub_use.c: the stub's answers to what a sandbox uses. */
#include "daemon/usage.h"
#include "tests/support/engine_stub_internal.h"

#include "base/mem.h"

#include "base/banned.h"

struct agx_usage {
    struct agx_engine *engine;
    size_t n_parts;
    agx_backend_use_fn use;
    agx_done_fn done;
    void *user;
    struct agx_usage *next;
};

int agx_usage_start(struct agx_engine *e, const char *sandbox_id, agx_backend_use_fn use,
                    agx_done_fn done, void *user, struct agx_usage **ret_usage,
                    struct agx_error **err)
{
    struct stub_box *b = stub_box_of(e, sandbox_id);
    struct agx_usage *u;

    if (!b)
        return agx_reason_error(AGX_REASON_SANDBOX_NOT_FOUND, sandbox_id, err);
    u = agx_new(struct agx_usage);
    *u = (struct agx_usage){ .engine = e,
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

struct agx_usage *agx_usage_stop(struct agx_usage *u)
{
    struct agx_usage **at;

    if (!u)
        return NULL;
    for (at = &u->engine->usages; *at != u;)
        at = &(*at)->next;
    *at = u->next;
    free(u);
    return NULL;
}

void stub_tell_use(struct agx_engine *e)
{
    while (!e->use_held && e->usages) {
        struct agx_usage u = *e->usages;
        struct agx_error *error = NULL;

        (void)agx_usage_stop(e->usages);
        for (size_t i = 0; e->use_code == AGX_OK && i < u.n_parts; i++)
            u.use(u.user, i, &e->use);
        if (e->use_code != AGX_OK)
            (void)agx_error_set(&error, e->use_code, "on purpose");
        u.done(u.user, error);
    }
}

void stub_use(struct agx_engine *e, const struct agx_use *use, enum agx_code code, bool hold)
{
    e->use = use ? *use : (struct agx_use){ 0 };
    e->use_code = code;
    e->use_held = hold;
    stub_wake(e);
}

bool stub_use_waits(const struct agx_engine *e)
{
    return e->usages;
}

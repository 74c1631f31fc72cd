/* usage_query.c: one query to the backend, with a timeout. */
#include "daemon/manager/usage_query.h"

#include "base/mem.h"
#include "daemon/manager/manager_internal.h"

#include <inttypes.h>

#include "base/banned.h"

struct agx_usage_query {
    struct agx_manager *manager;
    struct agx_backend_op *op;
    struct agx_alarm alarm;
    agx_backend_usage_fn use;
    agx_done_fn done;
    void *user;
};

static void usage_free(struct agx_usage_query *u)
{
    agx_alarms_clear(&u->manager->alarms, &u->alarm);
    free(u);
}

static void on_use(void *user, size_t part, const struct agx_resource_usage *use)
{
    const struct agx_usage_query *u = user;

    u->use(u->user, part, use);
}

static void on_done(void *user, struct agx_error *error)
{
    struct agx_usage_query *u = user;
    agx_done_fn done = u->done;
    void *asker = u->user;

    usage_free(u);
    done(asker, error);
}

static void on_late(struct agx_alarm *a)
{
    struct agx_usage_query *u = container_of(a, struct agx_usage_query, alarm);
    struct agx_error *error = NULL;

    agx_backend_abandon(u->op);
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED,
                        "the backend did not report the resource usage within %" PRIu64 " ms",
                        u->manager->config.usage_ms);
    on_done(u, error);
}

int agx_usage_query_start(struct agx_manager *e, const char *sandbox_id, agx_backend_usage_fn use,
                          agx_done_fn done, void *user, struct agx_usage_query **ret_usage,
                          struct agx_error **err)
{
    const struct agx_unit *unit = agx_manager_unit(e, sandbox_id, err);
    struct agx_usage_query *u;
    int r;

    if (!unit)
        return -AGX_NOT_FOUND;
    u = agx_new(struct agx_usage_query);
    *u = (struct agx_usage_query){ .manager = e, .use = use, .done = done, .user = user };
    r = agx_backend_usage(e->config.backend, &unit->sandbox, on_use, on_done, u, &u->op, err);
    if (r < 0) {
        free(u);
        return r;
    }
    agx_manager_alarm(e, &u->alarm, e->config.usage_ms, on_late);
    *ret_usage = u;
    return 0;
}

struct agx_usage_query *agx_usage_query_stop(struct agx_usage_query *u)
{
    if (!u)
        return NULL;
    agx_backend_abandon(u->op);
    usage_free(u);
    return NULL;
}

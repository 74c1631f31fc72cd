/*
 * control_usage.c: agentix.v1's GetSandbox: a sandbox and its current resource usage.
 *
 * The stored part is always returned. If the backend cannot report the usage, or takes too long,
 * only the usage figures are missing.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "daemon/manager/usage_query.h"
#include "wire/sandbox_request.h"
#include "wire/usage_wire.h"

#include "base/banned.h"

enum { MESSAGE_MAX = 1024 };

struct getting {
    struct agx_service *service;
    struct agx_grpc_call *call;
    char *id;
    struct agx_usage_query *usage;    /* NULL: ended, or never began */
    struct agx_resource_usage *parts; /* the primary's is first */
    bool *told;                       /* per part: usage was reported */
    size_t n_parts;
};

static void getting_free(struct getting *g)
{
    g->usage = agx_usage_query_stop(g->usage);
    free(g->id);
    free(g->parts);
    free(g->told);
    free(g);
}

static int put_parts(const struct getting *g, struct agx_buf *out, const struct agx_spec *spec)
{
    int r = g->n_parts > 0 && g->told[0] ? agx_reply_usage(out, &g->parts[0]) : 0;

    for (size_t i = 1; r == 0 && i < g->n_parts && i <= spec->companions_len; i++) {
        if (g->told[i])
            r = agx_reply_companion_usage(out, spec->companions[i - 1].name, &g->parts[i]);
    }
    return r;
}

/* Appends the sandbox, the reported usage, and why the rest is missing. */
static int put_answer(const struct getting *g, struct agx_buf *out, const struct agx_sandbox *sb,
                      const struct agx_error *error)
{
    char text[MESSAGE_MAX];
    int r = agx_service_put_sandbox(g->service, out, sb);

    /* NOT_FOUND is normal: the backend has not made the sandbox yet, or has removed it. */
    if (r == 0 && error && error->code != AGX_NOT_FOUND)
        r = agx_reply_usage_error(out, agx_error_format(error, text, sizeof(text)));
    return r < 0 ? r : put_parts(g, out, &sb->spec);
}

/* Takes the backend's error. */
static void control_usage_answer(struct getting *g, struct agx_error *error)
{
    struct agx_service *s = g->service;
    const struct agx_refusal why = { .reason = AGX_REASON_SANDBOX_NOT_FOUND, .id = g->id };
    const struct agx_sandbox *sb;
    struct agx_error *err = NULL;

    if (agx_manager_find(s->config.manager, g->id, &sb, &err) < 0)
        agx_service_fail(g->call, &err, &why); /* it was purged meanwhile */
    else
        agx_service_reply(s, g->call, put_answer(g, agx_service_scratch(s), sb, error));
    agx_error_free(error);
    getting_free(g);
}

static void on_use(void *user, size_t part, const struct agx_resource_usage *use)
{
    struct getting *g = user;

    if (part >= g->n_parts)
        return;
    g->parts[part] = *use;
    g->told[part] = true;
}

static void on_done(void *user, struct agx_error *error)
{
    struct getting *g = user;

    g->usage = NULL;
    control_usage_answer(g, error);
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    getting_free(user);
}

static const struct agx_grpc_call_ops getting_ops = { .ended = on_ended };

static void control_usage_begin(struct getting *g, const struct agx_sandbox *sb)
{
    struct agx_error *error = NULL;

    g->n_parts = sb->spec.companions_len + 1;
    g->parts = agx_alloc(g->n_parts * sizeof(*g->parts));
    g->told = agx_alloc(g->n_parts * sizeof(*g->told));
    if (agx_usage_query_start(g->service->config.manager, g->id, on_use, on_done, g, &g->usage,
                              &error) < 0)
        control_usage_answer(g, error);
    else
        agx_grpc_call_watch(g->call, &getting_ops, g);
}

void agx_service_get_with_use(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    struct agx_service *s = service;
    struct agx_refusal why = { .reason = AGX_REASON_NONE };
    _cleanup_free_ char *id = NULL;
    const struct agx_sandbox *sb = NULL;
    struct agx_error *err = NULL;
    struct getting *g;
    int r = agx_sandbox_id_decode(request, &id, &err);

    if (r == 0) {
        r = agx_manager_find(s->config.manager, id, &sb, &err);
        why = (struct agx_refusal){ .reason = AGX_REASON_SANDBOX_NOT_FOUND, .id = id };
    }
    if (r != 0) {
        agx_service_fail(call, &err, &why);
        return;
    }
    g = agx_new(struct getting);
    g->service = s;
    g->call = call;
    g->id = AGX_TAKE_PTR(id);
    control_usage_begin(g, sb);
}

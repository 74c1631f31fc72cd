/*
 * resource_usage.c: resource usage of a sandbox and of each of its companions, from the engine's
 * figures.
 *
 *     LIST --> ASK --> done
 *
 * Two queries for each container, in parallel: its statistics while it runs, and the size of its
 * writable layer. A container that is gone by then is left out.
 */
#include "backend/docker/inventory.h"
#include "backend/docker/resource_usage_json.h"
#include "backend/query_op.h"
#include "base/mem.h"

#include "base/banned.h"

enum { USE_DONE = AGX_OP_DONE, USE_LIST, USE_ASK };

struct limits {
    int64_t memory, disk; /* 0: no limit */
};

struct using
{
    struct agx_query_op query;
    struct limits *limits; /* of each part of the spec */
    size_t n_limits;
    agx_backend_usage_fn use;
    struct agx_docker_inventory found;
    struct agx_resource_usage *uses; /* of each container that was found */
};

static struct using *using_of(struct agx_op *op)
{
    return container_of(op, struct using, query.op);
}

static size_t part_of(const struct agx_docker_found *f)
{
    return f->component == AGX_DOCKER_PRIMARY ? 0 : f->companion + 1;
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&using_of(op)->found, agx_docker_by(op), answer->json,
                                        &error);
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    int r = agx_docker_inventory_ask(op, using_of(op)->query.sandbox_id, false, on_listed, err);

    return agx_op_wait(op, r, USE_ASK, err);
}

/* ---- asking ---- */

/* NULL: the container is gone, or the engine has no figures. The list has already shown whether the
 * engine can be reached. */
static const json_t *figures(const struct agx_docker_answer *answer, struct agx_error *error)
{
    const json_t *json = error ? NULL : answer->json;

    agx_error_free(error);
    return json;
}

static void on_stats(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                     struct agx_error *error)
{
    struct using *u = using_of(op);
    const size_t part = part_of(&u->found.items[i]);
    struct agx_resource_usage *use = &u->uses[i];

    agx_docker_usage_stats(figures(answer, error), use);
    if (use->known == 0)
        return;
    if (agx_docker_by(op)->pids > 0)
        agx_resource_usage_set(use, AGX_USAGE_PIDS_LIMIT, agx_docker_by(op)->pids);
    if (part < u->n_limits && u->limits[part].memory > 0)
        agx_resource_usage_set(use, AGX_USAGE_MEMORY_LIMIT, (uint64_t)u->limits[part].memory);
}

static void on_size(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    struct using *u = using_of(op);
    const size_t part = part_of(&u->found.items[i]);
    struct agx_resource_usage size = { 0 };

    agx_docker_usage_size(figures(answer, error), &size);
    if (!agx_resource_usage_has(&size, AGX_USAGE_DISK))
        return;
    agx_resource_usage_set(&u->uses[i], AGX_USAGE_DISK, size.figures[AGX_USAGE_DISK]);
    if (part < u->n_limits && u->limits[part].disk > 0)
        agx_resource_usage_set(&u->uses[i], AGX_USAGE_DISK_LIMIT, (uint64_t)u->limits[part].disk);
}

static int ask_one(struct agx_op *op, size_t i, struct agx_error **err)
{
    const struct agx_docker_found *f = &using_of(op)->found.items[i];
    int r = agx_docker_ask(
        op,
        &(struct agx_docker_query){ .request = { .method = "GET", .what = "size of a container" },
                                    .path = agx_docker_path("/containers/%s/json?size=true", f->id),
                                    .answered = on_size,
                                    .tag = i },
        err);

    if (r < 0 || !agx_docker_status_runs(f->status))
        return r;
    return agx_docker_ask(
        op,
        &(struct agx_docker_query){
            .request = { .method = "GET", .what = "statistics of a container" },
            .path = agx_docker_path("/containers/%s/stats?stream=false&one-shot=true", f->id),
            .answered = on_stats,
            .tag = i },
        err);
}

static int enter_ask(struct agx_op *op, struct agx_error **err)
{
    struct using *u = using_of(op);
    int r = 0;

    if (!agx_docker_inventory_primary(&u->found))
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", u->query.sandbox_id);
    u->uses = agx_alloc((u->found.len + 1) * sizeof(*u->uses));
    for (size_t i = 0; r == 0 && i < u->found.len; i++) {
        if (u->found.items[i].component != AGX_DOCKER_NETWORK)
            r = ask_one(op, i, err);
    }
    return agx_op_wait(op, r, USE_DONE, err);
}

/* ---- telling ---- */

static void resource_usage_tell(struct using *u)
{
    for (size_t i = 0; i < u->found.len && agx_query_op_is_heard(&u->query); i++) {
        if (u->found.items[i].component != AGX_DOCKER_NETWORK)
            u->use(u->query.user, part_of(&u->found.items[i]), &u->uses[i]);
    }
}

static void using_ended(struct agx_op *op, struct agx_error *error)
{
    struct using *u = using_of(op);

    if (!error)
        resource_usage_tell(u);
    agx_query_op_end(&u->query, error);
    agx_docker_inventory_done(&u->found);
    free(u->uses);
    free(u->limits);
    free(u);
}

static const struct agx_op_state states[] = {
    [USE_LIST] = { "list", enter_list, agx_op_cancel_held },
    [USE_ASK] = { "ask", enter_ask, agx_op_cancel_held },
};

static const struct agx_op_kind kind = {
    .name = "docker-use",
    .states = states,
    .n_states = AGX_ARRAY_LEN(states),
    .finish = using_ended,
};

/* ---- start ---- */

static void note_limits(struct using *u, const struct agx_spec *spec)
{
    u->n_limits = spec->companions_len + 1;
    u->limits = agx_alloc(u->n_limits * sizeof(*u->limits));
    for (size_t i = 0; i < u->n_limits; i++) {
        struct agx_limits limits;

        if (agx_limits_parse(i == 0 ? &spec->limits : &spec->companions[i - 1].limits, "", &limits,
                             NULL) < 0)
            continue;
        u->limits[i] = (struct limits){ limits.memory_bytes, limits.disk_bytes };
    }
}

int agx_docker_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                     agx_backend_usage_fn use, agx_done_fn done, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err)
{
    struct using *u = agx_new(struct using);
    int r = agx_query_op_init(&u->query, b, sandbox->id, done, user, err);

    if (r < 0) {
        free(u);
        return r;
    }
    note_limits(u, &sandbox->spec);
    u->use = use;
    agx_query_op_start(&u->query, &kind, &agx_docker_of(b)->operations, ret_op);
    return 0;
}

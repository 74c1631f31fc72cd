/*
 * use.c: resource usage of a sandbox and of each of its companions, from the engine's figures.
 *
 *     LIST --> ASK --> done
 *
 * Two queries for each container, in parallel: its statistics while it runs, and the size of its
 * writable layer. A container that is gone by then is left out.
 */
#include "backend/docker/census.h"
#include "backend/docker/use_json.h"
#include "backend/question.h"
#include "base/mem.h"

#include "base/banned.h"

enum { USE_DONE = AGX_OP_DONE, USE_LIST, USE_ASK };

struct limits {
    int64_t memory, disk; /* 0: no limit */
};

struct using
{
    struct agx_question question;
    struct limits *limits; /* of each part of the spec */
    size_t n_limits;
    agx_backend_use_fn use;
    struct agx_docker_census found;
    struct agx_use *uses; /* of each container that was found */
};

static struct using *using_of(struct agx_op *op)
{
    return container_of(op, struct using, question.op);
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
        (void)!agx_docker_census_add(&using_of(op)->found, agx_docker_by(op), answer->json, &error);
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    int r = agx_docker_census_ask(op, using_of(op)->question.sandbox_id, false, on_listed, err);

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
    struct agx_use *use = &u->uses[i];

    agx_docker_use_stats(figures(answer, error), use);
    if (use->known == 0)
        return;
    if (agx_docker_by(op)->pids > 0)
        agx_use_set(use, AGX_USE_PIDS_LIMIT, agx_docker_by(op)->pids);
    if (part < u->n_limits && u->limits[part].memory > 0)
        agx_use_set(use, AGX_USE_MEMORY_LIMIT, (uint64_t)u->limits[part].memory);
}

static void on_size(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                    struct agx_error *error)
{
    struct using *u = using_of(op);
    const size_t part = part_of(&u->found.items[i]);
    struct agx_use size = { 0 };

    agx_docker_use_size(figures(answer, error), &size);
    if (!agx_use_has(&size, AGX_USE_DISK))
        return;
    agx_use_set(&u->uses[i], AGX_USE_DISK, size.figures[AGX_USE_DISK]);
    if (part < u->n_limits && u->limits[part].disk > 0)
        agx_use_set(&u->uses[i], AGX_USE_DISK_LIMIT, (uint64_t)u->limits[part].disk);
}

static int ask_one(struct agx_op *op, size_t i, struct agx_error **err)
{
    const struct agx_docker_found *f = &using_of(op)->found.items[i];
    int r = agx_docker_ask(op,
                           &(struct agx_docker_question){
                               .request = { .method = "GET", .what = "size of a container" },
                               .path = agx_docker_path("/containers/%s/json?size=true", f->id),
                               .answered = on_size,
                               .tag = i },
                           err);

    if (r < 0 || !agx_docker_status_runs(f->status))
        return r;
    return agx_docker_ask(
        op,
        &(struct agx_docker_question){
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

    if (!agx_docker_census_primary(&u->found))
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", u->question.sandbox_id);
    u->uses = agx_alloc((u->found.len + 1) * sizeof(*u->uses));
    for (size_t i = 0; r == 0 && i < u->found.len; i++) {
        if (u->found.items[i].component != AGX_DOCKER_NETWORK)
            r = ask_one(op, i, err);
    }
    return agx_op_wait(op, r, USE_DONE, err);
}

/* ---- telling ---- */

static void tell(struct using *u)
{
    for (size_t i = 0; i < u->found.len && agx_question_is_heard(&u->question); i++) {
        if (u->found.items[i].component != AGX_DOCKER_NETWORK)
            u->use(u->question.user, part_of(&u->found.items[i]), &u->uses[i]);
    }
}

static void using_ended(struct agx_op *op, struct agx_error *error)
{
    struct using *u = using_of(op);

    if (!error)
        tell(u);
    agx_question_end(&u->question, error);
    agx_docker_census_done(&u->found);
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

int agx_docker_use(struct agx_backend *b, const struct agx_sandbox *sandbox, agx_backend_use_fn use,
                   agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                   struct agx_error **err)
{
    struct using *u = agx_new(struct using);
    int r = agx_question_init(&u->question, b, sandbox->id, done, user, err);

    if (r < 0) {
        free(u);
        return r;
    }
    note_limits(u, &sandbox->spec);
    u->use = use;
    agx_question_start(&u->question, &kind, &agx_docker_of(b)->operations, ret_op);
    return 0;
}

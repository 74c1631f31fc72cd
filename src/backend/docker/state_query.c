/*
 * state_query.c: the state of one sandbox or of all.
 *
 *     LIST --> OOM --> done
 *
 * A list does not say why a container stopped, so stopped ones are inspected one by one. Of a
 * sandbox with more than one network, the unused ones are removed.
 */
#include "backend/docker/dup_networks.h"
#include "backend/docker/inventory.h"
#include "backend/query_op.h"
#include "base/mem.h"

#include "base/banned.h"

enum { LOOK_DONE = AGX_OP_DONE, LOOK_LIST, LOOK_OOM };

struct look {
    struct agx_query_op query;
    agx_backend_seen_fn seen;
    struct agx_docker_inventory found;
};

static struct look *state_query_of(struct agx_op *op)
{
    return container_of(op, struct look, query.op);
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&state_query_of(op)->found, agx_docker_by(op), answer->json,
                                        &error);
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    int r =
        agx_docker_inventory_ask(op, state_query_of(op)->query.sandbox_id, true, on_listed, err);

    return agx_op_wait(op, r, LOOK_OOM, err);
}

static void on_inspected(struct agx_op *op, size_t i, const struct agx_docker_answer *answer,
                         struct agx_error *error)
{
    struct agx_docker_found *f = &state_query_of(op)->found.items[i];
    const json_t *state = error ? NULL : json_object_get(answer->json, "State");

    if (state) {
        f->status = agx_docker_status_parse(json_string_value(json_object_get(state, "Status")));
        f->seen =
            agx_docker_status_seen(f->status, json_is_true(json_object_get(state, "OOMKilled")));
    } else if (error && error->code == AGX_NOT_FOUND) {
        f->seen = AGX_SEEN_MISSING; /* gone since the list was made */
        agx_error_freep(&error);
    }
    agx_op_fail(op, &error);
}

/* Of all sandboxes, many are stopped, mostly on request: some of them are enough. */
static int enter_oom(struct agx_op *op, struct agx_error **err)
{
    struct look *x = state_query_of(op);
    unsigned n = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && n < AGX_DOCKER_LOOK_INSPECTS && i < x->found.len; i++) {
        const struct agx_docker_found *f = &x->found.items[i];

        if (f->component == AGX_DOCKER_NETWORK || f->seen != AGX_SEEN_EXITED)
            continue;
        n++;
        r = agx_docker_ask(op,
                           &(struct agx_docker_query){
                               .request = { .method = "GET", .what = "look at a container" },
                               .path = agx_docker_path("/containers/%s/json", f->id),
                               .answered = on_inspected,
                               .tag = i },
                           err);
    }
    return agx_op_wait(op, r, LOOK_DONE, err);
}

/* ---- telling ---- */

static int by_sandbox(const void *a, const void *b)
{
    const struct agx_docker_found *x = a, *y = b;

    return strcmp(x->sandbox_id, y->sandbox_id);
}

/* The engine may have started it by itself, and its main process waits for our GO. */
static void let_go(struct agx_docker *d, const char *id)
{
    struct agx_docker_box *box;

    if (agx_docker_box_get(d, id, &box, NULL) == 0 && !box->task)
        agx_docker_box_reach(box);
}

/* All objects of one sandbox, which are adjacent. */
static void tell_one(const struct look *x, const char *id, const struct agx_docker_found *f,
                     size_t n)
{
    struct agx_backend_seen seen = { .sandbox_id = id, .primary = AGX_SEEN_MISSING };
    uint8_t companions[AGX_SPEC_ITEMS_MAX];
    size_t networks = 0;

    memset(companions, AGX_SEEN_MISSING, sizeof(companions));
    for (size_t i = 0; i < n; i++) {
        networks += f[i].component == AGX_DOCKER_NETWORK;
        if (f[i].component != AGX_DOCKER_PRIMARY)
            seen.remains = true;
        else
            seen.primary = f[i].seen;
        if (f[i].held && f[i].seen == AGX_SEEN_RUNNING)
            let_go(agx_docker_by(&x->query.op), id);
        if (f[i].component != AGX_DOCKER_COMPANION)
            continue;
        companions[f[i].companion] = (uint8_t)f[i].seen;
        seen.companions_len = AGX_MAX(seen.companions_len, f[i].companion + 1);
    }
    seen.remains = seen.remains && seen.primary == AGX_SEEN_MISSING;
    seen.companions = companions;
    x->seen(x->query.user, &seen);
    if (networks > 1)
        (void)agx_docker_dup_networks_remove(agx_docker_by(&x->query.op), id, NULL, NULL, NULL);
}

static void state_query_tell(struct look *x)
{
    struct agx_docker_found *f = x->found.items;
    const size_t len = x->found.len;

    if (x->query.sandbox_id) {
        tell_one(x, x->query.sandbox_id, f, len);
        return;
    }
    if (len > 0)
        qsort(f, len, sizeof(*f), by_sandbox);
    for (size_t i = 0, n; i < len && agx_query_op_is_heard(&x->query); i += n) {
        for (n = 1; i + n < len && by_sandbox(&f[i], &f[i + n]) == 0;)
            n++;
        tell_one(x, f[i].sandbox_id, &f[i], n);
    }
}

static void state_query_ended(struct agx_op *op, struct agx_error *error)
{
    struct look *x = state_query_of(op);

    if (!error && agx_query_op_is_heard(&x->query))
        state_query_tell(x);
    agx_query_op_end(&x->query, error);
    agx_docker_inventory_done(&x->found);
    free(x);
}

static const struct agx_op_state look_states[] = {
    [LOOK_LIST] = { "list", enter_list, agx_op_cancel_held },
    [LOOK_OOM] = { "oom", enter_oom, agx_op_cancel_held },
};

static const struct agx_op_kind look_kind = {
    .name = "docker-look",
    .states = look_states,
    .n_states = AGX_ARRAY_LEN(look_states),
    .finish = state_query_ended,
};

/* ---- start ---- */

int agx_docker_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                    agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                    struct agx_error **err)
{
    struct look *x = agx_new(struct look);
    int r = agx_query_op_init(&x->query, b, sandbox_id, done, user, err);

    if (r < 0) {
        free(x);
        return r;
    }
    x->seen = seen;
    agx_query_op_start(&x->query, &look_kind, &agx_docker_of(b)->operations, ret_op);
    return 0;
}

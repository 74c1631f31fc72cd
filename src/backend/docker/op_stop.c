/*
 * op_stop.c: stop and halt; halt also succeeds when there is nothing.
 *
 *     LIST --> STOP --> SETTLE --> done
 */
#include "backend/docker/inventory.h"

#include "base/banned.h"

enum { STOP_DONE = AGX_OP_DONE, STOP_LIST, STOP_STOP, STOP_SETTLE };

struct stop_op {
    struct agx_sandbox_op task;
    struct agx_docker_inventory found;
};

static struct stop_op *stop_of(struct agx_op *op)
{
    return container_of(agx_sandbox_op_of(op), struct stop_op, task);
}

static void on_listed(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                      struct agx_error *error)
{
    struct stop_op *x = stop_of(op);

    (void)tag;
    if (!error)
        (void)!agx_docker_inventory_add(&x->found, agx_docker_by(op), answer->json, &error);
    if (!error && !agx_docker_inventory_primary(&x->found) && x->task.verb == AGX_DO_STOP)
        (void)agx_error_set(&error, AGX_NOT_FOUND, "there is no sandbox '%s'", x->task.sandbox.id);
    agx_op_fail(op, &error);
}

static int enter_list(struct agx_op *op, struct agx_error **err)
{
    struct stop_op *x = stop_of(op);
    int r = agx_docker_inventory_ask(&x->task.op, x->task.sandbox.id, false, on_listed, err);

    return agx_op_wait(&x->task.op, r, STOP_STOP, err);
}

static void on_stopped(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    (void)tag;
    (void)answer;
    if (error && error->code == AGX_NOT_FOUND)
        agx_error_freep(&error); /* removed meanwhile: it does not run */
    agx_op_fail(op, &error);
}

/* In parallel, even containers that are stopped: one may be about to restart by itself. */
static int enter_stop(struct agx_op *op, struct agx_error **err)
{
    struct stop_op *x = stop_of(op);
    const uint64_t grace_ms = x->task.grace_ms;
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->found.len; i++) {
        const struct agx_docker_found *f = &x->found.items[i];

        if (f->status == AGX_DOCKER_CREATED)
            continue;
        r = agx_docker_ask(&x->task.op,
                           &(struct agx_docker_query){
                               .request = { .method = "POST",
                                            .what = "stop container",
                                            .deadline_ms = grace_ms + AGX_DOCKER_STOP_MORE_MS },
                               .path = agx_docker_path("/containers/%s/stop?t=%u", f->id,
                                                       agx_docker_grace_s(grace_ms)),
                               .answered = on_stopped },
                           err);
    }
    return agx_op_wait(&x->task.op, r, STOP_SETTLE, err);
}

static int enter_settle(struct agx_op *op, struct agx_error **err)
{
    (void)err;
    return agx_docker_op_settle(agx_sandbox_op_of(op), STOP_DONE);
}

static void stop_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_docker_box *box = agx_docker_box_of(agx_sandbox_op_of(op));

    if (!error && box->state != AGX_DOCKER_BOX_DOWN && !agx_docker_by(op)->base.closing)
        agx_docker_box_down(box, NULL);
    agx_sandbox_op_ended(op, error);
}

static void stop_free(struct agx_sandbox_op *t)
{
    agx_docker_inventory_done(&container_of(t, struct stop_op, task)->found);
}

static const struct agx_op_state stop_states[] = {
    [STOP_LIST] = { "list", enter_list, agx_op_cancel_held },
    [STOP_STOP] = { "stop", enter_stop, agx_op_cancel_held },
    [STOP_SETTLE] = { "settle", enter_settle, agx_op_cancel_held },
};

static const struct agx_op_kind stop_kind = {
    .name = "docker-stop",
    .states = stop_states,
    .n_states = AGX_ARRAY_LEN(stop_states),
    .finish = stop_ended,
};

const struct agx_docker_verb agx_docker_verb_stop = {
    .task = { &stop_kind, sizeof(struct stop_op), agx_docker_op_calm, stop_free },
    .heard = agx_docker_op_wake,
};

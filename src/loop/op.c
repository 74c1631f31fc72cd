/*
 * op.c: moves operations through their states.
 *
 * Invariants:
 *  (1) move_to() alone assigns `state`.
 *  (2) the deadline's timer is open from start to end and closes last, so finish() always runs in
 *      a close callback: once, on the loop thread, never inside a call of the owner's.
 *  (3) cancel acts once and only before the first failure; so nothing interrupts an undo.
 */
#include "loop/op.h"

#include "base/log.h"

#include <assert.h>

#include "base/banned.h"

static const char *state_name(const struct agx_op *op, unsigned state)
{
    return state == AGX_OP_DONE ? "done" : op->kind->states[state].name;
}

static void on_deadline(uv_timer_t *timer)
{
    agx_op_cancel(container_of(timer, struct agx_op, deadline), AGX_DEADLINE_EXCEEDED);
}

static void on_closed(uv_handle_t *h)
{
    struct agx_op *op = container_of(h, struct agx_op, deadline);

    op->kind->finish(op, AGX_TAKE_PTR(op->error));
}

static void move_to(struct agx_op *op, unsigned next)
{
    assert(next < op->kind->n_states);
    AGX_LOG(AGX_LOG_DEBUG, "op.state", AGX_F_STR("kind", op->kind->name), AGX_F_STR("op", op->id),
            AGX_F_STR("from", state_name(op, op->state)), AGX_F_STR("to", state_name(op, next)),
            AGX_F_BOOL("failed", op->error != NULL));
    op->state = next;
}

void agx_op_go(struct agx_op *op, unsigned next)
{
    agx_loop_assert(op->loop);
    assert(!op->ending);
    for (;;) {
        struct agx_error *error = NULL;
        int r;

        move_to(op, op->error ? op->kind->states[op->state].on_error : next);
        if (op->state == AGX_OP_DONE)
            break;
        r = op->kind->states[op->state].enter(op, &error);
        if (r == 0)
            return;
        assert(r < 0);
        if (error)
            (void)agx_error_wrap(&error, r, "%s", state_name(op, op->state));
        else
            (void)agx_error_set(&error, (enum agx_code)(-r), "%s failed",
                                state_name(op, op->state));
        agx_op_fail(op, &error);
    }
    op->ending = true;
    uv_close((uv_handle_t *)&op->deadline, on_closed);
}

void agx_op_start(struct agx_op *op, const struct agx_op_kind *kind, struct agx_loop *l,
                  const char *id, uint64_t deadline_ms)
{
    agx_loop_assert(l);
    assert(kind->n_states > 1);
    *op = (struct agx_op){ .kind = kind, .loop = l, .id = id, .state = AGX_OP_DONE };
    (void)uv_timer_init(agx_loop_uv(l), &op->deadline);
    if (deadline_ms > 0)
        (void)uv_timer_start(&op->deadline, on_deadline, deadline_ms, 0);
    agx_op_go(op, 1);
}

void agx_op_fail(struct agx_op *op, struct agx_error **take_error)
{
    agx_loop_assert(op->loop);
    if (*take_error)
        AGX_LOG(AGX_LOG_DEBUG, "op.failed", AGX_F_STR("kind", op->kind->name),
                AGX_F_STR("op", op->id), AGX_F_STR("state", state_name(op, op->state)),
                AGX_F_ERR(*take_error), AGX_F_BOOL("ignored", op->error != NULL));
    agx_error_propagate(&op->error, take_error);
}

void agx_op_cancel(struct agx_op *op, enum agx_code why)
{
    struct agx_error *error = NULL;

    agx_loop_assert(op->loop);
    if (op->error || op->ending)
        return;
    (void)agx_error_set(&error, why, "%s stopped in state '%s'", op->kind->name,
                        state_name(op, op->state));
    agx_op_fail(op, &error);
    if (op->kind->states[op->state].cancel)
        op->kind->states[op->state].cancel(op);
}

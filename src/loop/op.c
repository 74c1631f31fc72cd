/*
 * op.c: moves operations through their states.
 *
 * Invariants:
 *  (1) move_to() alone assigns `state`.
 *  (2) the deadline's timer is open from start to end, and a timer of a group's operation closes
 *      after it; so finish() always runs in a close callback: once, on the loop thread, never
 *      inside a call of the owner's.
 *  (3) cancel acts once and only before the first failure; so nothing interrupts an undo.
 *  (4) a state is left only when nothing of it is held, so no callback finds another state.
 */
#include "loop/op.h"

#include "base/log.h"

#include <assert.h>

#include "base/banned.h"

static const char *state_name(const struct agx_op *op, unsigned state)
{
    return state == AGX_OP_DONE ? "done" : op->kind->states[state].name;
}

static void record(struct agx_op *op, struct agx_error **take_error)
{
    agx_loop_assert(op->loop);
    if (*take_error)
        AGX_LOG(AGX_LOG_DEBUG, "op.failed", AGX_F_STR("kind", op->kind->name),
                AGX_F_STR("op", op->id), AGX_F_STR("state", state_name(op, op->state)),
                AGX_F_ERR(*take_error), AGX_F_BOOL("ignored", op->error != NULL));
    agx_error_propagate(&op->error, take_error);
}

/* ---- the end ---- */

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_op *op = container_of((uv_timer_t *)h, struct agx_op, timer);
    struct agx_op_group *g = op->group;

    *(op->prev ? &op->prev->next : &g->first) = op->next;
    if (op->next)
        op->next->prev = op->prev;
    op->kind->finish(op, AGX_TAKE_PTR(op->error));
    g->gone(g);
}

static void on_deadline_closed(uv_handle_t *h)
{
    struct agx_op *op = container_of((uv_timer_t *)h, struct agx_op, deadline);

    assert(op->pending == 0);
    if (op->group)
        uv_close((uv_handle_t *)&op->timer, on_timer_closed);
    else
        op->kind->finish(op, AGX_TAKE_PTR(op->error));
}

/* ---- states ---- */

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
        record(op, &error);
    }
    op->ending = true;
    uv_close((uv_handle_t *)&op->deadline, on_deadline_closed);
}

/* ---- start ---- */

static void on_deadline(uv_timer_t *timer)
{
    agx_op_cancel(container_of(timer, struct agx_op, deadline), AGX_DEADLINE_EXCEEDED);
}

static void op_start(struct agx_op *op, uint64_t deadline_ms)
{
    agx_loop_assert(op->loop);
    assert(op->kind->n_states > 1);
    (void)uv_timer_init(agx_loop_uv(op->loop), &op->deadline);
    if (deadline_ms > 0)
        (void)uv_timer_start(&op->deadline, on_deadline, deadline_ms, 0);
    agx_op_go(op, 1);
}

void agx_op_start(struct agx_op *op, const struct agx_op_kind *kind, struct agx_loop *l,
                  const char *id, uint64_t deadline_ms)
{
    *op = (struct agx_op){ .kind = kind, .loop = l, .id = id };
    op_start(op, deadline_ms);
}

void agx_op_start_in(struct agx_op *op, const struct agx_op_kind *kind, struct agx_op_group *g,
                     const char *id, uint64_t deadline_ms)
{
    *op = (struct agx_op){ .kind = kind, .loop = g->loop, .id = id, .group = g, .next = g->first };
    (void)uv_timer_init(agx_loop_uv(g->loop), &op->timer);
    if (g->first)
        g->first->prev = op;
    g->first = op;
    g->begun(g);
    op_start(op, deadline_ms);
}

/* ---- several pieces of work ---- */

void agx_op_arrive(struct agx_op *op)
{
    assert(op->pending > 0);
    if (--op->pending > 0 || !op->waits)
        return;
    op->waits = false;
    (void)uv_timer_stop(&op->timer);
    agx_op_go(op, op->then);
}

int agx_op_wait(struct agx_op *op, int r, unsigned then, struct agx_error **err)
{
    assert(op->group);
    op->then = then;
    op->pending++;
    if (r < 0) {
        if (!*err)
            (void)agx_error_set(err, (enum agx_code) - r, "'%s' failed", op->kind->name);
        agx_op_fail(op, err);
    }
    op->waits = true;
    agx_op_arrive(op);
    return 0;
}

void agx_op_wake(struct agx_op *op)
{
    if (!op->paused)
        return;
    op->paused = false;
    (void)uv_timer_stop(&op->timer);
    agx_op_arrive(op);
}

static void on_pause_over(uv_timer_t *t)
{
    agx_op_wake(container_of(t, struct agx_op, timer));
}

void agx_op_pause(struct agx_op *op, uint64_t ms)
{
    assert(op->group && !op->paused);
    op->paused = true;
    op->pending++;
    (void)uv_timer_start(&op->timer, on_pause_over, ms, 0);
}

/* ---- the early end ---- */

/* One more pending keeps the state until all of it is told. */
static void end_early(struct agx_op *op, bool failed)
{
    op->pending++;
    agx_op_wake(op);
    if (op->group->end_rest)
        op->group->end_rest(op, failed);
    if (op->kind->cancel_held)
        op->kind->cancel_held(op);
    agx_op_arrive(op);
}

void agx_op_fail(struct agx_op *op, struct agx_error **take_error)
{
    const bool first = *take_error && !op->error;

    record(op, take_error);
    if (first && op->group)
        end_early(op, true);
}

void agx_op_cancel_held(struct agx_op *op)
{
    end_early(op, false);
}

void agx_op_cancel(struct agx_op *op, enum agx_code why)
{
    struct agx_error *error = NULL;

    agx_loop_assert(op->loop);
    if (op->error || op->ending)
        return;
    (void)agx_error_set(&error, why, "%s stopped in state '%s'", op->kind->name,
                        state_name(op, op->state));
    record(op, &error);
    if (op->kind->states[op->state].cancel)
        op->kind->states[op->state].cancel(op);
}

void agx_op_abort(struct agx_op *op)
{
    if (op->ending)
        return;
    if (!op->error)
        agx_op_cancel(op, AGX_CANCELLED); /* ends all, by the state's cancel */
    else
        end_early(op, false);
}

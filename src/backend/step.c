/*
 * step.c: work side by side, as the work of one state.
 *
 * Invariants:
 *  (1) a state is left only when nothing of it is pending, so no callback finds another state.
 *  (2) `ended` runs in the close callback of the timer, behind that of the operation's own.
 */
#include "backend/step.h"

#include <assert.h>

#include "base/banned.h"

static const struct agx_step_kind *kind_of(const struct agx_step *s)
{
    return container_of(s->op.kind, const struct agx_step_kind, op);
}

void agx_step_start(struct agx_step *s, const struct agx_step_kind *kind, struct agx_steps *all,
                    const char *id, uint64_t deadline_ms)
{
    s->all = all;
    (void)uv_timer_init(agx_loop_uv(all->loop), &s->timer);
    s->prev = NULL;
    s->next = all->first;
    if (all->first)
        all->first->prev = s;
    all->first = s;
    all->begun(all);
    agx_op_start(&s->op, &kind->op, all->loop, id, deadline_ms);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_step *s = container_of((uv_timer_t *)h, struct agx_step, timer);
    struct agx_steps *all = s->all;

    *(s->prev ? &s->prev->next : &all->first) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    kind_of(s)->ended(s, AGX_TAKE_PTR(s->result));
    all->gone(all);
}

void agx_step_finish(struct agx_op *op, struct agx_error *error)
{
    struct agx_step *s = agx_step_of(op);

    assert(s->pending == 0);
    s->result = error;
    uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

void agx_step_arrive(struct agx_step *s)
{
    assert(s->pending > 0);
    if (--s->pending > 0 || !s->waits)
        return;
    s->waits = false;
    (void)uv_timer_stop(&s->timer);
    agx_op_go(&s->op, s->then);
}

int agx_step_wait(struct agx_step *s, int r, unsigned then, struct agx_error **err)
{
    s->then = then;
    s->pending++;
    if (r < 0) {
        if (!*err)
            (void)agx_error_set(err, (enum agx_code) - r, "'%s' failed", s->op.kind->name);
        agx_step_fail(s, err);
    }
    s->waits = true;
    agx_step_arrive(s);
    return 0;
}

/* ---- pauses ---- */

void agx_step_wake(struct agx_step *s)
{
    if (!s->paused)
        return;
    s->paused = false;
    (void)uv_timer_stop(&s->timer);
    agx_step_arrive(s);
}

static void on_timer(uv_timer_t *t)
{
    agx_step_wake(container_of(t, struct agx_step, timer));
}

void agx_step_pause(struct agx_step *s, uint64_t ms)
{
    assert(!s->paused);
    s->paused = true;
    s->pending++;
    (void)uv_timer_start(&s->timer, on_timer, ms, 0);
}

/* ---- the early end ---- */

/* One more pending keeps the state until all of it is told. */
static void end_early(struct agx_step *s, bool failed)
{
    s->pending++;
    agx_step_wake(s);
    if (s->all->end_rest)
        s->all->end_rest(s, failed);
    if (kind_of(s)->cancel)
        kind_of(s)->cancel(s);
    agx_step_arrive(s);
}

void agx_step_fail(struct agx_step *s, struct agx_error **take_error)
{
    const bool first = *take_error && !s->op.error;

    agx_op_fail(&s->op, take_error);
    if (first)
        end_early(s, true);
}

void agx_step_cancel(struct agx_op *op)
{
    end_early(agx_step_of(op), false);
}

void agx_step_abort(struct agx_step *s)
{
    if (s->op.ending)
        return;
    if (!s->op.error)
        agx_op_cancel(&s->op, AGX_CANCELLED); /* ends all, by the state's cancel */
    else
        end_early(s, false);
}

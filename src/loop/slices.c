/*
 * slices.c: a ring of slices and an idle handle, which keeps the loop turning while any are queued.
 *
 * In each turn a slice runs at most once, in the order of arrival; no slice begins once the turn
 * has used up its time.
 */
#include "loop/slices.h"

#include "base/clock.h"
#include "base/limits.h"

#include <assert.h>

#include "base/banned.h"

static void on_turn(uv_idle_t *h)
{
    struct agx_slices *q = container_of(h, struct agx_slices, turn);
    uint64_t end_us = agx_clock_us() + AGX_SLICES_TURN_US;

    for (size_t n = q->len; n > 0 && q->len > 0; n--) {
        struct agx_slice *s = AGX_LIST_FIRST(&q->queue, struct agx_slice, node);

        agx_slices_remove(q, s);
        s->run(s);
        if (agx_clock_us() >= end_us)
            break;
    }
}

void agx_slices_open(struct agx_slices *q, struct agx_loop *l)
{
    *q = (struct agx_slices){ 0 };
    (void)uv_idle_init(agx_loop_uv(l), &q->turn);
}

void agx_slices_add(struct agx_slices *q, struct agx_slice *s)
{
    if (agx_list_has(&s->node))
        return;
    agx_list_push_back(&q->queue, &s->node);
    if (q->len++ == 0)
        (void)uv_idle_start(&q->turn, on_turn);
}

void agx_slices_begin(struct agx_slices *q, struct agx_slice *s)
{
    if (q->len > 0)
        agx_slices_add(q, s);
    else
        s->run(s);
}

void agx_slices_remove(struct agx_slices *q, struct agx_slice *s)
{
    if (!agx_list_has(&s->node))
        return;
    agx_list_remove(&s->node);
    if (--q->len == 0)
        (void)uv_idle_stop(&q->turn);
}

void agx_slices_close(struct agx_slices *q, uv_close_cb closed, void *data)
{
    assert(q->len == 0);
    q->turn.data = data;
    uv_close((uv_handle_t *)&q->turn, closed);
}

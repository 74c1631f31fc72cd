/* alarms.c: a heap of due times; the timer is set to the earliest. */
#include "loop/alarms.h"

#include <assert.h>

#include "base/banned.h"

static void on_timer(uv_timer_t *t);

static void alarms_arm(struct agx_alarms *q)
{
    const struct agx_heap_node *first = agx_heap_peek(&q->heap);
    uint64_t now = uv_now(q->timer.loop);

    if (first)
        (void)uv_timer_start(&q->timer, on_timer, first->key > now ? first->key - now : 0, 0);
    else
        (void)uv_timer_stop(&q->timer);
}

static void on_timer(uv_timer_t *t)
{
    struct agx_alarms *q = container_of(t, struct agx_alarms, timer);
    struct agx_heap_node *first;

    while ((first = agx_heap_peek(&q->heap)) && first->key <= uv_now(t->loop)) {
        struct agx_alarm *a = container_of(first, struct agx_alarm, node);

        agx_heap_remove(&q->heap, first);
        a->fire(a);
    }
    alarms_arm(q);
}

void agx_alarms_open(struct agx_alarms *q, struct agx_loop *l)
{
    *q = (struct agx_alarms){ 0 };
    (void)uv_timer_init(agx_loop_uv(l), &q->timer);
}

int agx_alarms_set(struct agx_alarms *q, struct agx_alarm *a, uint64_t ms, struct agx_error **err)
{
    uint64_t now = uv_now(q->timer.loop);

    if (ms == 0)
        ms = 1; /* an alarm that sets itself again must not starve others */
    agx_heap_remove(&q->heap, &a->node);
    if (agx_heap_put(&q->heap, &a->node, ms < UINT64_MAX - now ? now + ms : UINT64_MAX) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a timeout");
    alarms_arm(q);
    return 0;
}

void agx_alarms_clear(struct agx_alarms *q, struct agx_alarm *a)
{
    if (!agx_heap_has(&a->node))
        return;
    agx_heap_remove(&q->heap, &a->node);
    alarms_arm(q);
}

void agx_alarms_close(struct agx_alarms *q, uv_close_cb closed, void *data)
{
    assert(!agx_heap_peek(&q->heap));
    agx_heap_done(&q->heap);
    q->timer.data = data;
    uv_close((uv_handle_t *)&q->timer, closed);
}

/*
 * alarms.h: many moments to come, one timer: each costs a place in a heap and no handle.
 *
 * Loop thread only.
 */
#ifndef AGX_DAEMON_ALARMS_H
#define AGX_DAEMON_ALARMS_H

#include "base/heap.h"
#include "loop/loop.h"

/* Embedded by what waits. */
struct agx_alarm {
    struct agx_heap_node node;
    void (*fire)(struct agx_alarm *a);
};

struct agx_alarms {
    uv_timer_t timer;
    struct agx_heap heap;
};

void agx_alarms_open(struct agx_alarms *q, struct agx_loop *l);

/* `fire` is called once, so many milliseconds from now, never inside; for one that is set: then
 * instead. */
int agx_alarms_set(struct agx_alarms *q, struct agx_alarm *a, uint64_t ms,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Nothing for one that is not set. */
void agx_alarms_clear(struct agx_alarms *q, struct agx_alarm *a);

/* None is set any more. `closed` is the handle's. */
void agx_alarms_close(struct agx_alarms *q, uv_close_cb closed, void *data);

#endif

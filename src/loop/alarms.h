/*
 * alarms.h: many timeouts on one timer: an alarm costs a heap entry and no handle.
 *
 * Loop thread only.
 */
#ifndef AGX_LOOP_ALARMS_H
#define AGX_LOOP_ALARMS_H

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

/* Calls `fire` once, `ms` milliseconds from now, never inside this call. An alarm that is already
 * set is moved. */
int agx_alarms_set(struct agx_alarms *q, struct agx_alarm *a, uint64_t ms,
                   struct agx_error **err) AGX_MUST_CHECK;
/* No effect when it is not set. */
void agx_alarms_clear(struct agx_alarms *q, struct agx_alarm *a);

/* Requires that no alarm is set. `closed` is the handle's callback. */
void agx_alarms_close(struct agx_alarms *q, uv_close_cb closed, void *data);

#endif

/*
 * slices.h: long work on the loop, cut into slices that run one after each turn. A short request
 * then waits for one slice and not for the whole work.
 *
 * Loop thread only.
 */
#ifndef AGX_LOOP_SLICES_H
#define AGX_LOOP_SLICES_H

#include "base/list.h"
#include "loop/loop.h"

/* Embedded in the object with the work. */
struct agx_slice {
    struct agx_list_node node; /* in no list: not queued */
    void (*run)(struct agx_slice *s);
};

struct agx_slices {
    uv_idle_t turn;
    struct agx_list queue; /* of struct agx_slice */
    size_t len;
};

void agx_slices_open(struct agx_slices *q, struct agx_loop *l);

/* Calls `run` once, in a later turn of the loop; `run` may add the slice again. No effect when it
 * is already queued. */
void agx_slices_add(struct agx_slices *q, struct agx_slice *s);
/* Runs it at once if none is queued, else adds it, so that many still take turns. */
void agx_slices_begin(struct agx_slices *q, struct agx_slice *s);
/* No effect when it is not queued. */
void agx_slices_remove(struct agx_slices *q, struct agx_slice *s);

/* Requires an empty queue. `closed` is the handle's callback. */
void agx_slices_close(struct agx_slices *q, uv_close_cb closed, void *data);

#endif

/*
 * slices.h: long work on the loop, cut into slices: one after each turn, so that whoever asks for
 * little waits for a slice and not for the whole.
 *
 * Loop thread only.
 */
#ifndef AGX_DAEMON_SLICES_H
#define AGX_DAEMON_SLICES_H

#include "base/list.h"
#include "loop/loop.h"

/* Embedded by what has more to do. */
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

/* `run` is called once, in a later turn of the loop; it may add the slice again. Nothing for one
 * that is queued. */
void agx_slices_add(struct agx_slices *q, struct agx_slice *s);
/* Runs it at once if none waits, else adds it: many that begin together still take turns. */
void agx_slices_begin(struct agx_slices *q, struct agx_slice *s);
/* Nothing for one that is not queued. */
void agx_slices_remove(struct agx_slices *q, struct agx_slice *s);

/* Nothing is queued any more. `closed` is the handle's. */
void agx_slices_close(struct agx_slices *q, uv_close_cb closed, void *data);

#endif

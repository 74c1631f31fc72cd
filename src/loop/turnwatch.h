/*
 * turnwatch.h: measures how long the loop's turns take, from its wake-up until it sleeps again:
 * the time that everything else has to wait.
 *
 * Costs two clock readings per turn. Loop thread only.
 */
#ifndef AGX_LOOP_TURNWATCH_H
#define AGX_LOOP_TURNWATCH_H

#include "loop/loop.h"

struct agx_turnwatch {
    uv_prepare_t before_sleep;
    uv_check_t after_sleep;
    unsigned n_open;
    uint64_t woke_ns; /* 0: it has not slept yet */
    uint64_t longest_ns;
    uv_close_cb closed;
    void *data;
};

/* Its handles do not keep the loop running. */
void agx_turnwatch_open(struct agx_turnwatch *w, struct agx_loop *l);

/* Calls `closed` for the last of the handles. */
void agx_turnwatch_close(struct agx_turnwatch *w, uv_close_cb closed, void *data);

#endif

/*
 * step.h: an operation of a backend: loop/op.h, and work that goes on side by side.
 *
 * A state begins any number of things (hold, arrive) and says which state follows when all of them
 * have ended (wait). The first failure ends the rest of the state early. What a callback begins
 * belongs to the state too, so chains run side by side within one.
 */
#ifndef AGX_BACKEND_STEP_H
#define AGX_BACKEND_STEP_H

#include "loop/op.h"

struct agx_step;

/* The steps of one backend. */
struct agx_steps {
    struct agx_loop *loop;
    struct agx_step *first;
    /* A state ends early, by a failure or a cancel: ends its `rest`. The step's timer is free for
     * it until the state is left. May be NULL. */
    void (*end_rest)(struct agx_step *s, bool failed);
    /* One has begun, is gone for good. */
    void (*begun)(struct agx_steps *all);
    void (*gone)(struct agx_steps *all);
};

struct agx_step_kind {
    struct agx_op_kind op; /* its `finish` is agx_step_finish */
    /* Ends what the state holds: each arrives, within this or later. May be NULL. */
    void (*cancel)(struct agx_step *s);
    /* The last call, in a turn of its own: tells whoever waits, and frees. Owns `error`. */
    void (*ended)(struct agx_step *s, struct agx_error *error);
};

/* Embedded first. */
struct agx_step {
    struct agx_op op;
    struct agx_steps *all;
    struct agx_step *prev, *next;
    unsigned pending; /* holds of the present state */
    bool waits;       /* the state has begun all that it wants: `then` follows the last of them */
    unsigned then;
    uv_timer_t timer;
    bool paused; /* the timer is one of the pending */
    void *rest;  /* the backend's own: what every step of it can hold */
    struct agx_error *result;
};

/* `id` names it in the log, and lives as long; `deadline_ms` 0: none. */
void agx_step_start(struct agx_step *s, const struct agx_step_kind *kind, struct agx_steps *all,
                    const char *id, uint64_t deadline_ms);
void agx_step_finish(struct agx_op *op, struct agx_error *error);

static inline struct agx_step *agx_step_of(struct agx_op *op)
{
    return container_of(op, struct agx_step, op);
}

/* Something that the state waits for, and its end. */
static inline void agx_step_hold(struct agx_step *s)
{
    s->pending++;
}
void agx_step_arrive(struct agx_step *s);

/* Holds for a time. */
void agx_step_pause(struct agx_step *s, uint64_t ms);
/* Ends a pause early, if there is one. */
void agx_step_wake(struct agx_step *s);

/* The end of every `enter`: `then` follows when nothing is pending. With a failure to begin (`r` is
 * negative, *err says why) what was begun ends early. Returns 0. */
int agx_step_wait(struct agx_step *s, int r, unsigned then, struct agx_error **err);

/* Records a failure (takes *take_error; NULL in it: nothing failed) and ends the rest early. */
void agx_step_fail(struct agx_step *s, struct agx_error **take_error);

/* The `cancel` of states. */
void agx_step_cancel(struct agx_op *op);

/* For the end of the backend: it ends as soon as what it holds does. */
void agx_step_abort(struct agx_step *s);

#endif

/*
 * op.h: what long operations have in common: one struct, one state, one function that moves it.
 *
 * An operation embeds struct agx_op and has a constant table of its states. A state's `enter`
 * starts its work; the callback of that work recovers the operation, records a failure
 * (agx_op_fail) and calls agx_op_go() with the state that follows success. That is the only
 * function that assigns the state, and each transition is logged at debug level, so the whole story
 * can be read in the table, and afterwards in the log.
 *
 *     enum { CREATE_DONE = AGX_OP_DONE, CREATE_PREPARE, CREATE_SPAWN, CREATE_UNDO };
 *
 *     static const struct agx_op_state create_states[] = {
 *         [CREATE_PREPARE] = { "prepare", enter_prepare, cancel_prepare },
 *         [CREATE_SPAWN] = { "spawn", enter_spawn, cancel_spawn, .on_error = CREATE_UNDO },
 *         [CREATE_UNDO] = { "undo", enter_undo },
 *     };
 *
 * Cancel and deadline end nothing by themselves: they record an error and ask the pending work to
 * finish early. Undoing is a state, reached by `on_error`. Loop thread only.
 *
 * An operation of a group may have several pieces of work in one state. `enter` holds for each
 * (agx_op_hold), each callback arrives (agx_op_arrive), and agx_op_wait(), the end of `enter`, says
 * which state follows the last of them. The first failure ends the rest of the state early. What a
 * callback starts and holds belongs to the state too, so chains run side by side within one.
 */
#ifndef AGX_LOOP_OP_H
#define AGX_LOOP_OP_H

#include "loop/loop.h"

struct agx_op;

/* The end, in every operation; its states are numbered from 1, which is entered first. */
#define AGX_OP_DONE 0

struct agx_op_state {
    const char *name;
    /* Starts the state's work. 0: a callback will follow and call agx_op_go(); negative: it failed
     * and nothing is pending. */
    int (*enter)(struct agx_op *op, struct agx_error **err);
    /* Makes the pending work finish early; its callback still comes. NULL: it cannot. */
    void (*cancel)(struct agx_op *op);
    /* The state after a failure in this one; by default the end. */
    unsigned on_error;
};

struct agx_op_kind {
    const char *name;
    const struct agx_op_state *states;
    unsigned n_states; /* AGX_ARRAY_LEN of the table, the unused AGX_OP_DONE included */
    /* The last call, exactly once and never inside agx_op_start(): tells whoever waits and frees
     * the operation. Owns `error`; NULL: success. */
    void (*finish)(struct agx_op *op, struct agx_error *error);
    /* Of a group: ends what the state holds; each arrives, within this call or later. May be
     * NULL. */
    void (*cancel_held)(struct agx_op *op);
};

/* The operations of one owner. */
struct agx_op_group {
    struct agx_loop *loop;
    struct agx_op *first;
    /* A state ends early, by a failure or a cancel: ends its `rest`. The operation's `timer` is
     * free for it until the state is left. May be NULL. */
    void (*end_rest)(struct agx_op *op, bool failed);
    /* One has begun, is gone for good. */
    void (*begun)(struct agx_op_group *g);
    void (*gone)(struct agx_op_group *g);
};

/* Embedded by operations. Only `error` may be read from outside. */
struct agx_op {
    const struct agx_op_kind *kind;
    struct agx_loop *loop;
    const char *id; /* in the log; borrowed, lives as long as the operation */
    unsigned state;
    bool ending;
    struct agx_error *error; /* the first failure */
    uv_timer_t deadline;

    /* All below: of a group. */
    struct agx_op_group *group; /* NULL: it has one piece of work at a time */
    struct agx_op *prev, *next;
    unsigned pending; /* holds of the present state */
    bool waits;       /* the state has begun all that it wants: `then` follows the last of them */
    unsigned then;
    uv_timer_t timer;
    bool paused; /* the timer is one of the pending */
    void *rest;  /* the owner's own: what every operation of it can hold */
};

/* Enters state 1. `deadline_ms` 0: none. `id` names the operation in the log. */
void agx_op_start(struct agx_op *op, const struct agx_op_kind *kind, struct agx_loop *l,
                  const char *id, uint64_t deadline_ms);
/* The same, of a group. */
void agx_op_start_in(struct agx_op *op, const struct agx_op_kind *kind, struct agx_op_group *g,
                     const char *id, uint64_t deadline_ms);

/* Moves to `next`, or, when a failure is recorded, to the present state's on_error. Called when no
 * work is pending; by agx_op_wait() where work is held. */
void agx_op_go(struct agx_op *op, unsigned next);

/* Records a failure; the first one wins, and ends what is held early. Takes *take_error; NULL in
 * it: nothing failed. */
void agx_op_fail(struct agx_op *op, struct agx_error **take_error);

/* Records `why` (AGX_CANCELLED, ...) and asks the pending work to finish early. Nothing once the
 * operation has failed, or is at its end. */
void agx_op_cancel(struct agx_op *op, enum agx_code why);

/* ---- of a group: several pieces of work in one state ---- */

/* Something that the state waits for, and its end. */
static inline void agx_op_hold(struct agx_op *op)
{
    op->pending++;
}
void agx_op_arrive(struct agx_op *op);

/* The end of every `enter`: `then` follows when nothing is held. With a failure to begin (`r` is
 * negative, *err says why) what was begun ends early. Returns 0. */
int agx_op_wait(struct agx_op *op, int r, unsigned then, struct agx_error **err);

/* Holds for a time. */
void agx_op_pause(struct agx_op *op, uint64_t ms);
/* Ends a pause early, if there is one. */
void agx_op_wake(struct agx_op *op);

/* The `cancel` of states that can be cancelled. */
void agx_op_cancel_held(struct agx_op *op);

/* For the end of the owner: it ends as soon as what it holds does, also one that has failed. */
void agx_op_abort(struct agx_op *op);

#endif

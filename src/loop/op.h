/*
 * op.h: what long operations have in common: one struct, one state, one function that moves it.
 *
 * An operation embeds struct agx_op and has a constant table of its states. A state's `enter`
 * starts one piece of work; the callback of that work recovers the operation, records a failure
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
};

/* Enters state 1. `deadline_ms` 0: none. `id` names the operation in the log. */
void agx_op_start(struct agx_op *op, const struct agx_op_kind *kind, struct agx_loop *l,
                  const char *id, uint64_t deadline_ms);

/* Moves to `next`, or, when a failure is recorded, to the present state's on_error. Called when no
 * work is pending. */
void agx_op_go(struct agx_op *op, unsigned next);

/* Records a failure; the first one wins. Takes *take_error; NULL in it: nothing failed. */
void agx_op_fail(struct agx_op *op, struct agx_error **take_error);

/* Records `why` (AGX_CANCELLED, ...) and asks the pending work to finish early. Nothing once the
 * operation has failed, or is at its end. */
void agx_op_cancel(struct agx_op *op, enum agx_code why);

#endif

/*
 * fncall.h: one call of a C function, from its frame to its terminal frame.
 *
 *     agx_fncall_new()            the reader: from a `call` frame, which is copied
 *     agx_fncall_input(), ...     the reader: for later frames
 *     agx_fncall_run()            a thread of the pool: arguments, function, exactly one terminal
 *                                 frame
 *
 * No I/O: the owner's function sends frames. The reader's functions never block; those that the
 * running function calls (<agentix/function.h>) block until credit, input or cancellation arrives.
 */
#ifndef AGX_WORKER_FNCALL_H
#define AGX_WORKER_FNCALL_H

#include "codec/worker_frame.h"
#include "worker/fnlib.h"

struct agx_fncall;

/* Shared by the calls of one worker. */
struct agx_fncall_owner {
    void *user;
    /*
     * Sends a frame with its prefix on the lane of its kind of call, so that items do not delay
     * results of other calls. `wait`: the caller may block. Any thread.
     */
    void (*send)(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait);
    /* The call is over: its terminal frame was sent. */
    void (*over)(void *user, uint64_t id);
};

/*
 * A call from its `call` frame, of which it copies what it needs; the caller has one reference. On
 * failure the code says which error the client should get: agx_fncall_refuse().
 */
int agx_fncall_new(const struct agx_fncall_owner *owner, const struct agx_worker_frame *f,
                   struct agx_fncall **ret, struct agx_error **err) AGX_MUST_CHECK;
/* Answers a `call` frame that became no call. */
void agx_fncall_refuse(const struct agx_fncall_owner *owner, uint64_t id, enum agx_remote_kind kind,
                       const struct agx_error *e);

struct agx_fncall *agx_fncall_ref(struct agx_fncall *c);
struct agx_fncall *agx_fncall_unref(struct agx_fncall *c);

static inline void agx_fncall_unrefp(struct agx_fncall **c)
{
    *c = agx_fncall_unref(*c);
}

uint64_t agx_fncall_id(const struct agx_fncall *c);

/* Adds one raw input value. Input beyond any credit ends the call with InputOverflow. */
void agx_fncall_input(struct agx_fncall *c, struct agx_str item);
void agx_fncall_end_input(struct agx_fncall *c);
/* Sets the totals since the call began; lower values than before have no effect. */
void agx_fncall_credit(struct agx_fncall *c, uint64_t n, uint64_t bytes);
void agx_fncall_cancel(struct agx_fncall *c);

/* Looks up the target. On failure the call has ended, with its terminal frame. */
int agx_fncall_resolve(struct agx_fncall *c, struct agx_fnlib *lib,
                       struct agx_fn **ret_fn) AGX_MUST_CHECK;
/* Ends it without a run. */
void agx_fncall_fail(struct agx_fncall *c, const struct agx_error *e);
/* Runs the function in this thread and ends the call. */
void agx_fncall_run(struct agx_fncall *c, const struct agx_fn *fn);

#endif

/*
 * loop.h: the event loop and the one thread that owns it.
 *
 * Only the thread that opened a loop may access what belongs to it; agx_loop_assert() checks that
 * in debug builds. Other threads use agx_loop_post().
 */
#ifndef AGX_LOOP_LOOP_H
#define AGX_LOOP_LOOP_H

#include "base/error.h"

#include <uv.h>

struct agx_loop;

/* The completion callback of everything asynchronous: exactly once, on the loop thread, never
 * inside the call that started the work; the callee owns `error` (NULL: success). */
typedef void (*agx_done_fn)(void *user, struct agx_error *error);

/* A loop that belongs to the calling thread. */
int agx_loop_open(struct agx_loop **ret_loop, struct agx_error **err) AGX_MUST_CHECK;

/* For calls to libuv. Borrowed; lives as long as the loop. */
uv_loop_t *agx_loop_uv(struct agx_loop *l);

/* Runs until agx_loop_stop(), or until no active handle is left. A posted function does not keep it
 * running: code that waits for one must hold a handle of its own. */
void agx_loop_run(struct agx_loop *l);

/* Makes the running agx_loop_run() return after the current turn. Loop thread. */
void agx_loop_stop(struct agx_loop *l);

/*
 * Any thread: runs fn(user) on the loop thread, in posting order, never inside this call.
 * -AGX_RESOURCE_EXHAUSTED without memory. No thread may post after agx_loop_close() began.
 */
int agx_loop_post(struct agx_loop *l, void (*fn)(void *user), void *user) AGX_MUST_CHECK;

/*
 * Runs posted functions and due close callbacks, then frees the loop. An open handle is a leak:
 * -AGX_FAILED_PRECONDITION with the kinds of those handles in its message, and the loop stays open,
 * since they still point to it. Accepts NULL.
 */
int agx_loop_close(struct agx_loop *l, struct agx_error **err);

/* True on the thread that opened the loop. */
bool agx_loop_is_mine(const struct agx_loop *l);

#ifdef NDEBUG
#define agx_loop_assert(l) ((void)(l))
#else
#include <assert.h>
#define agx_loop_assert(l) assert(agx_loop_is_mine(l))
#endif

#endif

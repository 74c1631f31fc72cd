/*
 * fnpool.h: the threads that run C functions. There are as many as calls run at once, up to a
 * maximum; the others wait in the order of their arrival. Calls of a function that is
 * AGX_FUNCTION_SERIAL wait for each other without holding a thread.
 */
#ifndef AGX_WORKER_FNPOOL_H
#define AGX_WORKER_FNPOOL_H

#include "worker/fncall.h"

struct agx_fnpool;

/* `lib` is borrowed and must outlive the pool. */
struct agx_fnpool *agx_fnpool_new(struct agx_fnlib *lib, unsigned max_threads);

/* Takes one reference to the call, and runs it. -AGX_RESOURCE_EXHAUSTED, and nothing taken, when
 * not even one thread can be had. Never blocks. */
int agx_fnpool_start(struct agx_fnpool *p, struct agx_fncall *take_call,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Waits for the threads to go; no call may be left. */
struct agx_fnpool *agx_fnpool_free(struct agx_fnpool *p);

#endif

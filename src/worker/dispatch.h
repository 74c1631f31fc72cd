/*
 * dispatch.h: what the frames to a worker mean for its C functions: which call each belongs to, and
 * which calls there are. docs/design/runtime-protocol.md, section 4, is the contract. No I/O and no
 * threads of its own.
 *
 * agx_dispatch_frame() never blocks, and each lane may have a thread of its own that calls it; what
 * it starts may run, and end, on any thread.
 */
#ifndef AGX_WORKER_DISPATCH_H
#define AGX_WORKER_DISPATCH_H

#include "worker/fncall.h"

struct agx_dispatch_io {
    void *user;
    /* As in agx_fncall_owner. */
    void (*send)(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait);
    /* Runs the call on some thread; takes one reference to it. -AGX_RESOURCE_EXHAUSTED and nothing
     * taken when there is no thread to be had. */
    int (*start)(void *user, struct agx_fncall *take_call, struct agx_error **err);
};

struct agx_dispatch;

struct agx_dispatch *agx_dispatch_new(const struct agx_dispatch_io *io);
/* No call may be left. */
struct agx_dispatch *agx_dispatch_free(struct agx_dispatch *d);

/*
 * One frame's map. Calls of Python functions are refused with PythonUnavailable; whoever can run
 * them looks at the frame first. 1: it was `shutdown`, with *ret_grace_ms. Negative: it was no
 * frame, and the peer cannot be understood any more.
 */
int agx_dispatch_frame(struct agx_dispatch *d, enum agx_remote_lane lane, struct agx_str frame,
                       uint64_t *ret_grace_ms, struct agx_error **err) AGX_MUST_CHECK;
/* The same for whoever has parsed it, and found no shutdown. */
int agx_dispatch_parsed(struct agx_dispatch *d, enum agx_remote_lane lane,
                        const struct agx_worker_frame *f, struct agx_error **err) AGX_MUST_CHECK;

/* Whether call `id` is one of ours and not over. */
bool agx_dispatch_has(struct agx_dispatch *d, uint64_t id);
size_t agx_dispatch_count(struct agx_dispatch *d);

/* Cancels every call; those that still come are cancelled before they run. */
void agx_dispatch_stop(struct agx_dispatch *d);

#endif

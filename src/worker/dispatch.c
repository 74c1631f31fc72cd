/*
 * dispatch.c: the calls of one worker, by id.
 *
 * A cancel may overtake its call, which comes by the thread lane: ids that we do not know and that
 * may still come are kept in `early`, smallest first. Ids ascend within a lane, so all up to the
 * newest call of the thread lane are of no more use. A cancel that came too late, for a call of the
 * loop lane that is over, looks the same: hence the bound, which drops the oldest.
 */
#include "worker/dispatch.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/mem.h"

#include <pthread.h>

#include "base/banned.h"

struct agx_dispatch {
    struct agx_dispatch_io io;
    struct agx_fncall_owner owner;
    pthread_mutex_t lock; /* guards all below */
    struct agx_map calls; /* by id; each holds a reference */
    bool stopping;
    struct agx_heap early;  /* of struct agx_heap_node alone */
    uint64_t newest_thread; /* id of the last call by the thread lane */
};

static struct agx_str id_key(const uint64_t *id)
{
    return agx_str_bytes(id, sizeof(*id));
}

static void on_over(void *user, uint64_t id)
{
    struct agx_dispatch *d = user;
    struct agx_fncall *call;

    (void)pthread_mutex_lock(&d->lock);
    call = agx_map_remove(&d->calls, id_key(&id));
    (void)pthread_mutex_unlock(&d->lock);
    (void)agx_fncall_unref(call);
}

static void on_send(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct agx_dispatch *d = user;

    d->io.send(d->io.user, kind, frame, wait);
}

struct agx_dispatch *agx_dispatch_new(const struct agx_dispatch_io *io)
{
    struct agx_dispatch *d = agx_new(struct agx_dispatch);

    d->io = *io;
    d->owner = (struct agx_fncall_owner){ .user = d, .send = on_send, .over = on_over };
    if (pthread_mutex_init(&d->lock, NULL) != 0)
        abort();
    /* The server numbers the calls: nobody else can choose the keys. */
    agx_map_init(&d->calls, (struct agx_siphash_key){ 0 });
    return d;
}

static void drop_first_early(struct agx_dispatch *d)
{
    struct agx_heap_node *n = agx_heap_peek(&d->early);

    agx_heap_remove(&d->early, n);
    free(n);
}

struct agx_dispatch *agx_dispatch_free(struct agx_dispatch *d)
{
    if (!d)
        return NULL;
    while (agx_heap_peek(&d->early))
        drop_first_early(d);
    agx_heap_done(&d->early);
    agx_map_done(&d->calls);
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
    return NULL;
}

/* The call, with a reference for the caller; NULL when it is over or never was. */
static struct agx_fncall *dispatch_find(struct agx_dispatch *d, uint64_t id)
{
    struct agx_fncall *call;

    (void)pthread_mutex_lock(&d->lock);
    call = agx_map_get(&d->calls, id_key(&id));
    if (call)
        (void)agx_fncall_ref(call);
    (void)pthread_mutex_unlock(&d->lock);
    return call;
}

bool agx_dispatch_has(struct agx_dispatch *d, uint64_t id)
{
    bool yes;

    (void)pthread_mutex_lock(&d->lock);
    yes = agx_map_get(&d->calls, id_key(&id)) != NULL;
    (void)pthread_mutex_unlock(&d->lock);
    return yes;
}

size_t agx_dispatch_count(struct agx_dispatch *d)
{
    size_t n;

    (void)pthread_mutex_lock(&d->lock);
    n = d->calls.len;
    (void)pthread_mutex_unlock(&d->lock);
    return n;
}

/* Under the lock. */
static void remember_early(struct agx_dispatch *d, uint64_t id)
{
    if (id <= d->newest_thread)
        return;
    if (d->early.len >= AGX_EARLY_CANCELS_MAX)
        drop_first_early(d);
    if (agx_heap_put(&d->early, agx_new(struct agx_heap_node), id) < 0)
        abort();
}

/* Under the lock: whether this call, which has just come, was cancelled before. */
static bool take_early(struct agx_dispatch *d, enum agx_remote_lane lane, uint64_t id)
{
    const struct agx_heap_node *n;
    bool found = false;

    if (lane != AGX_LANE_THREAD)
        return false;
    d->newest_thread = AGX_MAX(d->newest_thread, id);
    while ((n = agx_heap_peek(&d->early)) && n->key <= id) {
        found = found || n->key == id;
        drop_first_early(d);
    }
    return found;
}

/* Takes over the reference. False when the id is in use: the server counts wrong. */
static bool dispatch_add(struct agx_dispatch *d, enum agx_remote_lane lane, struct agx_fncall *call)
{
    uint64_t id = agx_fncall_id(call);
    bool added, cancelled;

    (void)pthread_mutex_lock(&d->lock);
    cancelled = take_early(d, lane, id) || d->stopping;
    added = agx_map_get(&d->calls, id_key(&id)) == NULL;
    if (added && agx_map_put(&d->calls, id_key(&id), call, NULL) < 0)
        abort();
    (void)pthread_mutex_unlock(&d->lock);
    if (added && cancelled)
        agx_fncall_cancel(call);
    return added;
}

/* A call frame that is no call of ours: its cancellation, if it came, is used up. */
static void dispatch_refuse(struct agx_dispatch *d, enum agx_remote_lane lane, uint64_t id,
                            const struct agx_error *why)
{
    (void)pthread_mutex_lock(&d->lock);
    (void)take_early(d, lane, id);
    (void)pthread_mutex_unlock(&d->lock);
    agx_fncall_refuse(&d->owner, id, AGX_REMOTE_UNARY, why);
}

static int on_call(struct agx_dispatch *d, enum agx_remote_lane lane,
                   const struct agx_worker_frame *f, struct agx_error **err)
{
    _cleanup_(agx_error_freep) struct agx_error *why = NULL;
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *call = NULL;

    if (agx_fncall_new(&d->owner, f, &call, &why) < 0) {
        dispatch_refuse(d, lane, f->id, why);
        return 0;
    }
    if (!dispatch_add(d, lane, agx_fncall_ref(call))) {
        (void)agx_fncall_unref(call);
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a second call with the id %llu",
                             (unsigned long long)f->id);
    }
    if (d->io.start(d->io.user, agx_fncall_ref(call), &why) < 0) {
        (void)agx_fncall_unref(call);
        agx_fncall_fail(call, why);
    }
    return 0;
}

static void on_cancel(struct agx_dispatch *d, uint64_t id)
{
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *call = NULL;

    /* In one step: its call may just be coming by the other lane. */
    (void)pthread_mutex_lock(&d->lock);
    call = agx_map_get(&d->calls, id_key(&id));
    if (call)
        (void)agx_fncall_ref(call);
    else
        remember_early(d, id);
    (void)pthread_mutex_unlock(&d->lock);
    if (call)
        agx_fncall_cancel(call);
}

/* A frame about a call that may be over: then it is for nobody. */
static void on_call_frame(struct agx_dispatch *d, const struct agx_worker_frame *f)
{
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *call = dispatch_find(d, f->id);

    if (!call)
        return;
    if (f->type == AGX_WF_BIDI_IN && f->item.len > 0)
        agx_fncall_input(call, f->item);
    else if (f->type == AGX_WF_BIDI_END_IN)
        agx_fncall_end_input(call);
    else if (f->type == AGX_WF_CREDIT)
        agx_fncall_credit(call, f->n, f->bytes);
}

int agx_dispatch_parsed(struct agx_dispatch *d, enum agx_remote_lane lane,
                        const struct agx_worker_frame *f, struct agx_error **err)
{
    if (f->id == 0)
        return 0;
    if (f->type == AGX_WF_CALL)
        return on_call(d, lane, f, err);
    if (f->type == AGX_WF_CANCEL)
        on_cancel(d, f->id);
    else
        on_call_frame(d, f);
    return 0;
}

int agx_dispatch_frame(struct agx_dispatch *d, enum agx_remote_lane lane, struct agx_str frame,
                       uint64_t *ret_grace_ms, struct agx_error **err)
{
    _cleanup_(agx_error_freep) struct agx_error *why = NULL;
    struct agx_worker_frame f;
    int r = agx_worker_frame_parse(frame, &f, &why);

    if (r == 0 && f.bad)
        r = agx_error_set(&why, AGX_INVALID_ARGUMENT, "%s", f.bad);
    if (r < 0 && f.type == AGX_WF_CALL && f.id > 0) {
        dispatch_refuse(d, lane, f.id, why);
        return 0;
    }
    if (r < 0) {
        agx_error_propagate(err, &why);
        return agx_error_wrap(err, r, "read a frame of the server");
    }
    if (f.type == AGX_WF_SHUTDOWN) {
        *ret_grace_ms = f.grace_ms;
        return 1;
    }
    return agx_dispatch_parsed(d, lane, &f, err);
}

void agx_dispatch_stop(struct agx_dispatch *d)
{
    void *call;

    (void)pthread_mutex_lock(&d->lock);
    d->stopping = true;
    /* The one place where a call's lock is taken under ours: nothing takes them the other way. */
    for (size_t at = 0; agx_map_next(&d->calls, &at, NULL, &call);)
        agx_fncall_cancel(call);
    (void)pthread_mutex_unlock(&d->lock);
}

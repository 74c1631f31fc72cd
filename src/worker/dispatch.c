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
static struct agx_fncall *find(struct agx_dispatch *d, uint64_t id)
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
static bool add(struct agx_dispatch *d, enum agx_remote_lane lane, struct agx_fncall *call)
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
static void refuse(struct agx_dispatch *d, enum agx_remote_lane lane, uint64_t id,
                   const struct agx_error *why)
{
    (void)pthread_mutex_lock(&d->lock);
    (void)take_early(d, lane, id);
    (void)pthread_mutex_unlock(&d->lock);
    agx_fncall_refuse(&d->owner, id, AGX_REMOTE_UNARY, why);
}

static int on_call(struct agx_dispatch *d, enum agx_remote_lane lane, const struct agx_mp_field *f,
                   struct agx_error **err)
{
    _cleanup_(agx_error_freep) struct agx_error *why = NULL;
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *call = NULL;
    uint64_t id = f[AGX_FF_ID].value.u;

    if (agx_fncall_new(&d->owner, f, &call, &why) < 0) {
        refuse(d, lane, id, why);
        return 0;
    }
    if (!add(d, lane, agx_fncall_ref(call))) {
        (void)agx_fncall_unref(call);
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a second call with the id %llu",
                             (unsigned long long)id);
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
static void on_call_frame(struct agx_dispatch *d, struct agx_str type, const struct agx_mp_field *f)
{
    _cleanup_(agx_fncall_unrefp) struct agx_fncall *call = find(d, f[AGX_FF_ID].value.u);

    if (!call)
        return;
    if (agx_str_eq(type, AGX_STR("bidi_in")) && f[AGX_FF_ITEM].present)
        agx_fncall_input(call, f[AGX_FF_ITEM].raw);
    else if (agx_str_eq(type, AGX_STR("bidi_end_in")))
        agx_fncall_end_input(call);
    else if (agx_str_eq(type, AGX_STR("credit")) && f[AGX_FF_N].present && f[AGX_FF_BYTES].present)
        agx_fncall_credit(call, f[AGX_FF_N].value.u, f[AGX_FF_BYTES].value.u);
}

int agx_dispatch_frame(struct agx_dispatch *d, enum agx_remote_lane lane, struct agx_str frame,
                       uint64_t *ret_grace_ms, struct agx_error **err)
{
    static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    _cleanup_(agx_error_freep) struct agx_error *why = NULL;
    struct agx_mp_field f[AGX_FF_COUNT];
    bool is_call;
    int r;

    agx_fncall_fields(f);
    r = agx_mp_read_fields(frame, &limits, f, AGX_FF_COUNT, &why);
    is_call = f[AGX_FF_TYPE].present && f[AGX_FF_ID].present &&
              agx_str_eq(f[AGX_FF_TYPE].value.bytes, AGX_STR("call"));
    if (r < 0 && is_call) {
        refuse(d, lane, f[AGX_FF_ID].value.u, why);
        return 0;
    }
    if (r < 0) {
        agx_error_propagate(err, &why);
        return agx_error_wrap(err, r, "read a frame of the server");
    }
    if (is_call)
        return on_call(d, lane, f, err);
    if (f[AGX_FF_TYPE].present && agx_str_eq(f[AGX_FF_TYPE].value.bytes, AGX_STR("shutdown"))) {
        *ret_grace_ms = f[AGX_FF_GRACE].present ? f[AGX_FF_GRACE].value.u : 0;
        return 1;
    }
    if (!f[AGX_FF_TYPE].present || !f[AGX_FF_ID].present)
        return 0;
    if (agx_str_eq(f[AGX_FF_TYPE].value.bytes, AGX_STR("cancel")))
        on_cancel(d, f[AGX_FF_ID].value.u);
    else
        on_call_frame(d, f[AGX_FF_TYPE].value.bytes, f);
    return 0;
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

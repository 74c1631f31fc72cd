/*
 * control_wait.c: WaitSandbox and WaitExec: a feed of the sandbox's events, an alarm, and
 * one answer.
 *
 * The wanted state may be over again by the time we look. So a state seen in an event counts, and
 * the answer has the current state.
 */
#include "daemon/service/service_internal.h"

#include "base/mem.h"
#include "wire/control_request.h"
#include "wire/reply.h"

#include "base/banned.h"

enum { NS_PER_MS = 1000000 };

struct wait {
    struct agx_service *service;
    struct agx_grpc_call *call;
    struct agx_feed *feed;
    struct agx_slice slice;
    struct agx_alarm alarm;
    struct agx_wait_request q;
    bool is_exec;
    uid_t uid;
};

static void wait_free(struct wait *w)
{
    agx_slices_remove(&w->service->slices, &w->slice);
    agx_alarms_clear(&w->service->alarms, &w->alarm);
    w->feed = agx_feed_close(w->feed);
    agx_service_stream_end(w->service, w->uid);
    agx_wait_request_done(&w->q);
    free(w);
}

static void wait_fail(struct wait *w, struct agx_error **take_error)
{
    struct agx_refusal why = { .reason = AGX_REASON_NONE, .id = w->q.id };

    if ((*take_error)->code == AGX_NOT_FOUND)
        why.reason = w->is_exec ? AGX_REASON_EXEC_NOT_FOUND : AGX_REASON_SANDBOX_NOT_FOUND;
    agx_service_fail(w->call, take_error, &why);
    wait_free(w);
}

/* Appends the current state of the sandbox or exec. */
static int put_subject(struct wait *w, struct agx_buf *out, struct agx_error **err)
{
    struct agx_manager *manager = w->service->config.manager;
    const struct agx_sandbox *sb;
    struct agx_exec exec;
    uint64_t sequence;
    int r, put;

    if (w->is_exec) {
        r = agx_manager_exec_find(manager, w->q.id, &exec, &sequence, err);
        if (r < 0)
            return r;
        put = agx_reply_exec(out, &exec, sequence, true);
        agx_exec_done(&exec);
    } else {
        r = agx_manager_find(manager, w->q.id, &sb, err);
        if (r < 0)
            return r;
        put = agx_service_put_sandbox(w->service, out, sb);
    }
    return put < 0 ? agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for the answer") : 0;
}

static void wait_answer(struct wait *w, bool timed_out)
{
    struct agx_buf *out = agx_service_scratch(w->service);
    struct agx_error *err = NULL;
    int r = put_subject(w, out, &err);

    if (r < 0) {
        wait_fail(w, &err);
        return;
    }
    r = timed_out ? agx_reply_timed_out(out) : 0;
    agx_service_reply(w->service, w->call, r);
    wait_free(w);
}

/* Does the wait end in this state? */
static bool is_wanted(const struct wait *w, enum agx_state state)
{
    const uint32_t lasting = 1U << AGX_STATE_READY | 1U << AGX_STATE_STOPPED |
                             1U << AGX_STATE_FAILED | 1U << AGX_STATE_DELETED;
    uint32_t states = w->q.states ? w->q.states : lasting;

    return states & 1U << state;
}

static bool ends_wait(const struct wait *w, const struct agx_event *e)
{
    if (w->is_exec)
        return agx_event_exec_state(e->type) > AGX_EXEC_RUNNING && agx_text_eq(e->subject, w->q.id);
    return e->sequence > w->q.after_sequence && e->state != AGX_STATE_NONE &&
           is_wanted(w, e->state);
}

/* Is the sandbox in a wanted state, with an event after the one that the client named? */
static bool is_there(const struct wait *w, const struct agx_sandbox *sb)
{
    return sb->life.last_sequence > w->q.after_sequence && is_wanted(w, agx_sandbox_state(sb)) &&
           (w->q.states != 0 || sb->life.phase != AGX_PHASE_STOPPING);
}

/* After all events: the current state may match without an event for it. */
static void look_now(struct wait *w)
{
    const struct agx_sandbox *sb;

    if (!w->is_exec && agx_manager_find(w->service->config.manager, w->q.id, &sb, NULL) == 0 &&
        is_there(w, sb))
        wait_answer(w, false);
}

static void control_wait_look(struct wait *w)
{
    struct agx_error *err = NULL;
    struct agx_feed_item item;

    for (unsigned n = 0; n < AGX_FEED_PAGE; n++) {
        int got = agx_feed_next(w->feed, &item, &err);

        if (got == 0) {
            look_now(w); /* or `ready` follows */
            return;
        }
        if (got < 0) {
            wait_fail(w, &err);
            return;
        }
        if (got == AGX_FEED_END || ends_wait(w, item.event)) {
            wait_answer(w, false);
            return;
        }
    }
    agx_slices_add(&w->service->slices, &w->slice);
}

static void run_slice(struct agx_slice *slice)
{
    control_wait_look(container_of(slice, struct wait, slice));
}

static void on_ready(void *user)
{
    control_wait_look(user);
}

static void on_alarm(struct agx_alarm *a)
{
    wait_answer(container_of(a, struct wait, alarm), true);
}

static void on_ended(void *user, enum agx_code code)
{
    (void)code;
    wait_free(user);
}

static const struct agx_feed_ops feed_ops = { .ready = on_ready };
static const struct agx_grpc_call_ops wait_ops = { .ended = on_ended };

/* Waits for events behind `sequence`. */
static int wait_begin(struct wait *w, const char *sandbox_id, uint64_t sequence,
                      struct agx_error **err)
{
    struct agx_service *s = w->service;
    int r = agx_feed_open(s->config.manager, sandbox_id, sequence, &feed_ops, w, &w->feed, err);

    if (r == 0 && w->q.timeout_ns != AGX_NS_UNSET)
        r = agx_alarms_set(&s->alarms, &w->alarm,
                           ((uint64_t)w->q.timeout_ns + NS_PER_MS - 1) / NS_PER_MS, err);
    if (r == 0) {
        agx_grpc_call_watch(w->call, &wait_ops, w);
        control_wait_look(w);
    }
    return r;
}

/* 1: the condition already holds; 0: the wait goes on. */
static int begin_sandbox(struct wait *w, struct agx_error **err)
{
    const struct agx_sandbox *sb;
    int r = agx_manager_find(w->service->config.manager, w->q.id, &sb, err);

    if (r < 0)
        return r;
    if (is_there(w, sb))
        return 1;
    return wait_begin(w, sb->id, sb->life.last_sequence, err);
}

static int begin_exec(struct wait *w, struct agx_error **err)
{
    struct agx_exec exec;
    uint64_t sequence;
    int r = agx_manager_exec_find(w->service->config.manager, w->q.id, &exec, &sequence, err);

    if (r < 0)
        return r;
    if (exec.state != AGX_EXEC_RUNNING)
        r = 1;
    else
        r = wait_begin(w, exec.sandbox_id, sequence, err);
    agx_exec_done(&exec);
    return r;
}

static void wait_start(struct agx_service *s, struct agx_grpc_call *call, struct agx_str request,
                       bool is_exec)
{
    struct wait *w = agx_new(struct wait);
    struct agx_error *err = NULL;
    int r = is_exec ? agx_wait_exec_decode(&w->q, request, &err)
                    : agx_wait_sandbox_decode(&w->q, request, &err);

    if (r == 0) {
        r = agx_service_stream_begin(s, call, &err);
        if (r < 0)
            agx_wait_request_done(&w->q);
    }
    if (r < 0) {
        agx_service_fail(call, &err, &(struct agx_refusal){ 0 });
        free(w);
        return;
    }
    w->service = s;
    w->call = call;
    w->uid = agx_grpc_call_peek_peer(call)->uid;
    w->slice.run = run_slice;
    w->alarm.fire = on_alarm;
    w->is_exec = is_exec;
    r = is_exec ? begin_exec(w, &err) : begin_sandbox(w, &err);
    if (r < 0)
        wait_fail(w, &err);
    else if (r > 0)
        wait_answer(w, false);
}

void agx_service_wait_sandbox(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    wait_start(service, call, request, false);
}

void agx_service_wait_exec(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    wait_start(service, call, request, true);
}

/* wait.c: waiting for a sandbox. */
#include "cli/wait.h"

#include "base/duration.h"
#include "base/limits.h"
#include "cli/show.h"
#include "wire/control_request.h"
#include "wire/method.h"

#include "base/banned.h"

/* The remaining time; 0: it is up. */
static int64_t left_ns(const struct agx_wait *w, const struct agx_progress *p)
{
    uint64_t passed = agx_progress_ns(p);

    return passed < (uint64_t)w->timeout_ns ? w->timeout_ns - (int64_t)passed : 0;
}

static int wait_start(struct agx_ctl *ctl, const struct agx_wait *w, const struct agx_progress *p,
                      struct agx_grpc_reply **ret_reply, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    const struct agx_wait_request q = {
        .id = (char *)w->id,
        .states = w->states,
        .timeout_ns = w->timeout_ns > 0 ? left_ns(w, p) : AGX_NS_UNSET,
    };

    if (agx_wait_sandbox_encode(&request, &q) < 0)
        return agx_error_no_memory(err);
    return agx_ctl_start(ctl, AGX_METHOD_WAIT_SANDBOX, &request, ret_reply, err);
}

static int too_late(const struct agx_wait *w, const struct agx_sandbox_view *v,
                    struct agx_error **err)
{
    char time[AGX_DURATION_TEXT_SIZE];

    return agx_error_set(err, AGX_DEADLINE_EXCEEDED,
                         "after %s sandbox '%s' is still %s; `agentix sandbox wait` waits longer",
                         agx_duration_format(w->timeout_ns, time), w->id, agx_show_state(v->state));
}

/* Watches the pulls of its images, to show them. NULL: they cannot be shown; the wait works without
 * them. */
static struct agx_grpc_reply *watch_pulls(struct agx_ctl *ctl, const struct agx_wait *w,
                                          const struct agx_progress *p)
{
    _cleanup_buf_ struct agx_buf request = AGX_BUF_INIT(AGX_GRPC_MESSAGE_MAX);
    char *id = (char *)w->id;
    const struct agx_watch_request q = { .from_now = true, .sandbox_ids = { &id, 1 } };
    struct agx_grpc_reply *reply = NULL;

    if (w->pulls && p->live && agx_watch_request_encode(&request, &q) == 0)
        (void)!agx_ctl_start(ctl, AGX_METHOD_WATCH_EVENTS, &request, &reply, NULL);
    return reply;
}

static void note_pull(struct agx_progress *p, struct agx_str message)
{
    _cleanup_buf_ struct agx_buf note = AGX_BUF_INIT(sizeof(p->note) - 1);
    struct agx_pull_view v;

    if (agx_pull_view_decode(&v, message, NULL) <= 0)
        return;
    if (v.pull.layers_done == v.pull.layers_total || agx_show_pull(&note, &v.pull) < 0)
        agx_buf_clear(&note);
    agx_progress_note(p, agx_buf_peek(&note));
    agx_pull_view_done(&v);
}

/* On each tick: reads the progress of pulls. Closes a stream that ended. */
static void tick(struct agx_progress *p, struct agx_grpc_reply **pulls)
{
    struct agx_str message;
    int r = 0;

    while (*pulls && (r = agx_grpc_reply_next(*pulls, 0, &message, NULL)) == 1)
        note_pull(p, message);
    if (r <= 0)
        *pulls = agx_grpc_reply_close(*pulls);
    agx_progress_tick(p);
}

/* One attempt: until the answer, or a lost connection. */
static int try(struct agx_ctl *ctl, const struct agx_wait *w, struct agx_progress *p,
               struct agx_sandbox_view *ret_view, struct agx_error **err)
{
    struct agx_grpc_reply *reply = NULL, *pulls = NULL;
    struct agx_str message;
    bool timed_out = false;
    int r = wait_start(ctl, w, p, &reply, err);

    if (r == 0)
        pulls = watch_pulls(ctl, w, p);
    while (r >= 0 && (r = agx_grpc_reply_next(reply, agx_progress_wait_ms(p), &message, err)) ==
                         AGX_GRPC_NOTHING_YET)
        tick(p, &pulls);
    (void)agx_grpc_reply_close(pulls);
    if (r == 0)
        r = agx_error_set(err, AGX_INTERNAL, "the daemon ended the wait without an answer");
    if (r > 0)
        r = agx_sandbox_view_decode(ret_view, message, &timed_out, err);
    else if (reply)
        r = agx_ctl_explain(ctl, r, agx_grpc_reply_peek_details(reply), err);
    (void)agx_grpc_reply_close(reply);
    if (r == 0 && timed_out) {
        r = too_late(w, ret_view, err);
        agx_sandbox_view_done(ret_view);
    }
    return r;
}

int agx_wait_sandbox(struct agx_ctl *ctl, const struct agx_wait *w, struct agx_progress *p,
                     struct agx_sandbox_view *ret_view, struct agx_error **err)
{
    int r;

    while ((r = try(ctl, w, p, ret_view, err)) == -AGX_UNAVAILABLE) {
        agx_progress_end(p);
        r = agx_ctl_again(ctl, err);
        if (r < 0)
            return r;
    }
    agx_progress_end(p);
    return r;
}

/* op_up.c: create, resume, revive; see op_up.h for the states. */
#include "backend/native/op_up.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

static int enter_await(struct agx_op *op, struct agx_error **err)
{
    (void)err;
    return agx_native_op_await(agx_sandbox_op_of(op), UP_AWAIT, UP_SCAN);
}

/* ---- scan ---- */

/* Its directory was removed by hand: what we remember is useless. */
struct scan_job {
    struct agx_job job;
    struct agx_native_up *up;
    const struct agx_boxdirs *dirs;
    char *id;
    bool there;
};

static int run_scan(struct agx_job *j, struct agx_error **err)
{
    struct scan_job *x = container_of(j, struct scan_job, job);

    (void)err;
    x->there = agx_boxdirs_has(x->dirs, x->id);
    return 0;
}

static int no_sandbox(const struct agx_native_up *up, struct agx_error **err)
{
    return agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", up->task.sandbox.id);
}

/* Marks companions that ended while the rest runs. */
static bool mark_missing(struct agx_native_up *up)
{
    const struct agx_native_box *box = up->box;
    bool any = false;

    for (size_t i = 0; box->nsset && i < up->n_parts; i++) {
        up->parts[i].runs = agx_native_part_runs(box, i);
        any = any || !up->parts[i].runs;
    }
    return any;
}

/* A create that finds a half-made sandbox starts again from nothing. */
static unsigned post_start_scan(struct agx_native_up *up, bool there, struct agx_error **err)
{
    struct agx_native_box *box = up->box;
    const bool made = there && box->known && box->state.made && box->state.n_parts == up->n_parts;

    if (!made && up->task.verb != AGX_DO_CREATE) {
        (void)no_sandbox(up, err);
        return UP_DONE;
    }
    up->makes = !made;
    if (made && agx_native_part_runs(box, 0)) {
        up->mends = mark_missing(up);
        up->recorded = !up->mends;
        return up->mends ? UP_MAKE : UP_REACH;
    }
    return there || box->known ? UP_CLEAR : UP_NAMES;
}

static void scan_done(struct agx_job *j, struct agx_error *error)
{
    struct scan_job *x = container_of(j, struct scan_job, job);
    struct agx_native_up *up = x->up;
    const struct agx_sandbox_op *t = &up->task;

    if (!error)
        up->task.op.then = post_start_scan(up, x->there, &error);
    free(x->id);
    free(x);
    agx_op_fail(&up->task.op, &error);
    if (!t->op.error && t->verb == AGX_DO_CREATE && t->hooks.begun && !t->abandoned)
        t->hooks.begun(t->user);
    agx_op_arrive(&up->task.op);
}

static const struct agx_job_kind scan_kind = { .name = "scan", .run = run_scan, .done = scan_done };

static int enter_scan(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    struct scan_job *x = agx_new(struct scan_job);
    int r;

    up->n_parts = up->task.sandbox.spec.companions_len + 1;
    up->parts = agx_alloc(up->n_parts * sizeof(*up->parts));
    for (size_t i = 0; i < up->n_parts; i++) {
        up->parts[i].up = up;
        up->parts[i].cgroup = (struct agx_cgroup_entry)AGX_CGROUP_ENTRY_INIT;
    }
    x->job.kind = &scan_kind;
    x->up = up;
    x->dirs = &up->native->dirs;
    r = agx_text_set(&x->id, up->task.sandbox.id, err);
    if (r == 0)
        r = agx_job_start(&x->job, up->native->disk_pool, err);
    if (r == 0) {
        agx_op_hold(&up->task.op);
    } else {
        free(x->id);
        free(x);
    }
    return agx_op_wait(&up->task.op, r, UP_DONE, err);
}

/* ---- clear, undo ---- */

static void on_down(void *user, struct agx_error *error)
{
    struct agx_native_up *up = user;

    up->downing = NULL;
    agx_op_fail(&up->task.op, &error);
    agx_op_arrive(&up->task.op);
}

static void begin_down(struct agx_native_up *up)
{
    agx_op_hold(&up->task.op);
    up->downing = agx_native_down_start(
        up->box, up->makes ? AGX_NATIVE_DOWN_REMOVE : AGX_NATIVE_DOWN_STOP, 0, on_down, up);
}

static int enter_clear(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);

    begin_down(up);
    return agx_op_wait(&up->task.op, 0, UP_NAMES, err);
}

/* The operation's own failure is reported, not that of the undo. */
static int enter_undo(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);

    agx_native_up_drop_nsset(up);
    if (up->undoes && !up->native->base.closing)
        begin_down(up);
    return agx_op_wait(&up->task.op, 0, UP_DONE, err);
}

/* ---- reach ---- */

static struct agx_error *ended_at_once(const struct agx_native_up *up)
{
    const struct agx_native_box *box = up->box;
    struct agx_error *e = NULL;

    (void)agx_error_set(&e, AGX_FAILED_PRECONDITION,
                        "the main process of sandbox '%s' ended at once with exit code %d%s",
                        box->id, box->parts[0].exit_code,
                        box->state.parts[0].oom ? ", out of memory" : "");
    return e;
}

static void tell_companions(struct agx_native_up *up)
{
    const struct agx_sandbox_op *t = &up->task;

    for (size_t i = 1; i < up->n_parts; i++) {
        struct agx_error *why = AGX_TAKE_PTR(up->parts[i].failed);

        if (!why && up->makes)
            agx_native_post_start_start(up->box, i, &t->sandbox.spec.companions[i - 1]);
        if (t->abandoned || !t->hooks.companion || t->verb == AGX_DO_REVIVE)
            agx_error_free(why);
        else
            t->hooks.companion(t->user, i - 1, why);
    }
}

/* Waits until init answers; woken whenever something happens to the box. Writes the record
 * meanwhile, even where init need not be waited for because only companions were started. */
static int enter_reach(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);
    struct agx_native_box *box = up->box;
    const uint64_t now_ms = uv_now(agx_loop_uv(op->loop));
    const bool answers = box->init_is_up && agx_init_client_is_ready(box->init_client);
    int r = 0;

    if (up->reach_until_ms == 0)
        up->reach_until_ms = now_ms + AGX_NATIVE_READY_MS;
    if (!agx_native_part_runs(box, 0)) {
        *err = ended_at_once(up);
        r = -AGX_FAILED_PRECONDITION;
    } else if (!box->init_is_up) {
        r = agx_native_box_init_client(box, err);
    } else if (answers && up->recorded) {
        tell_companions(up);
        agx_native_egress_dns(box);
        return agx_op_wait(op, 0, UP_DONE, err);
    } else if (now_ms >= up->reach_until_ms) {
        r = agx_error_set(err, AGX_DEADLINE_EXCEEDED, "init of sandbox '%s' does not answer",
                          box->id);
    }
    if (r == 0 && !up->recorded)
        r = agx_native_up_record(up, err);
    if (r == 0 && !answers && up->reach_until_ms > now_ms)
        agx_op_pause(op, up->reach_until_ms - now_ms);
    return agx_op_wait(op, r, UP_REACH, err);
}

/* ---- the whole ---- */

static void cancel_up(struct agx_op *op)
{
    struct agx_native_up *up = agx_native_up_of(op);

    if (up->downing)
        agx_native_down_cancel(up->downing);
    agx_native_up_cancel_names(up);
    agx_native_up_cancel_make(up);
    agx_native_up_cancel_launch(up);
    agx_native_up_cancel_unpack(up);
    agx_native_up_cancel_forward(up);
}

static void up_begin(struct agx_sandbox_op *t)
{
    struct agx_native_up *up = container_of(t, struct agx_native_up, task);

    up->native = agx_native_of(t->base.backend);
    up->box = agx_native_box_of(t);
}

static void up_free(struct agx_sandbox_op *t)
{
    struct agx_native_up *up = container_of(t, struct agx_native_up, task);

    for (size_t i = 0; i < up->n_parts; i++) {
        struct agx_native_up_part *p = &up->parts[i];

        agx_image_unref(p->image);
        agx_cgroup_entry_done(&p->cgroup);
        agx_error_free(p->failed);
    }
    free(up->parts);
    agx_native_up_drop_nsset(up);
    agx_host_view_done(&up->host_view);
    agx_tool_files_wipe(&up->tar);
    agx_words_done(&up->egress);
    agx_words_done(&up->hosts);
    agx_forward_sockets_done(&up->sockets);
}

static const struct agx_op_state up_states[] = {
    [UP_AWAIT] = { "await", enter_await, agx_op_cancel_held },
    [UP_SCAN] = { "scan", enter_scan, agx_op_cancel_held },
    [UP_CLEAR] = { "clear", enter_clear, agx_op_cancel_held },
    [UP_NAMES] = { "names", agx_native_up_enter_names, agx_op_cancel_held },
    [UP_MAKE] = { "make", agx_native_up_enter_make, agx_op_cancel_held, UP_UNDO },
    [UP_PREPARE] = { "prepare", agx_native_up_enter_prepare, agx_op_cancel_held, UP_UNDO },
    [UP_LAUNCH] = { "launch", agx_native_up_enter_launch, agx_op_cancel_held, UP_UNDO },
    [UP_STAT] = { "stat", agx_native_up_enter_stat, agx_op_cancel_held, UP_UNDO },
    [UP_UNPACK] = { "unpack", agx_native_up_enter_unpack, agx_op_cancel_held, UP_UNDO },
    [UP_MADE] = { "made", agx_native_up_enter_made, agx_op_cancel_held, UP_UNDO },
    [UP_GO] = { "go", agx_native_up_enter_go, agx_op_cancel_held, UP_UNDO },
    [UP_FORWARD] = { "forward", agx_native_up_enter_forward, agx_op_cancel_held, UP_UNDO },
    [UP_REACH] = { "reach", enter_reach, agx_op_cancel_held, UP_UNDO },
    [UP_UNDO] = { "undo", enter_undo, agx_op_cancel_held },
};

static const struct agx_op_kind up_kind = {
    .name = "native-up",
    .states = up_states,
    .n_states = AGX_ARRAY_LEN(up_states),
    .cancel_held = cancel_up,
    .finish = agx_native_op_ended,
};

const struct agx_sandbox_op_verb agx_native_verb_up = { &up_kind, sizeof(struct agx_native_up),
                                                        up_begin, up_free };

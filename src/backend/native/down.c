/*
 * down.c: stops and removes the running parts of a sandbox; the operations stop, halt and delete.
 *
 *     TERM <--+ again whenever a process ended, until the grace period is over
 *       |-----+
 *       v
 *     KILL --> SETTLE --> CLEAN --> done
 *
 * Killing PID 1 kills all of its pid namespace. SETTLE waits until the init client has read init's
 * last messages, so that commands end with their true exit codes.
 */
#include "backend/native/native_internal.h"

#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <string.h>

#include "base/banned.h"

enum { DOWN_DONE = AGX_OP_DONE, DOWN_TERM, DOWN_KILL, DOWN_SETTLE, DOWN_CLEAN };

struct agx_native_downing {
    struct agx_op op;
    struct agx_native_box *box;
    struct agx_native *native;
    enum agx_native_down what;
    bool signalled;
    uint64_t until_ms; /* of the current wait */
    agx_done_fn done;
    void *user;
};

static struct agx_native_downing *downing_of(struct agx_op *op)
{
    return container_of(op, struct agx_native_downing, op);
}

static uint64_t now_ms(const struct agx_native_downing *d)
{
    return uv_now(agx_loop_uv(d->native->base.loop));
}

/* ---- processes ---- */

/* "SIGTERM", "TERM", "15". */
static int parse_signal(const char *text)
{
    uint64_t number = 0;

    if (agx_parse_u64(agx_str_from(text), SIGRTMAX, &number))
        return number > 0 ? (int)number : SIGTERM;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);

        if (name && strcmp(name, text) == 0)
            return i;
    }
    return SIGTERM;
}

/* The image's stop signal applies where a program of the image runs. */
static int stop_signal(const struct agx_native_part *p)
{
    const char *text = p->image ? p->image->config.stop_signal : NULL;

    return text && p->has_main ? parse_signal(text) : SIGTERM;
}

static void signal_all(struct agx_native_downing *d, bool kill)
{
    for (size_t i = 0; d->box->known && i < d->box->state.n_parts; i++) {
        struct agx_native_part *p = &d->box->parts[i];

        agx_native_part_signal(p, kill ? SIGKILL : stop_signal(p));
    }
}

/* Waits for something to happen; true: there is time left. */
static bool linger(struct agx_native_downing *d)
{
    const uint64_t now = now_ms(d);

    if (now >= d->until_ms)
        return false;
    agx_op_pause(&d->op, d->until_ms - now);
    return true;
}

static int enter_term(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_downing *d = downing_of(op);
    bool again = false;

    if (!d->signalled)
        signal_all(d, false);
    d->signalled = true;
    if (agx_native_box_runs(d->box))
        again = linger(d);
    return agx_op_wait(&d->op, 0, again ? DOWN_TERM : DOWN_KILL, err);
}

static int enter_kill(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_downing *d = downing_of(op);
    bool again = false;
    int r = 0;

    if (d->signalled) {
        d->signalled = false;
        d->until_ms = now_ms(d) + AGX_NATIVE_KILL_MS;
        signal_all(d, true);
    }
    if (agx_native_box_runs(d->box)) {
        again = linger(d);
        if (!again)
            r = agx_error_set(err, AGX_UNAVAILABLE,
                              "a process of sandbox '%s' was killed and does not end", d->box->id);
    }
    if (!again)
        d->until_ms = now_ms(d) + AGX_NATIVE_SETTLE_MS;
    return agx_op_wait(&d->op, r, again ? DOWN_KILL : DOWN_SETTLE, err);
}

static int enter_settle(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_downing *d = downing_of(op);
    const bool again = d->box->init_is_up && linger(d);

    return agx_op_wait(&d->op, 0, again ? DOWN_SETTLE : DOWN_CLEAN, err);
}

/* ---- what is left ---- */

/* Cgroups and files: everything that is done on a thread. */
struct clean_job {
    struct agx_job job;
    struct agx_native_downing *downing;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools */
    struct agx_cgroups *cgroups;
    const struct agx_disk *disk;
    char *id;
    size_t n_parts;
    bool remove;
    bool has_state;
    struct agx_native_state state; /* a copy; is written, unless the sandbox is removed */
    /* The forwarder of its ports, or -1: it is waited for, so that a start right behind this finds
     * them free. */
    int ports_pidfd;
};

/* A process that was just killed may still be in it. */
static int remove_group(struct agx_cgroups *g, const char *name, struct agx_error **err)
{
    for (unsigned tries = 0;; tries++) {
        struct agx_error *why = NULL;
        int r = agx_cgroups_remove(g, name, &why);

        if (r == -AGX_UNAVAILABLE && tries < AGX_NATIVE_GROUP_TRIES) {
            agx_error_free(why);
            (void)!agx_cgroups_kill(g, name, NULL);
            (void)usleep(AGX_NATIVE_GROUP_PAUSE_US);
            continue;
        }
        agx_error_propagate(err, &why);
        return r;
    }
}

static int end_disk(const struct clean_job *c, size_t part, struct agx_error **err)
{
    _cleanup_close_ int fd = agx_boxdirs_part(c->dirs, c->id, part, err);

    if (fd < 0)
        return fd;
    return c->remove ? agx_disk_drop(c->disk, fd, "fs", c->state.parts[part].id_base, err)
                     : agx_disk_settle(fd, "fs", err); /* left by a start that failed */
}

/* Does nothing for a disk that was never limited. */
static int end_disks(const struct clean_job *c, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && c->has_state && i < c->state.n_parts; i++)
        r = end_disk(c, i, err);
    return r;
}

static void clean_free(struct clean_job *c)
{
    agx_native_state_done(&c->state);
    agx_closep(&c->ports_pidfd);
    free(c->id);
    free(c);
}

static int run_clean(struct agx_job *j, struct agx_error **err)
{
    struct clean_job *c = container_of(j, struct clean_job, job);
    char name[AGX_NATIVE_GROUP_SIZE];
    int r = 0;

    if (c->ports_pidfd >= 0)
        agx_native_proc_end(AGX_TAKE_FD(c->ports_pidfd));
    for (size_t i = 0; r == 0 && i < c->n_parts; i++)
        r = remove_group(c->cgroups, agx_native_group(c->id, i, name), err);
    if (r == 0)
        r = end_disks(c, err);
    if (r < 0)
        return r;
    if (c->remove)
        return agx_boxdirs_trash(c->dirs, c->id, err);
    return c->has_state ? agx_boxdirs_write(c->dirs, &c->state, true, err) : 0;
}

static void clean_done(struct agx_job *j, struct agx_error *error)
{
    struct clean_job *c = container_of(j, struct clean_job, job);
    struct agx_native_downing *d = c->downing;

    if (!error && c->remove)
        agx_native_box_forget(d->box);
    if (!error && c->remove)
        agx_native_empty_trash(d->native);
    clean_free(c);
    agx_op_fail(&d->op, &error);
    agx_op_arrive(&d->op);
}

static const struct agx_job_kind clean_kind = { .name = "clean",
                                                .run = run_clean,
                                                .done = clean_done };

/* Nothing of its network exists any more, nor any process. */
static int take_record(struct agx_native_box *box, struct agx_native_state *ret,
                       struct agx_error **err)
{
    struct agx_native_state *s = &box->state;

    free(s->interface);
    s->interface = NULL;
    s->ports = (struct agx_native_proc){ 0 };
    for (size_t i = 0; i < s->n_parts; i++)
        s->parts[i].init = s->parts[i].names = (struct agx_native_proc){ 0 };
    return agx_native_state_copy(ret, s, err);
}

static int enter_clean(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_downing *d = downing_of(op);
    struct agx_native_box *box = d->box;
    struct clean_job *c = agx_new(struct clean_job);
    int r;

    box->egress_dns = agx_resolve_stop(box->egress_dns);
    c->ports_pidfd = agx_forward_dup_pidfd(box->ports);
    agx_native_box_unforward(box);
    box->nsset = agx_nsset_remove(box->nsset);
    c->job.kind = &clean_kind;
    c->downing = d;
    c->dirs = &d->native->dirs;
    c->cgroups = d->native->cgroups;
    c->disk = &d->native->disk;
    c->remove = d->what == AGX_NATIVE_DOWN_REMOVE;
    c->n_parts = box->known ? box->state.n_parts : 1;
    r = agx_text_set(&c->id, box->id, err);
    if (r == 0 && box->known) {
        r = take_record(box, &c->state, err);
        c->has_state = r == 0;
    }
    if (r == 0)
        r = agx_job_start(&c->job, d->native->disk_pool, err);
    if (r == 0) {
        agx_op_hold(&d->op);
    } else {
        clean_free(c);
    }
    return agx_op_wait(&d->op, r, DOWN_DONE, err);
}

/* ---- the whole ---- */

static void down_ended(struct agx_op *op, struct agx_error *error)
{
    struct agx_native_downing *d = container_of(op, struct agx_native_downing, op);

    d->box->downing = NULL;
    d->box->unheard = false; /* they were stopped on purpose */
    if (!d->native->base.closing && !agx_native_part_runs(d->box, 0))
        agx_native_box_down(d->box, NULL);
    d->done(d->user, error);
    free(d);
}

static const struct agx_op_state down_states[] = {
    [DOWN_TERM] = { "term", enter_term, agx_op_cancel_held },
    [DOWN_KILL] = { "kill", enter_kill, agx_op_cancel_held },
    [DOWN_SETTLE] = { "settle", enter_settle, agx_op_cancel_held },
    [DOWN_CLEAN] = { "clean", enter_clean, agx_op_cancel_held },
};

static const struct agx_op_kind down_kind = {
    .name = "native-down",
    .states = down_states,
    .n_states = AGX_ARRAY_LEN(down_states),
    .finish = down_ended,
};

struct agx_native_downing *agx_native_down_start(struct agx_native_box *box,
                                                 enum agx_native_down what, uint64_t grace_ms,
                                                 agx_done_fn done, void *user)
{
    struct agx_native_downing *d = agx_new(struct agx_native_downing);

    d->box = box;
    d->native = box->native;
    d->what = what;
    d->done = done;
    d->user = user;
    d->until_ms = now_ms(d) + grace_ms;
    box->downing = d;
    agx_post_starts_cancel(&box->afters);
    agx_op_start_in(&d->op, &down_kind, &d->native->operations, box->id, 0);
    return d;
}

void agx_native_down_cancel(struct agx_native_downing *d)
{
    agx_op_cancel(&d->op, AGX_CANCELLED);
}

void agx_native_down_hear(struct agx_native_downing *d)
{
    agx_op_wake(&d->op);
}

/* ---- stop, halt, delete ---- */

enum { TASK_DONE = AGX_OP_DONE, TASK_AWAIT, TASK_DOWN };

struct down_task {
    struct agx_sandbox_op task;
    struct agx_native_downing *downing;
};

static struct down_task *down_task_of(struct agx_op *op)
{
    return container_of(agx_sandbox_op_of(op), struct down_task, task);
}

static int enter_await(struct agx_op *op, struct agx_error **err)
{
    (void)err;
    return agx_native_op_await(agx_sandbox_op_of(op), TASK_AWAIT, TASK_DOWN);
}

static void on_down(void *user, struct agx_error *error)
{
    struct down_task *t = user;

    t->downing = NULL;
    agx_op_fail(&t->task.op, &error);
    agx_op_arrive(&t->task.op);
}

static int enter_down(struct agx_op *op, struct agx_error **err)
{
    struct down_task *t = down_task_of(op);
    struct agx_native_box *box = agx_native_box_of(&t->task);
    const bool there = box->known && box->state.made;
    int r = 0;

    if (t->task.verb == AGX_DO_STOP && !there) {
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no sandbox '%s'", box->id);
    } else if (there || t->task.verb == AGX_DO_DELETE) {
        agx_op_hold(&t->task.op);
        t->downing = agx_native_down_start(
            box, t->task.verb == AGX_DO_DELETE ? AGX_NATIVE_DOWN_REMOVE : AGX_NATIVE_DOWN_STOP,
            t->task.grace_ms, on_down, t);
    }
    return agx_op_wait(&t->task.op, r, TASK_DONE, err);
}

static void cancel_down(struct agx_op *op)
{
    struct down_task *t = down_task_of(op);

    if (t->downing)
        agx_native_down_cancel(t->downing);
}

static const struct agx_op_state task_states[] = {
    [TASK_AWAIT] = { "await", enter_await, agx_op_cancel_held },
    [TASK_DOWN] = { "down", enter_down, agx_op_cancel_held },
};

static const struct agx_op_kind task_kind = {
    .name = "native-stop",
    .states = task_states,
    .n_states = AGX_ARRAY_LEN(task_states),
    .cancel_held = cancel_down,
    .finish = agx_native_op_ended,
};

const struct agx_sandbox_op_verb agx_native_verb_down = { .op = &task_kind,
                                                          .size = sizeof(struct down_task) };

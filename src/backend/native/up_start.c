/* up_start.c: starts the processes of a sandbox: one init with a plan for each part. */
#include "backend/native/op_up.h"

#include "backend/native/limits/caps.h"
#include "backend/native/plan_build.h"
#include "base/mem.h"

#include <limits.h>
#include <stdio.h>

#include "base/banned.h"

/* ---- the record ---- */

struct record_job {
    struct agx_job job;
    struct agx_native_up *up;
    const struct agx_boxdirs *dirs; /* the backend's, which waits for its pools */
    struct agx_native_state state;  /* a copy */
    bool settles;                   /* its processes run and hold the mounts of its disks */
};

static int settle_disks(const struct record_job *x, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < x->state.n_parts; i++) {
        _cleanup_close_ int fd = agx_boxdirs_part(x->dirs, x->state.sandbox_id, i, err);

        r = fd < 0 ? fd : agx_disk_settle(fd, "fs", err);
    }
    return r;
}

static int run_record(struct agx_job *j, struct agx_error **err)
{
    struct record_job *x = container_of(j, struct record_job, job);
    int r = x->settles ? settle_disks(x, err) : 0;

    return r < 0 ? r : agx_boxdirs_write(x->dirs, &x->state, false, err);
}

static void record_free(struct record_job *x)
{
    agx_native_state_done(&x->state);
    free(x);
}

static void record_done(struct agx_job *j, struct agx_error *error)
{
    struct record_job *x = container_of(j, struct record_job, job);
    struct agx_op *op = &x->up->task.op;

    x->up->recorded = x->up->task.op.state == UP_REACH;
    record_free(x);
    agx_op_fail(op, &error);
    agx_op_arrive(op);
}

static const struct agx_job_kind record_kind = { .name = "record",
                                                 .run = run_record,
                                                 .done = record_done };

int agx_native_up_record(struct agx_native_up *up, struct agx_error **err)
{
    struct record_job *x = agx_new(struct record_job);
    int r;

    x->job.kind = &record_kind;
    x->up = up;
    x->dirs = &up->native->dirs;
    x->settles = up->has_disks && up->task.op.state == UP_REACH;
    r = agx_native_state_copy(&x->state, &up->box->state, err);
    if (r == 0)
        r = agx_job_start(&x->job, up->native->disk_pool, err);
    if (r < 0)
        record_free(x);
    else
        agx_op_hold(&up->task.op);
    return r;
}

/* ---- one part ---- */

static void on_launch_closed(void *user)
{
    agx_native_released(user);
}

static void close_launch(struct agx_native_up_part *p)
{
    p->launch = agx_launch_close(p->launch, on_launch_closed, p->up->native);
}

static size_t index_of(const struct agx_native_up_part *p)
{
    return (size_t)(p - p->up->parts);
}

/* A failure of the primary fails the operation; that of a companion is only reported. */
static void part_failed(struct agx_native_up_part *p, struct agx_error *error)
{
    const struct agx_sandbox *sb = &p->up->task.sandbox;
    const size_t i = index_of(p);

    if (i == 0) {
        (void)agx_error_wrap(&error, -(int)error->code, "start sandbox '%s'", sb->id);
        agx_op_fail(&p->up->task.op, &error);
    } else {
        (void)agx_error_wrap(&error, -(int)error->code, "start companion '%s' of sandbox '%s'",
                             sb->spec.companions[i - 1].name, sb->id);
        agx_error_propagate(&p->failed, &error);
    }
}

static void on_failed(void *user, struct agx_error *error)
{
    struct agx_native_up_part *p = user;
    struct agx_op *op = &p->up->task.op;

    close_launch(p);
    if (p->waits) { /* reported when it would continue */
        agx_error_propagate(&p->failed, &error);
        return;
    }
    part_failed(p, error);
    agx_op_arrive(op);
}

/* Takes the pidfd. */
static void on_cloned(struct agx_native_up_part *p, int pidfd, pid_t pid)
{
    struct agx_native_box *box = p->up->box;
    const size_t i = index_of(p);
    struct agx_error *error = NULL;
    int r = agx_native_proc_note(&box->state.parts[i].init, pid, &error);

    agx_native_part_watch(&box->parts[i], pidfd);
    if (r < 0)
        agx_op_fail(&p->up->task.op, &error);
}

static void on_told(void *user, enum agx_plan_kind kind, int pidfd, pid_t pid)
{
    struct agx_native_up_part *p = user;

    if (kind == AGX_PLAN_CLONED) {
        on_cloned(p, pidfd, pid);
        return;
    }
    if (kind == AGX_PLAN_READY)
        p->waits = true;
    else
        close_launch(p);
    agx_op_arrive(&p->up->task.op);
}

static const struct agx_launch_ops launch_ops = { on_told, on_failed };

static int launch_part(struct agx_native_up *up, size_t i, struct agx_error **err)
{
    struct agx_native *n = up->native;
    struct agx_native_box *box = up->box;
    const struct agx_spec *spec = &up->task.sandbox.spec;
    struct agx_native_up_part *p = &up->parts[i];
    _cleanup_buf_ struct agx_buf plan = AGX_BUF_INIT(AGX_INIT_PACKET_MAX);
    char dir[PATH_MAX];
    const struct agx_plan_build c = { .image = p->image,
                                      .spec = spec,
                                      .companion = i == 0 ? NULL : &spec->companions[i - 1],
                                      .sandbox_id = box->id,
                                      .host_view = &up->host_view,
                                      .dir = dir,
                                      .ground = n->ground,
                                      .devices = agx_devices_path(n->devices),
                                      .cgroup = &p->cgroup,
                                      .seccomp = agx_buf_peek(&n->seccomp),
                                      .caps = agx_caps_kept(),
                                      .host_uid = n->host_uid,
                                      .host_gid = n->host_gid,
                                      .compat = n->compat,
                                      .first = up->makes,
                                      .shifted = n->rootless != NULL,
                                      .at_once = i > 0 || agx_native_up_copies(up) == 0 };
    const struct agx_launch_params params = { .init_path = n->init_path,
                                              .plan = &plan,
                                              .user_fd = box->nsset->members[i].user_fd,
                                              .net_fd = box->nsset->members[i].net_fd,
                                              .cgroup = &p->cgroup,
                                              .binds = i == 0 ? &up->host_view.binds : NULL };
    int r;

    (void)snprintf(dir, sizeof(dir), "%s/boxes/%s/%zu", n->dir, box->id, i);
    box->parts[i].has_main = i > 0 || spec->command.len > 0 || n->compat;
    r = agx_plan_build_encode(&c, &plan, err);
    if (r == 0)
        r = agx_launch_start(n->base.loop, &params, &launch_ops, p, &p->launch, err);
    agx_cgroup_entry_done(&p->cgroup);
    if (r < 0)
        return r;
    n->n_open++;
    agx_op_hold(&up->task.op);
    return 0;
}

/* ---- all ---- */

int agx_native_up_enter_launch(struct agx_op *op, struct agx_error **err)
{
    struct agx_native_up *up = agx_native_up_of(op);

    agx_init_client_expect(up->box->init_client);
    for (size_t i = 0; i < up->n_parts; i++) {
        struct agx_error *error = NULL;

        if (!up->parts[i].runs && launch_part(up, i, &error) < 0)
            part_failed(&up->parts[i], error);
    }
    return agx_op_wait(&up->task.op, 0, UP_STAT, err);
}

void agx_native_up_cancel_launch(struct agx_native_up *up)
{
    for (size_t i = 0; i < up->n_parts; i++) {
        if (!up->parts[i].launch)
            continue;
        close_launch(&up->parts[i]);
        if (!up->parts[i].waits)
            agx_op_arrive(&up->task.op);
    }
}

/*
 * mount_check.c: the operation of a comparison.
 *
 *     LOOK --same--> KEEP --> NOTE --> done
 *      ^  |
 *      |  +--not init yet, gone--> PAUSE      (gone: ask the engine again)
 *      |  +--another file--> STOP             the container ends
 *      +----------------------- PAUSE
 *
 * A thread does the comparison and may hang in a source: an abandoned job keeps what it uses.
 */
#include "backend/docker/mount_check.h"

#include "backend/docker/create_body.h"
#include "backend/docker/docker_internal.h"
#include "backend/docker/mount_check_thread.h"
#include "base/log.h"
#include "base/mem.h"

#include <sys/stat.h>

#include "base/banned.h"

enum { CMP_DONE = AGX_OP_DONE, CMP_LOOK, CMP_PAUSE, CMP_KEEP, CMP_NOTE, CMP_STOP };

struct compare;

struct look_job {
    struct agx_job job;
    struct compare *of; /* NULL: abandoned */
    struct agx_docker_looked looked;
    bool notes; /* it was compared: only writes the record */
};

struct compare {
    struct agx_op op;
    struct agx_docker_box *box; /* NULL: abandoned */
    agx_docker_compared_fn compared;
    struct look_job *job;
    struct agx_writables_keep *keep;
    char *container;
    bool may_be_elsewhere;
    bool busy, gone;
    uint64_t until_ms;
    struct agx_error *other; /* another file is mounted */
};

static struct compare *mount_check_of(struct agx_op *op)
{
    return container_of(op, struct compare, op);
}

static void job_free(struct look_job *j)
{
    agx_docker_looked_done(&j->looked);
    free(j);
}

/* ---- the thread's part ---- */

static int run_job(struct agx_job *job, struct agx_error **err)
{
    struct look_job *j = container_of(job, struct look_job, job);

    return j->notes ? agx_docker_looked_note(&j->looked, err)
                    : agx_docker_look_at_targets(&j->looked, err);
}

static uint64_t now_ms(const struct compare *x)
{
    return uv_now(agx_loop_uv(x->op.loop));
}

/* Takes the error. */
static void post_start_look(struct compare *x, struct agx_error *error)
{
    struct agx_op *op = &x->op;
    const enum agx_code code = error ? error->code : AGX_OK;

    if (!error) {
        op->then = x->job->looked.noted ? CMP_DONE : CMP_KEEP;
    } else if (code == AGX_FAILED_PRECONDITION) {
        AGX_LOG(AGX_LOG_ERROR, "sources.changed", AGX_F_STR("sandbox", x->box->id),
                AGX_F_ERR(error));
        x->other = error;
        op->then = CMP_STOP;
        return;
    } else if (code == AGX_UNAVAILABLE && now_ms(x) < x->until_ms) {
        op->then = CMP_PAUSE;
    } else if (x->may_be_elsewhere) {
        AGX_LOG(AGX_LOG_WARN, "sources.not_compared", AGX_F_STR("sandbox", x->box->id),
                AGX_F_ERR(error));
        op->then = CMP_DONE;
    } else if (code == AGX_NOT_FOUND) {
        x->gone = true;
        op->then = CMP_PAUSE;
    } else {
        agx_op_fail(op, &error);
    }
    agx_error_free(error);
}

static void job_done(struct agx_job *job, struct agx_error *error)
{
    struct look_job *j = container_of(job, struct look_job, job);
    struct compare *x = j->of;

    if (!x) {
        agx_error_free(error);
        job_free(j);
        return;
    }
    x->busy = false;
    if (j->notes || !x->box)
        agx_op_fail(&x->op, &error);
    else
        post_start_look(x, error);
    agx_op_arrive(&x->op);
}

static const struct agx_job_kind look_kind = { .name = "compare",
                                               .run = run_job,
                                               .done = job_done };

/* Begins the thread's part, then goes to `then`. When too many jobs wait for a thread, as after a
 * start with many sandboxes, it enters the state `self` again. */
static int start_job(struct compare *x, unsigned self, unsigned then, struct agx_error **err)
{
    struct agx_error *error = NULL;
    int r = agx_job_start(&x->job->job, agx_docker_by(&x->op)->host.pool, &error);

    if (r == 0) {
        x->busy = true;
        agx_op_hold(&x->op);
    } else if (r == -AGX_RESOURCE_EXHAUSTED) {
        agx_error_freep(&error);
        agx_op_pause(&x->op, AGX_DOCKER_REACH_MS);
        return agx_op_wait(&x->op, 0, self, err);
    }
    agx_error_propagate(err, &error);
    return agx_op_wait(&x->op, r, then, err);
}

/* ---- states ---- */

/* Starts over: closes what was opened. */
static int enter_look(struct agx_op *op, struct agx_error **err)
{
    struct compare *x = mount_check_of(op);
    struct agx_binds *b = &x->job->looked.binds;

    for (size_t i = 0; i < b->len; i++)
        agx_hostpath_done(&b->items[i].from);
    return start_job(x, CMP_LOOK, CMP_DONE, err);
}

static int enter_pause(struct agx_op *op, struct agx_error **err)
{
    agx_op_pause(op, AGX_DOCKER_REACH_MS);
    return agx_op_wait(op, 0, mount_check_of(op)->gone ? CMP_DONE : CMP_LOOK, err);
}

static void on_kept(void *user, struct agx_error *error)
{
    struct compare *x = user;

    x->keep = NULL;
    agx_op_fail(&x->op, &error);
    agx_op_arrive(&x->op);
}

/* It may be another directory than the one that was checked before the engine got its path. */
static int enter_keep(struct agx_op *op, struct agx_error **err)
{
    struct compare *x = mount_check_of(op);
    const struct agx_docker_looked *l = &x->job->looked;
    int r = agx_binds_keep(&l->binds, l->asker.sources, on_kept, x, &x->keep, err);

    if (r == 0)
        agx_op_hold(op);
    return agx_op_wait(op, r < 0 ? r : 0, CMP_NOTE, err);
}

static int enter_note(struct agx_op *op, struct agx_error **err)
{
    struct compare *x = mount_check_of(op);

    x->job->notes = true;
    return start_job(x, CMP_NOTE, CMP_DONE, err);
}

static void on_stopped(struct agx_op *op, size_t tag, const struct agx_docker_answer *answer,
                       struct agx_error *error)
{
    (void)op;
    (void)tag;
    (void)answer;
    agx_error_free(error); /* its main process is held, whatever the engine does */
}

/* A container that the engine would restart by itself stays down, because it was stopped. */
static int enter_stop(struct agx_op *op, struct agx_error **err)
{
    int r = agx_docker_ask(
        op,
        &(struct agx_docker_query){
            .request = { .method = "POST", .what = "stop container" },
            .path = agx_docker_path("/containers/%s/stop?t=1", mount_check_of(op)->container),
            .answered = on_stopped },
        err);

    return agx_op_wait(op, r, CMP_DONE, err);
}

/* ---- the whole ---- */

static void cancel_compare(struct agx_op *op)
{
    struct compare *x = mount_check_of(op);

    if (x->busy) {
        struct look_job *j = AGX_TAKE_PTR(x->job);

        x->busy = false;
        j->of = NULL;
        agx_job_cancel(&j->job);
        agx_op_arrive(op);
    }
    if (x->keep) {
        agx_writables_abandon(AGX_TAKE_PTR(x->keep));
        agx_op_arrive(op);
    }
}

/* Takes the error. */
static void mount_check_tell(struct compare *x, struct agx_error *error)
{
    if (x->other) {
        agx_error_free(error);
        error = AGX_TAKE_PTR(x->other);
    }
    x->compared(x->box,
                error     ? AGX_DOCKER_COMPARED_FAILED
                : x->gone ? AGX_DOCKER_COMPARED_GONE
                          : AGX_DOCKER_COMPARED_SAME,
                error);
}

static void mount_check_ended(struct agx_op *op, struct agx_error *error)
{
    struct compare *x = mount_check_of(op);

    if (x->box && !x->box->docker->base.closing)
        mount_check_tell(x, error);
    else
        agx_error_free(error);
    if (x->job)
        job_free(x->job);
    agx_error_free(x->other);
    free(x->container);
    free(x);
}

static const struct agx_op_state compare_states[] = {
    [CMP_LOOK] = { "look", enter_look, agx_op_cancel_held },
    [CMP_PAUSE] = { "pause", enter_pause, agx_op_cancel_held },
    [CMP_KEEP] = { "keep", enter_keep, agx_op_cancel_held },
    [CMP_NOTE] = { "note", enter_note, agx_op_cancel_held },
    [CMP_STOP] = { "stop", enter_stop, agx_op_cancel_held },
};

static const struct agx_op_kind compare_kind = {
    .name = "docker-compare",
    .states = compare_states,
    .n_states = AGX_ARRAY_LEN(compare_states),
    .cancel_held = cancel_compare,
    .finish = mount_check_ended,
};

static int take_mounts(struct agx_binds *to, const json_t *mounts, struct agx_error **err)
{
    const json_t *one;
    size_t i;
    int r = 0;

    json_array_foreach(mounts, i, one)
    {
        const char *target = json_string_value(json_object_get(one, "Target"));
        const char *source = json_string_value(json_object_get(one, "Source"));

        if (r == 0 && target && source && strcmp(target, AGX_DOCKER_INIT) != 0)
            r = agx_binds_add(to, source, target, !json_is_true(json_object_get(one, "ReadOnly")),
                              err);
    }
    return r;
}

static int fill_job(struct look_job *j, struct agx_docker_box *box,
                    const struct agx_docker_mount_check_params *p, struct agx_error **err)
{
    struct agx_docker_looked *l = &j->looked;
    int r;

    j->job.kind = &look_kind;
    l->pid = p->pid;
    l->asker = (struct agx_sources_asker){ agx_sources_ref(box->docker->host.sources), p->owner };
    if ((r = agx_text_set(&l->sandbox_id, box->id, err)) < 0 ||
        (r = agx_text_set(&l->container, p->container, err)) < 0 ||
        (r = agx_text_set(&l->state_dir, box->docker->state_dir, err)) < 0)
        return r;
    return take_mounts(&l->binds, p->mounts, err);
}

int agx_docker_mount_check_start(struct agx_docker_box *box,
                                 const struct agx_docker_mount_check_params *p,
                                 agx_docker_compared_fn compared, struct agx_op **ret_op,
                                 struct agx_error **err)
{
    struct agx_docker *d = box->docker;
    struct look_job *j = agx_new(struct look_job);
    struct compare *x;
    char *container = NULL;
    int r = fill_job(j, box, p, err);

    if (r == 0)
        r = agx_text_set(&container, p->container, err);
    if (r < 0) {
        job_free(j);
        return r;
    }
    x = agx_new(struct compare);
    x->box = box;
    x->compared = compared;
    x->job = j;
    x->container = container;
    x->may_be_elsewhere = p->may_be_elsewhere;
    x->until_ms = uv_now(agx_loop_uv(d->base.loop)) + AGX_INITLINK_CONNECT_MS;
    j->of = x;
    *ret_op = &x->op;
    agx_op_start_in(&x->op, &compare_kind, &d->operations, x->container, 0);
    return 0;
}

void agx_docker_mount_check_abandon(struct agx_op *op)
{
    if (!op)
        return;
    mount_check_of(op)->box = NULL;
    agx_op_cancel(op, AGX_CANCELLED);
}

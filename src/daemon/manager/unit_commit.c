/*
 * unit_commit.c: one batch: filled, committed, and then either published and acted upon, or undone.
 *
 *     begin --> steps --> end --+-- nothing to store ------------+--> settle
 *                               +-- commit --+-- stored ---------+
 *                                            +-- not stored --> undo, refuse, queue again
 */
#include "daemon/manager/unit_commit.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/manager/accept.h"
#include "daemon/manager/drive.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/monitor.h"
#include "daemon/manager/purge.h"
#include "daemon/manager/timers.h"

#include <assert.h>

#include "base/banned.h"

int agx_unit_commit_begin(struct agx_unit *u, struct agx_unit_commit **ret, struct agx_error **err)
{
    struct agx_life life;
    struct agx_unit_commit *c;
    int r = agx_life_copy(&life, &u->sandbox.life, err);

    if (r < 0)
        return r;
    u->committed = agx_new(struct agx_sandbox);
    *u->committed = u->sandbox;
    u->committed->life = life;
    c = u->commit = agx_new(struct agx_unit_commit);
    c->unit = u;
    c->now = agx_manager_now(u->manager);
    *ret = c;
    return 0;
}

static void unit_commit_free(struct agx_unit_commit *c)
{
    for (size_t i = 0; i < c->events_len; i++)
        agx_event_done(&c->events[i].event);
    free(c->events);
    agx_input_free_all(&c->inputs);
    free(c);
}

static void add_event(struct agx_unit_commit *c, struct agx_event *take_event)
{
    struct agx_unit_commit_event *more =
        reallocarray(c->events, c->events_len + 1, sizeof(struct agx_unit_commit_event));

    if (!more)
        abort();
    c->events = more;
    c->events[c->events_len++] = (struct agx_unit_commit_event){ .event = *take_event };
}

void agx_unit_commit_take(struct agx_unit_commit *c, struct agx_sandbox_output *out)
{
    c->changed |= out->changed;
    c->purge |= out->purge;
    if (out->has_event)
        add_event(c, &out->event);
    if (out->start != AGX_DO_NONE) {
        c->start = out->start;
        c->cancel = false; /* the operation to cancel has ended */
    }
    c->cancel |= out->cancel;
}

void agx_unit_commit_touch(struct agx_unit_commit *c, struct agx_exec_unit *x)
{
    (void)c;
    if (x->touched)
        return;
    x->touched = x->stepped = true;
    x->committed = x->exec;
}

void agx_unit_commit_take_exec(struct agx_unit_commit *c, struct agx_exec_unit *x,
                               struct agx_exec_output *out)
{
    c->changed |= out->changed;
    x->changed |= out->changed;
    if (out->has_event)
        add_event(c, &out->event);
    if (out->start != AGX_EXEC_DO_NONE)
        x->start = out->start;
    if (x->exec.phase == AGX_EXEC_PHASE_ENDED)
        x->start = AGX_EXEC_DO_NONE;
}

/* ---- after a successful commit ---- */

static void drop_committed(struct agx_unit *u)
{
    agx_life_done(&u->committed->life);
    free(u->committed);
    u->committed = NULL;
}

static void note_phase(struct agx_unit *u)
{
    const struct agx_life *l = &u->sandbox.life;

    if (u->committed->life.phase == l->phase)
        return;
    agx_monitor_reset(u);
    if (l->phase == AGX_PHASE_FAILED)
        AGX_LOG(AGX_LOG_WARN, "sandbox.failed", AGX_F_STR("sandbox", u->sandbox.id),
                AGX_F_UINT("sequence", l->last_sequence), AGX_F_STR("error_code", l->error_code),
                AGX_F_STR("error", l->error_message));
    else
        AGX_LOG(AGX_LOG_INFO, "sandbox.phase", AGX_F_STR("sandbox", u->sandbox.id),
                AGX_F_STR("phase", agx_phase_name(l->phase)),
                AGX_F_UINT("sequence", l->last_sequence));
}

/* Readers see the change from here on. */
static void unit_commit_show(struct agx_unit_commit *c)
{
    struct agx_unit *u = c->unit;
    struct agx_manager *e = u->manager;

    note_phase(u);
    drop_committed(u);
    u->commit = NULL;
    u->failures = 0;
    if (c->changed)
        u->touched = e->looks;
    if (!u->born) {
        u->born = u->reconciled = true;
        agx_sorted_index_add(&e->sandbox_index, &u->sandbox);
    }
    if (u->sandbox.life.phase == AGX_PHASE_DELETED)
        agx_uid_quota_drop(&e->uid_quota, u->sandbox.owner_uid, AGX_UID_QUOTA_SANDBOXES,
                           &u->counted);
    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
        x->touched = x->changed = false;
        x->born = true;
    }
    for (size_t i = 0; i < c->events_len; i++)
        agx_feeds_publish(&e->feeds, &u->feeds, u->sandbox.id, c->events[i].position,
                          &c->events[i].event);
    if (c->events_len > 0)
        e->position = c->events[c->events_len - 1].position;
}

static void unit_commit_answer(struct agx_unit *u, struct agx_input *in)
{
    struct agx_answer a = { .error = AGX_TAKE_PTR(in->error), .reason = in->reason };
    char out[AGX_LOG_PATH_SIZE], err[AGX_LOG_PATH_SIZE];
    const char *key = agx_reason_id_key(in->reason);

    if (key)
        a.reason_id = in->exec && strcmp(key, "exec_id") == 0 ? in->exec->exec.id : u->sandbox.id;
    if (!a.error)
        a.sandbox = &u->sandbox;
    if (!a.error && in->exec && in->kind == AGX_INPUT_EXEC_CREATE) {
        const struct agx_logs *logs = &u->manager->logs;

        a.exec_id = in->exec->exec.id;
        a.out_path = agx_logs_path(logs, u->sandbox.id, a.exec_id, AGX_STREAM_OUT, out);
        a.err_path = agx_logs_path(logs, u->sandbox.id, a.exec_id, AGX_STREAM_ERR, err);
    }
    in->answer(in->user, &a);
}

static void unit_commit_act(struct agx_unit *u, enum agx_do start, bool cancel)
{
    if (start != AGX_DO_NONE && cancel) /* cancelled before it began */
        agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_FAILED, .op = start });
    else if (start != AGX_DO_NONE)
        agx_drive_start(u, start);
    else if (cancel)
        agx_drive_cancel(u);
}

static void act_on_execs(struct agx_unit *u)
{
    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
        enum agx_exec_do start = x->start;
        struct agx_input *waiter;

        if (!x->stepped)
            continue;
        x->stepped = false;
        x->start = AGX_EXEC_DO_NONE;
        while ((waiter = AGX_LIST_TAKE(&x->waiters, struct agx_input, node)))
            agx_unit_push(waiter->unit, waiter); /* to be refused: the id is taken */
        if (x->exec.phase == AGX_EXEC_PHASE_ENDED) {
            agx_drive_exec_forget(x);
            agx_exec_unit_release(x);
        } else {
            if (start != AGX_EXEC_DO_NONE)
                agx_drive_exec_start(x, start);
            agx_timers_schedule_exec(x);
        }
    }
}

static void unit_commit_settle(struct agx_unit_commit *c)
{
    struct agx_unit *u = c->unit;
    struct agx_manager *e = u->manager;

    unit_commit_show(c);
    AGX_LIST_FOR_EACH (struct agx_input, in, &c->inputs, node)
        if (in->answer)
            unit_commit_answer(u, in);
    if (!e->closing) {
        unit_commit_act(u, c->start, c->cancel);
        act_on_execs(u);
    }
    if (c->purge) {
        agx_logs_purge(&e->logs, u->sandbox.id);
        agx_unit_bury(u);
        agx_purge_go(e);
    } else if (!e->closing) {
        agx_timers_schedule(u);
        if (!agx_list_is_empty(&u->queue) && !agx_heap_has(&u->retry.node))
            agx_unit_mark_dirty(u);
    }
    unit_commit_free(c);
}

/* ---- after a failed commit ---- */

static void undo(struct agx_unit *u)
{
    agx_life_done(&u->sandbox.life);
    u->sandbox.life = u->committed->life;
    free(u->committed);
    u->committed = NULL;
    u->commit = NULL;
    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
        if (!x->touched)
            continue;
        agx_exec_undo(&x->exec, &x->committed);
        x->touched = x->changed = x->stepped = false;
        x->start = AGX_EXEC_DO_NONE;
        if (!x->born) {
            agx_logs_remove(&u->manager->logs, u->sandbox.id, x->exec.id);
            agx_exec_unit_release(x);
        }
    }
}

/* Answers the requests and puts all other inputs back at the head of the queue. */
static void sort_out(struct agx_unit_commit *c, const struct agx_error *error)
{
    struct agx_unit *u = c->unit;
    struct agx_list back = { 0 };
    struct agx_input *in;
    bool taken = !u->born && error->code == AGX_ALREADY_EXISTS;

    while ((in = AGX_LIST_TAKE(&c->inputs, struct agx_input, node))) {
        if (in->answer) {
            struct agx_error *copy = agx_error_dup(error);

            if (!taken)
                (void)agx_error_wrap(&copy, -(int)copy->code, "store sandbox '%s'", u->sandbox.id);
            agx_manager_answer_later(u->manager, in->answer, in->user, &copy,
                                     taken ? AGX_REASON_SANDBOX_ID_ALREADY_EXISTS : AGX_REASON_NONE,
                                     u->sandbox.id);
            agx_input_free(in);
        } else {
            agx_list_push_back(&back, &in->node);
        }
    }
    agx_list_move(&back, &u->queue);
    agx_list_move(&u->queue, &back);
}

static bool has_request(const struct agx_unit *u)
{
    AGX_LIST_FOR_EACH (const struct agx_input, in, &u->queue, node)
        if (in->answer)
            return true;
    return false;
}

/* Takes the error. */
static void unit_commit_fail(struct agx_unit_commit *c, struct agx_error *error)
{
    struct agx_unit *u = c->unit;
    struct agx_manager *e = u->manager;

    if (!e->failing)
        AGX_LOG(AGX_LOG_ERROR, "store.failing", AGX_F_STR("sandbox", u->sandbox.id),
                AGX_F_ERR(error));
    e->failing = true;
    undo(u);
    sort_out(c, error);
    agx_error_free(error);
    unit_commit_free(c);
    if (e->closing)
        return;
    if (!u->born) {
        agx_unit_bury(u);
        return;
    }
    agx_timers_schedule(u);
    if (has_request(u))
        agx_unit_mark_dirty(u);
    else if (!agx_list_is_empty(&u->queue))
        agx_unit_wait(u);
}

/* ---- the commit ---- */

static void on_stored(void *user, struct agx_error *error)
{
    struct agx_unit_commit *c = user;
    struct agx_manager *e = c->unit->manager;

    e->commits--;
    if (error) {
        unit_commit_fail(c, error);
    } else {
        if (e->failing)
            AGX_LOG(AGX_LOG_INFO, "store.recovered");
        e->failing = false;
        unit_commit_settle(c);
    }
    if (e->closing)
        agx_manager_close_on(e);
}

static void unit_commit_fill(struct agx_unit_commit *c, struct agx_store_batch *b)
{
    struct agx_unit *u = c->unit;
    struct agx_manager *e = u->manager;
    uint64_t position = e->next_position;

    if (!u->born) {
        assert(c->events_len > 0); /* its first event has the position that becomes its number */
        u->sandbox.number = position + 1;
        agx_schema_put_sandbox(b, &u->sandbox);
    }
    if (c->purge) {
        agx_schema_purge(b, &u->sandbox, e->next_position);
        return;
    }
    agx_schema_put_life(b, &u->sandbox);
    for (size_t i = 0; i < c->events_len; i++) {
        c->events[i].position = ++position;
        agx_schema_put_event(b, &u->sandbox, position, &c->events[i].event);
    }
    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &u->execs, node) {
        if (!x->changed)
            continue;
        if (!x->born)
            agx_schema_reserve_exec(b, &u->sandbox, &x->exec);
        agx_schema_put_exec(b, &x->exec);
    }
}

void agx_unit_commit_end(struct agx_unit_commit *c)
{
    _cleanup_(agx_store_batch_freep) struct agx_store_batch *b = NULL;
    struct agx_manager *e = c->unit->manager;
    struct agx_error *error = NULL;
    int r;

    if (!c->changed) {
        unit_commit_settle(c);
        return;
    }
    b = agx_store_batch_new();
    unit_commit_fill(c, b);
    r = agx_store_commit(e->config.store, &b, on_stored, c, &error);
    if (r < 0) {
        unit_commit_fail(c, error);
        return;
    }
    e->next_position += c->events_len;
    e->commits++;
}

/* unit.c: the queue of one sandbox, and how each input passes through the rules. */
#include "daemon/manager/unit.h"

#include "base/mem.h"
#include "daemon/manager/accept.h"
#include "daemon/manager/unit_commit.h"
#include "daemon/manager/drive.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/monitor.h"
#include "daemon/manager/timers.h"

#include <assert.h>

#include "base/banned.h"

/* ---- inputs ---- */

struct agx_input *agx_input_new(enum agx_input_kind kind)
{
    struct agx_input *in = agx_new(struct agx_input);

    in->kind = kind;
    return in;
}

void agx_input_free(struct agx_input *in)
{
    if (!in)
        return;
    agx_exec_unit_unref(in->exec);
    free(in->error_code);
    free(in->error_message);
    if (in->spec)
        agx_spec_done(in->spec);
    free(in->spec);
    agx_error_free(in->error);
    free(in);
}

void agx_input_free_all(struct agx_list *inputs)
{
    struct agx_input *in;

    while ((in = AGX_LIST_TAKE(inputs, struct agx_input, node)))
        agx_input_free(in);
}

/* Copies a text of the backend, which may be long. */
static char *dup_text(const char *text)
{
    char *copy;

    if (!text)
        return NULL;
    copy = agx_str_dup(
        (struct agx_str){ text, (size_t)agx_text_cut(agx_str_from(text), AGX_FAILURE_TEXT_MAX) });
    if (!copy)
        abort();
    return copy;
}

void agx_unit_push(struct agx_unit *u, struct agx_input *take_input)
{
    take_input->unit = u;
    agx_list_push_back(&u->queue, &take_input->node);
    agx_unit_mark_dirty(u);
}

void agx_unit_report(struct agx_unit *u, const struct agx_sandbox_input *in)
{
    struct agx_input *input = agx_input_new(AGX_INPUT_SANDBOX);

    input->on = in->on;
    input->op = in->op;
    input->companion = in->companion;
    input->error_code = dup_text(in->error_code);
    input->error_message = dup_text(in->error_message);
    agx_unit_push(u, input);
}

void agx_unit_report_exec(struct agx_exec_unit *x, const struct agx_exec_input *in)
{
    struct agx_input *input = agx_input_new(AGX_INPUT_EXEC);

    input->exec_on = in->on;
    input->exit_code = in->exit_code;
    input->error_message = dup_text(in->error_message);
    input->exec = x;
    x->refs++;
    agx_unit_push(x->unit, input);
}

/* ---- execs ---- */

struct agx_exec_unit *agx_exec_unit_new(struct agx_unit *u, struct agx_exec *take_exec)
{
    struct agx_exec_unit *x = agx_new(struct agx_exec_unit);

    x->exec = *take_exec;
    *take_exec = (struct agx_exec){ 0 };
    x->unit = u;
    x->refs = 1;
    x->logs = (struct agx_log_fds)AGX_LOG_FDS_INIT;
    return x;
}

struct agx_exec_unit *agx_exec_unit_unref(struct agx_exec_unit *x)
{
    if (!x || --x->refs > 0)
        return NULL;
    agx_log_fds_close(&x->logs);
    agx_exec_done(&x->exec);
    free(x);
    return NULL;
}

void agx_exec_unit_hold(struct agx_exec_unit *x)
{
    if (agx_map_put(&x->unit->manager->execs, agx_str_from(x->exec.id), x, NULL) < 0)
        abort();
    agx_sorted_index_add(&x->unit->manager->exec_index, x);
    x->held = true;
    x->refs++;
    agx_list_push_front(&x->unit->execs, &x->node);
}

void agx_exec_unit_release(struct agx_exec_unit *x)
{
    struct agx_unit *u = x->unit;
    struct agx_manager *e = u->manager;
    struct agx_input *waiter;

    assert(x->held);
    agx_drive_exec_abandon(x);
    agx_alarms_clear(&e->alarms, &x->due);
    agx_uid_quota_drop(&e->uid_quota, x->uid, AGX_UID_QUOTA_EXECS, &x->counted);
    agx_sorted_index_remove(&e->exec_index, x);
    (void)agx_map_remove(&e->execs, agx_str_from(x->exec.id));
    agx_list_remove(&x->node);
    x->held = false;
    while ((waiter = AGX_LIST_TAKE(&x->waiters, struct agx_input, node)))
        agx_unit_push(waiter->unit, waiter);
    agx_exec_unit_unref(x);
}

/* ---- units ---- */

struct agx_unit *agx_unit_new(struct agx_manager *e, struct agx_sandbox *take_sandbox)
{
    struct agx_unit *u = agx_new(struct agx_unit);

    u->sandbox = *take_sandbox;
    *take_sandbox = (struct agx_sandbox){ 0 };
    u->manager = e;
    u->touched = e->looks;
    if (agx_map_put(&e->units, agx_str_from(u->sandbox.id), u, NULL) < 0)
        abort();
    return u;
}

void agx_unit_free(struct agx_unit *u)
{
    struct agx_exec_unit *x;
    struct agx_manager *e;

    if (!u)
        return;
    e = u->manager;
    assert(!u->commit);
    agx_list_remove(&u->dirty);
    agx_drive_abandon(u);
    agx_monitor_abandon(u);
    agx_alarms_clear(&e->alarms, &u->due);
    agx_alarms_clear(&e->alarms, &u->retry);
    while ((x = AGX_LIST_FIRST(&u->execs, struct agx_exec_unit, node)))
        agx_exec_unit_release(x);
    agx_input_free_all(&u->queue);
    agx_feed_group_end(&u->feeds);
    agx_uid_quota_drop(&e->uid_quota, u->sandbox.owner_uid, AGX_UID_QUOTA_SANDBOXES, &u->counted);
    agx_sorted_index_remove(&e->sandbox_index, &u->sandbox);
    (void)agx_map_remove(&e->units, agx_str_from(u->sandbox.id));
    free(u->companion_watches);
    agx_sandbox_done(&u->sandbox);
    free(u);
}

void agx_unit_bury(struct agx_unit *u)
{
    struct agx_manager *e = u->manager;
    struct agx_list queue = { 0 };
    struct agx_input *in;
    _cleanup_free_ char *id = agx_str_dup(agx_str_from(u->sandbox.id));

    if (!id)
        abort();
    agx_list_move(&queue, &u->queue);
    agx_unit_free(u);
    while ((in = AGX_LIST_TAKE(&queue, struct agx_input, node))) {
        if (in->spec)
            agx_accept_admit(e, in->uid, id, in->spec, in->answer, in->user);
        else if (in->answer && in->kind == AGX_INPUT_EXEC)
            agx_manager_refuse_later(e, in->answer, in->user, AGX_REASON_EXEC_NOT_FOUND,
                                     in->exec->exec.id);
        else if (in->answer)
            agx_manager_refuse_later(e, in->answer, in->user, AGX_REASON_SANDBOX_NOT_FOUND, id);
        agx_input_free(in);
    }
}

void agx_unit_mark_dirty(struct agx_unit *u)
{
    struct agx_manager *e = u->manager;

    if (agx_list_has(&u->dirty))
        return;
    agx_list_push_back(&e->dirty, &u->dirty);
    agx_manager_wake(e);
}

/* ---- steps ---- */

static int step_exec(struct agx_unit_commit *c, struct agx_exec_unit *x,
                     const struct agx_exec_input *in, enum agx_reason *ret_reason,
                     struct agx_error **err)
{
    struct agx_exec_output out;
    int r;

    agx_unit_commit_touch(c, x);
    r = agx_exec_step(&x->exec, &c->unit->sandbox, in, &out, err);
    *ret_reason = out.reason;
    if (r == 0)
        agx_unit_commit_take_exec(c, x, &out);
    return r;
}

/* This input ends all processes: the execs end before it, each with an event. */
static int end_execs(struct agx_unit_commit *c, const struct agx_sandbox_input *why,
                     struct agx_error **err)
{
    const bool died = why->on == AGX_ON_DIED;
    const struct agx_exec_input lost = {
        .on = AGX_EXEC_ON_LOST,
        .now = c->now,
        .exit_code = died ? AGX_EXEC_EXIT_UNKNOWN : AGX_EXEC_EXIT_KILLED,
        .error_message = died ? why->error_message : NULL,
    };
    enum agx_reason reason;

    AGX_LIST_FOR_EACH (struct agx_exec_unit, x, &c->unit->execs, node) {
        int r = x->exec.phase == AGX_EXEC_PHASE_ENDED ? 0 : step_exec(c, x, &lost, &reason, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int step_sandbox(struct agx_unit_commit *c, struct agx_input *in)
{
    const struct agx_sandbox_input input = { .on = in->on,
                                             .now = c->now,
                                             .op = in->op,
                                             .error_code = in->error_code,
                                             .error_message = in->error_message,
                                             .companion = in->companion };
    struct agx_sandbox_output out;
    int r = 0;

    if (agx_sandbox_ends_execs(&c->unit->sandbox, &input))
        r = end_execs(c, &input, &in->error);
    if (r < 0)
        return r;
    r = agx_sandbox_step(&c->unit->sandbox, &input, &out, &in->error);
    in->reason = out.reason;
    if (r == 0)
        agx_unit_commit_take(c, &out);
    return r;
}

static int unit_refuse(struct agx_input *in, enum agx_reason reason, const char *id)
{
    in->reason = reason;
    return agx_reason_error(reason, id, &in->error);
}

/* The checks of a new exec, in the order that clients rely on. 1: another create holds its id and
 * has to be settled first. */
static int check_exec(struct agx_unit_commit *c, struct agx_input *in)
{
    struct agx_manager *e = c->unit->manager;
    struct agx_exec_unit *x = in->exec, *other;
    struct agx_sandbox_output out;
    int r = agx_sandbox_step(&c->unit->sandbox,
                             &(struct agx_sandbox_input){ .on = AGX_ON_EXEC, .now = c->now }, &out,
                             &in->error);

    in->reason = out.reason;
    if (r < 0 || (r = agx_exec_check(&x->exec, &in->error)) < 0)
        return r;
    other = agx_map_get(&e->execs, agx_str_from(x->exec.id));
    if (other && !other->born) {
        agx_list_push_front(&other->waiters, &in->node);
        return 1;
    }
    r = other ? 1
              : agx_schema_is_reserved(e->config.store, AGX_TABLE_EXEC_IDS, x->exec.id, &in->error);
    if (r > 0)
        return unit_refuse(in, AGX_REASON_EXEC_ID_ALREADY_EXISTS, x->exec.id);
    if (r < 0 ||
        (r = agx_uid_quota_check(&e->uid_quota, x->uid, AGX_UID_QUOTA_EXECS, &in->error)) < 0)
        return r;
    r = agx_logs_create(&e->logs, x->exec.sandbox_id, x->exec.id, &x->logs, &in->error);
    return r < 0 ? agx_error_wrap(&in->error, r, "prepare exec artifact output") : 0;
}

/* 1: the input waits in another queue. */
static int step_exec_create(struct agx_unit_commit *c, struct agx_input *in)
{
    const struct agx_exec_input create = { .on = AGX_EXEC_ON_CREATE, .now = c->now };
    int r = check_exec(c, in);

    if (r != 0)
        return r;
    agx_exec_unit_hold(in->exec);
    agx_uid_quota_add(&c->unit->manager->uid_quota, in->exec->uid, AGX_UID_QUOTA_EXECS,
                      &in->exec->counted);
    r = step_exec(c, in->exec, &create, &in->reason, &in->error);
    if (r < 0) {
        in->exec->touched = false;
        agx_logs_remove(&c->unit->manager->logs, in->exec->exec.sandbox_id, in->exec->exec.id);
        agx_exec_unit_release(in->exec);
    }
    return r;
}

static int unit_step(struct agx_unit_commit *c, struct agx_input *in)
{
    const struct agx_exec_input exec_input = { .on = in->exec_on,
                                               .now = c->now,
                                               .exit_code = in->exit_code,
                                               .error_message = in->error_message };

    switch (in->kind) {
    case AGX_INPUT_EXEC:
        return step_exec(c, in->exec, &exec_input, &in->reason, &in->error);
    case AGX_INPUT_EXEC_CREATE:
        return step_exec_create(c, in);
    default:
        return step_sandbox(c, in);
    }
}

static void on_retry(struct agx_alarm *a)
{
    agx_unit_mark_dirty(container_of(a, struct agx_unit, retry));
}

void agx_unit_wait(struct agx_unit *u)
{
    const struct agx_manager_config *config = &u->manager->config;

    agx_manager_alarm(u->manager, &u->retry,
                      agx_backoff_ms(u->failures++, config->retry_first_ms, config->retry_max_ms),
                      on_retry);
}

/* No change could begin: refuses requests; other inputs wait. */
static void refuse_queue(struct agx_unit *u, struct agx_error *error)
{
    struct agx_list queue = { 0 };
    struct agx_input *in;

    agx_list_move(&queue, &u->queue);
    while ((in = AGX_LIST_TAKE(&queue, struct agx_input, node))) {
        if (in->answer) {
            struct agx_error *copy = agx_error_dup(error);

            agx_manager_answer_later(u->manager, in->answer, in->user, &copy, AGX_REASON_NONE,
                                     NULL);
            agx_input_free(in);
        } else {
            agx_list_push_back(&u->queue, &in->node);
        }
    }
    agx_error_free(error);
    if (!agx_list_is_empty(&u->queue))
        agx_unit_wait(u);
    else if (!u->born)
        agx_unit_free(u);
}

void agx_unit_pump(struct agx_unit *u)
{
    struct agx_error *error = NULL;
    struct agx_unit_commit *c = NULL;
    struct agx_input *in;

    if (u->commit || agx_list_is_empty(&u->queue))
        return;
    agx_alarms_clear(&u->manager->alarms, &u->retry);
    if (agx_unit_commit_begin(u, &c, &error) < 0) {
        refuse_queue(u, error);
        return;
    }
    while ((in = AGX_LIST_TAKE(&u->queue, struct agx_input, node))) {
        int r = unit_step(c, in);

        if (r > 0)
            continue; /* it waits for another create, and returns */
        if (r < 0 && !in->answer) {
            /* No memory to process a report: it keeps its place in the queue. */
            in->error = agx_error_free(in->error);
            agx_list_push_front(&u->queue, &in->node);
            agx_unit_wait(u);
            break;
        }
        agx_list_push_back(&c->inputs, &in->node);
    }
    agx_unit_commit_end(c);
}

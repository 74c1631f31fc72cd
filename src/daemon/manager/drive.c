/*
 * drive.c: operations on sandboxes.
 *
 *     start --> RUNS --deadline, cancel--> CANCELLED --abandon_ms--> given up: FAILED
 *               ^ |                            |
 *               | +---------- done ------------+--> DONE or FAILED
 *               | v
 *              BUSY   resumed after a restart while the backend still runs the former daemon's
 *                     request; or settle_ms are not over
 */
#include "daemon/manager/drive.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/monitor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

struct agx_operation {
    struct agx_unit *unit;
    enum agx_do verb;
    struct agx_backend_op *op;
    struct agx_alarm alarm; /* the deadline; after a cancel, when to give up */
    uint64_t started_ms;
    bool expired; /* it was cancelled at its deadline, not by a request */
    bool cancelled;
    bool carried_on;
    uint64_t progress_ms;   /* when its progress was last reported; 0: never */
    unsigned tries;         /* attempts that found the backend busy */
    struct agx_alarm again; /* BUSY, and `op` is NULL: the first or next attempt */
};

static uint64_t deadline_of(const struct agx_manager_config *c, enum agx_do verb)
{
    switch (verb) {
    case AGX_DO_CREATE:
        return c->create_ms;
    case AGX_DO_RESUME:
    case AGX_DO_REVIVE:
        return c->resume_ms;
    case AGX_DO_DELETE:
        return c->delete_ms;
    default:
        return c->stop_ms;
    }
}

/* Ends the operation: its unit has none afterwards. */
static void operation_free(struct agx_operation *o)
{
    struct agx_manager *e = o->unit->manager;

    agx_alarms_clear(&e->alarms, &o->alarm);
    agx_alarms_clear(&e->alarms, &o->again);
    o->unit->operation = NULL;
    e->operations--;
    free(o);
}

static void report_failure(struct agx_unit *u, enum agx_do verb, const char *message)
{
    AGX_LOG(AGX_LOG_WARN, "sandbox.operation_failed", AGX_F_STR("sandbox", u->sandbox.id),
            AGX_F_STR("operation", agx_do_name(verb)), AGX_F_STR("error", message));
    agx_unit_report(u, &(struct agx_sandbox_input){
                           .on = AGX_ON_FAILED, .op = verb, .error_message = message });
}

static void on_begun(void *user)
{
    struct agx_operation *o = user;

    agx_unit_report(o->unit, &(struct agx_sandbox_input){ .on = AGX_ON_BEGUN, .op = o->verb });
}

static void on_companion(void *user, size_t companion, struct agx_error *error)
{
    struct agx_operation *o = user;
    char text[AGX_FAILURE_TEXT_MAX];

    agx_unit_report(
        o->unit, &(struct agx_sandbox_input){
                     .on = error ? AGX_ON_COMPANION_FAILED : AGX_ON_COMPANION_READY,
                     .companion = companion,
                     .error_message = error ? agx_error_format(error, text, sizeof(text)) : NULL });
    agx_error_free(error);
}

static void on_progress(void *user, const struct agx_pull *pull)
{
    struct agx_operation *o = user;
    struct agx_manager *e = o->unit->manager;
    uint64_t now = uv_now(agx_loop_uv(e->loop));
    bool whole = pull->layers_total > 0 && pull->layers_done == pull->layers_total;

    if (o->progress_ms != 0 && now - o->progress_ms < AGX_PROGRESS_MS && !whole)
        return;
    o->progress_ms = now;
    agx_feeds_pull(&e->feeds, o->unit->sandbox.id, pull);
}

static void on_again(struct agx_alarm *a);

/* No backend call is under way; the deadline stays set. */
static void wait_for_backend(struct agx_operation *o, struct agx_error *error)
{
    struct agx_manager *e = o->unit->manager;

    AGX_LOG(AGX_LOG_INFO, "sandbox.operation_waits", AGX_F_STR("sandbox", o->unit->sandbox.id),
            AGX_F_STR("operation", agx_do_name(o->verb)), AGX_F_ERR(error));
    agx_error_free(error);
    o->op = NULL;
    o->unit->former_runs = true;
    agx_manager_alarm(e, &o->again,
                      agx_backoff_ms(o->tries++, e->config.retry_first_ms, e->config.retry_max_ms),
                      on_again);
}

static void on_done(void *user, struct agx_error *error)
{
    struct agx_operation *o = user;
    struct agx_unit *u = o->unit;
    enum agx_do verb = o->verb;
    char text[AGX_FAILURE_TEXT_MAX];

    if (error && error->code == AGX_UNAVAILABLE && o->carried_on && !o->cancelled) {
        wait_for_backend(o, error);
        return;
    }
    u->former_runs = false;
    if (!error) {
        agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_DONE, .op = verb });
    } else {
        if (o->expired)
            (void)agx_error_wrap(&error, -AGX_DEADLINE_EXCEEDED,
                                 "%s was cancelled after %" PRIu64 " ms", agx_do_name(verb),
                                 deadline_of(&u->manager->config, verb));
        report_failure(u, verb, agx_error_format(error, text, sizeof(text)));
        agx_error_free(error);
    }
    operation_free(o);
    if (verb == AGX_DO_REVIVE)
        agx_monitor_unit(u, u->manager->config.watch.first_retry_ms);
}

static const struct agx_backend_hooks hooks = {
    .begun = on_begun, .companion = on_companion, .progress = on_progress, .done = on_done
};

static void on_given_up(struct agx_alarm *a)
{
    struct agx_operation *o = container_of(a, struct agx_operation, alarm);
    struct agx_unit *u = o->unit;
    enum agx_do verb = o->verb;
    char text[200];

    (void)snprintf(text, sizeof(text),
                   "the backend hung in %s: given up after %" PRIu64 " ms, %" PRIu64
                   " ms after it was cancelled",
                   agx_do_name(verb), uv_now(agx_loop_uv(u->manager->loop)) - o->started_ms,
                   u->manager->config.abandon_ms);
    agx_backend_abandon(o->op);
    u->manager->abandoned++;
    operation_free(o);
    report_failure(u, verb, text);
}

/* Ends it while no backend call is under way. */
static void end_wait(struct agx_operation *o)
{
    struct agx_unit *u = o->unit;
    enum agx_do verb = o->verb;
    const char *text = o->expired ? "the backend was busy until the deadline" : "cancelled";

    operation_free(o);
    report_failure(u, verb, text);
}

static void drive_cancel(struct agx_operation *o)
{
    struct agx_manager *e = o->unit->manager;

    if (!o->op) {
        end_wait(o);
        return;
    }
    o->cancelled = true;
    /* The alarm comes first: the backend may answer at once. */
    agx_manager_alarm(e, &o->alarm, e->config.abandon_ms, on_given_up);
    agx_backend_cancel(o->op);
}

static void on_deadline(struct agx_alarm *a)
{
    struct agx_operation *o = container_of(a, struct agx_operation, alarm);

    o->expired = true;
    drive_cancel(o);
}

/* Calls the backend; ends the operation when the call cannot be made. */
static void try_once(struct agx_operation *o)
{
    struct agx_unit *u = o->unit;
    struct agx_manager *e = u->manager;
    const struct agx_backend_request q = { .verb = o->verb,
                                           .sandbox = &u->sandbox,
                                           .grace_ms = e->config.stop_grace_ms };
    struct agx_error *error = NULL;
    enum agx_do verb = o->verb;
    char text[AGX_FAILURE_TEXT_MAX];

    if (agx_backend_start(e->config.backend, &q, &hooks, o, &o->op, &error) == 0)
        return;
    operation_free(o);
    report_failure(u, verb, agx_error_format(error, text, sizeof(text)));
    agx_error_free(error);
}

static void on_again(struct agx_alarm *a)
{
    try_once(container_of(a, struct agx_operation, again));
}

static void drive_start(struct agx_unit *u, enum agx_do verb, bool carried_on)
{
    struct agx_manager *e = u->manager;
    struct agx_operation *o = agx_new(struct agx_operation);

    assert(!u->operation);
    u->operation = o;
    e->operations++;
    *o = (struct agx_operation){ .unit = u,
                                 .verb = verb,
                                 .started_ms = uv_now(agx_loop_uv(e->loop)),
                                 .carried_on = carried_on || u->former_runs };
    agx_manager_alarm(e, &o->alarm, deadline_of(&e->config, verb), on_deadline);
    if (e->config.settle_ms > 0 && !o->carried_on && verb != AGX_DO_REVIVE && verb != AGX_DO_HALT)
        agx_manager_alarm(e, &o->again, e->config.settle_ms, on_again);
    else
        try_once(o);
}

void agx_drive_start(struct agx_unit *u, enum agx_do verb)
{
    drive_start(u, verb, false);
}

void agx_drive_carry_on(struct agx_unit *u, enum agx_do verb)
{
    drive_start(u, verb, true);
}

void agx_drive_cancel(struct agx_unit *u)
{
    /* It may have ended: its report is in the queue. */
    if (u->operation)
        drive_cancel(u->operation);
}

void agx_drive_abandon(struct agx_unit *u)
{
    if (!u->operation)
        return;
    if (u->operation->op)
        agx_backend_abandon(u->operation->op);
    operation_free(u->operation);
}

/* ---- removals and kills without a waiter ---- */

struct agx_removal {
    struct agx_list_node node;
    struct agx_manager *manager;
    char *id; /* of the sandbox or exec */
    struct agx_backend_op *op;
    struct agx_alarm alarm;
};

static struct agx_removal *removal_new(struct agx_manager *e, const char *id)
{
    struct agx_removal *r = agx_new(struct agx_removal);

    r->manager = e;
    r->id = agx_str_dup(agx_str_from(id));
    if (!r->id)
        abort();
    agx_list_push_front(&e->removals, &r->node);
    return r;
}

static void removal_free(struct agx_removal *r)
{
    agx_list_remove(&r->node);
    agx_alarms_clear(&r->manager->alarms, &r->alarm);
    free(r->id);
    free(r);
}

static void on_removed(void *user, struct agx_error *error)
{
    struct agx_removal *r = user;

    if (error)
        AGX_LOG(AGX_LOG_WARN, "backend.left_over", AGX_F_STR("id", r->id), AGX_F_ERR(error));
    else
        AGX_LOG(AGX_LOG_INFO, "backend.removed", AGX_F_STR("id", r->id));
    agx_error_free(error);
    removal_free(r);
}

static void on_removal_hung(struct agx_alarm *a)
{
    struct agx_removal *r = container_of(a, struct agx_removal, alarm);
    struct agx_error *error = NULL;

    agx_backend_abandon(r->op);
    r->manager->abandoned++;
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED, "the backend hung");
    on_removed(r, error);
}

void agx_drive_remove(struct agx_manager *e, const struct agx_sandbox *sb)
{
    static const struct agx_backend_hooks removal_hooks = { .done = on_removed };
    const struct agx_backend_request q = { .verb = AGX_DO_DELETE, .sandbox = sb };
    struct agx_removal *r = removal_new(e, sb->id);
    struct agx_error *error = NULL;

    if (agx_backend_start(e->config.backend, &q, &removal_hooks, r, &r->op, &error) < 0)
        on_removed(r, error);
    else
        agx_manager_alarm(e, &r->alarm, e->config.delete_ms, on_removal_hung);
}

void agx_drive_kill_lost(struct agx_manager *e, const struct agx_exec *exec)
{
    struct agx_removal *r = removal_new(e, exec->id);
    struct agx_error *error = NULL;

    if (agx_backend_exec_kill(e->config.backend, exec->sandbox_id, exec->id,
                              e->config.exec_grace_ms, on_removed, r, &r->op, &error) < 0)
        on_removed(r, error);
    else
        agx_manager_alarm(e, &r->alarm, e->config.exec_grace_ms + e->config.exec_start_ms,
                          on_removal_hung);
}

void agx_drive_close(struct agx_manager *e)
{
    struct agx_removal *r;

    while ((r = AGX_LIST_FIRST(&e->removals, struct agx_removal, node))) {
        agx_backend_abandon(r->op);
        removal_free(r);
    }
    agx_drive_close_writes(e);
}

/*
 * drive_exec.c: commands at the backend.
 *
 * A start or an adoption is one call that lives until the command's end. A kill is a second call
 * beside it. The first of the two that reports the end counts; core ignores the other.
 */
#include "daemon/manager/drive.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/manager/manager_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/banned.h"

static void report(struct agx_exec_unit *x, enum agx_exec_on on, int32_t exit_code,
                   struct agx_error *error)
{
    char text[AGX_FAILURE_TEXT_MAX];

    agx_unit_report_exec(
        x, &(struct agx_exec_input){
               .on = on,
               .exit_code = exit_code,
               .error_message = error ? agx_error_format(error, text, sizeof(text)) : NULL });
    agx_error_free(error);
}

/* ---- start and adoption ---- */

static void start_or_adopt(struct agx_exec_unit *x, bool adopt);

/* Ends the call and clears the alarm that guards its start. */
static void start_ended(struct agx_exec_unit *x)
{
    agx_alarms_clear(&x->unit->manager->alarms, &x->guard);
    x->op = NULL;
}

static void on_begun(void *user)
{
    struct agx_exec_unit *x = user;

    agx_alarms_clear(&x->unit->manager->alarms, &x->guard);
    x->tries = 0;
    report(x, AGX_EXEC_ON_BEGUN, 0, NULL);
}

static void on_refused(void *user, struct agx_error *error)
{
    struct agx_exec_unit *x = user;

    start_ended(x);
    report(x, AGX_EXEC_ON_REFUSED, 0, error);
}

static void on_unknown(void *user)
{
    start_ended(user);
    report(user, AGX_EXEC_ON_UNKNOWN, 0, NULL);
}

static void on_exited(void *user, int32_t exit_code)
{
    start_ended(user);
    report(user, AGX_EXEC_ON_EXITED, exit_code, NULL);
}

static void on_lost(void *user, struct agx_error *error)
{
    start_ended(user);
    report(user, AGX_EXEC_ON_LOST, AGX_EXEC_EXIT_UNKNOWN, error);
}

static const struct agx_backend_exec_hooks hooks = { .begun = on_begun,
                                                     .refused = on_refused,
                                                     .unknown = on_unknown,
                                                     .exited = on_exited,
                                                     .lost = on_lost };

static void on_adopt_again(struct agx_alarm *a)
{
    start_or_adopt(container_of(a, struct agx_exec_unit, guard), true);
}

/* Whether the command runs is not known: asks again later. */
static void adopt_later(struct agx_exec_unit *x)
{
    const struct agx_manager_config *c = &x->unit->manager->config;

    agx_manager_alarm(x->unit->manager, &x->guard,
                      agx_backoff_ms(x->tries++, c->retry_first_ms, c->retry_max_ms),
                      on_adopt_again);
}

static void on_start_hung(struct agx_alarm *a)
{
    struct agx_exec_unit *x = container_of(a, struct agx_exec_unit, guard);
    struct agx_manager *e = x->unit->manager;
    struct agx_error *error = NULL;

    agx_backend_abandon(x->op);
    x->op = NULL;
    e->abandoned++;
    if (x->exec.running == AGX_EXEC_DO_ADOPT) {
        adopt_later(x);
        return;
    }
    agx_drive_kill_lost(e, &x->exec);
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED,
                        "the backend hung in the start of a command: given up after %" PRIu64 " ms",
                        e->config.exec_start_ms);
    report(x, AGX_EXEC_ON_REFUSED, 0, error);
}

static struct agx_backend_log log_of(const struct agx_manager_config *c, const int fds[2])
{
    return (struct agx_backend_log){ .data_fd = fds[0],
                                     .index_fd = fds[1],
                                     .head_max = c->log_head_max,
                                     .tail_max = c->log_tail_max };
}

static int call_backend(struct agx_exec_unit *x, bool adopt, struct agx_error **err)
{
    struct agx_manager *e = x->unit->manager;
    struct agx_backend_exec q = { .sandbox = &x->unit->sandbox,
                                  .exec = &x->exec,
                                  .stdin_open = x->stdin_open };
    int r = 0;

    if (x->logs.out[0] < 0) /* started by an earlier daemon */
        r = agx_logs_reopen(&e->logs, x->exec.sandbox_id, x->exec.id, &x->logs, err);
    if (r < 0)
        return r;
    q.out = log_of(&e->config, x->logs.out);
    q.err = log_of(&e->config, x->logs.err);
    r = agx_backend_exec_start(e->config.backend, &q, adopt, &hooks, x, &x->op, err);
    agx_log_fds_close(&x->logs);
    return r;
}

static void start_or_adopt(struct agx_exec_unit *x, bool adopt)
{
    struct agx_error *error = NULL;

    if (call_backend(x, adopt, &error) == 0) {
        agx_manager_alarm(x->unit->manager, &x->guard, x->unit->manager->config.exec_start_ms,
                          on_start_hung);
    } else if (adopt) {
        AGX_LOG(AGX_LOG_WARN, "exec.not_adopted", AGX_F_STR("exec", x->exec.id), AGX_F_ERR(error));
        agx_error_free(error);
        adopt_later(x);
    } else {
        report(x, AGX_EXEC_ON_REFUSED, 0, error);
    }
}

/* ---- kill ---- */

static void on_kill_again(struct agx_alarm *a)
{
    report(container_of(a, struct agx_exec_unit, again), AGX_EXEC_ON_KILL_FAILED, 0, NULL);
}

/* Takes the error. */
static void kill_later(struct agx_exec_unit *x, struct agx_error *error)
{
    const struct agx_manager_config *c = &x->unit->manager->config;

    AGX_LOG(AGX_LOG_WARN, "exec.kill_failed", AGX_F_STR("exec", x->exec.id), AGX_F_ERR(error));
    agx_error_free(error);
    agx_manager_alarm(x->unit->manager, &x->again,
                      agx_backoff_ms(x->tries++, c->retry_first_ms, c->retry_max_ms),
                      on_kill_again);
}

static void on_gone(void *user, struct agx_error *error)
{
    struct agx_exec_unit *x = user;

    agx_alarms_clear(&x->unit->manager->alarms, &x->again);
    x->kill = NULL;
    if (error)
        kill_later(x, error);
    else
        report(x, AGX_EXEC_ON_GONE, 0, NULL);
}

static void on_kill_hung(struct agx_alarm *a)
{
    struct agx_exec_unit *x = container_of(a, struct agx_exec_unit, again);
    struct agx_error *error = NULL;

    agx_backend_abandon(x->kill);
    x->kill = NULL;
    x->unit->manager->abandoned++;
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED, "the backend hung in a kill");
    kill_later(x, error);
}

static void start_kill(struct agx_exec_unit *x)
{
    struct agx_manager *e = x->unit->manager;
    struct agx_error *error = NULL;

    if (agx_backend_exec_kill(e->config.backend, x->exec.sandbox_id, x->exec.id,
                              e->config.exec_grace_ms, on_gone, x, &x->kill, &error) < 0)
        kill_later(x, error);
    else
        agx_manager_alarm(e, &x->again, e->config.exec_grace_ms + e->config.exec_start_ms,
                          on_kill_hung);
}

void agx_drive_exec_start(struct agx_exec_unit *x, enum agx_exec_do what)
{
    if (what == AGX_EXEC_DO_KILL)
        start_kill(x);
    else
        start_or_adopt(x, what == AGX_EXEC_DO_ADOPT);
}

void agx_drive_exec_forget(struct agx_exec_unit *x)
{
    struct agx_error *error = NULL;

    agx_drive_exec_abandon(x);
    if (agx_backend_forget_exec(x->unit->manager->config.backend, x->exec.sandbox_id, x->exec.id,
                                &error) < 0)
        AGX_LOG(AGX_LOG_DEBUG, "exec.not_forgotten", AGX_F_STR("exec", x->exec.id),
                AGX_F_ERR(error));
    agx_error_free(error);
}

void agx_drive_exec_abandon(struct agx_exec_unit *x)
{
    struct agx_manager *e = x->unit->manager;

    agx_alarms_clear(&e->alarms, &x->guard);
    agx_alarms_clear(&e->alarms, &x->again);
    if (x->op)
        agx_backend_abandon(x->op);
    if (x->kill)
        agx_backend_abandon(x->kill);
    x->op = x->kill = NULL;
}

/* ---- input ---- */

struct agx_write {
    struct agx_list_node node;
    struct agx_manager *manager;
    struct agx_backend_op *op;
    agx_done_fn taken;
    void *user;
};

/* Takes the error. */
static void write_end(struct agx_write *w, struct agx_error *error)
{
    agx_list_remove(&w->node);
    w->taken(w->user, error);
    free(w);
}

static void on_taken(void *user, struct agx_error *error)
{
    write_end(user, error);
}

int agx_manager_exec_write(struct agx_manager *e, const char *exec_id, struct agx_str data,
                           bool eof, agx_done_fn taken, void *user, struct agx_error **err)
{
    const struct agx_exec_unit *x = agx_map_get(&e->execs, agx_str_from(exec_id));
    enum agx_reason reason;
    struct agx_write *w;
    int r;

    agx_loop_assert(e->loop);
    if (!x || !x->born)
        return agx_manager_refuse_exec(e, exec_id, &reason, err);
    if (e->closing)
        return agx_error_set(err, AGX_UNAVAILABLE, "the daemon is stopping");
    w = agx_new(struct agx_write);
    *w = (struct agx_write){ .manager = e, .taken = taken, .user = user };
    r = agx_backend_exec_write(e->config.backend, x->exec.sandbox_id, exec_id, data, eof, on_taken,
                               w, &w->op, err);
    if (r < 0) {
        free(w);
        return r;
    }
    agx_list_push_front(&e->writes, &w->node);
    return 0;
}

void agx_drive_close_writes(struct agx_manager *e)
{
    struct agx_write *w;

    while ((w = AGX_LIST_FIRST(&e->writes, struct agx_write, node))) {
        struct agx_error *error = NULL;

        agx_backend_abandon(w->op);
        (void)agx_error_set(&error, AGX_UNAVAILABLE, "the daemon is stopping");
        write_end(w, error);
    }
}

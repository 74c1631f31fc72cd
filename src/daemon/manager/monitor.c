/*
 * monitor.c: one look at a time at each sandbox, and one at all sandboxes together.
 *
 * Looks are numbered when they begin. A look does not judge a unit that changed after that
 * (u->touched), since the backend may have answered before the change. An unsettled unit (with a
 * commit or operation in flight) is not judged either, but looked at again soon: when it is READY.
 */
#include "daemon/manager/monitor.h"

#include "base/log.h"
#include "base/mem.h"
#include "daemon/manager/manager_internal.h"
#include "daemon/manager/recovery.h"

#include <assert.h>

#include "base/banned.h"

struct agx_look {
    struct agx_manager *manager;
    struct agx_unit *unit; /* NULL: all sandboxes */
    struct agx_backend_op *op;
    struct agx_alarm alarm;
    uint64_t number;
};

static void look_at_all(struct agx_manager *e);

static bool is_unsettled(const struct agx_unit *u)
{
    return u->commit || !agx_list_is_empty(&u->queue) || u->operation ||
           u->sandbox.life.running != AGX_DO_NONE;
}

static void die(struct agx_unit *u, const struct agx_watch_verdict *v)
{
    agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_DIED,
                                                    .error_code = v->error_code,
                                                    .error_message = v->error_message });
}

/* Acts on the verdict for the main process or a companion: looks again later, or starts it. */
static void monitor_follow(struct agx_unit *u, const struct agx_watch_verdict *v, uint64_t now_ms)
{
    if (v->action == AGX_WATCH_WAIT)
        agx_monitor_unit(u, v->at_ms > now_ms ? v->at_ms - now_ms : 1);
    else if (v->action == AGX_WATCH_REVIVE)
        agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_REVIVE });
}

static void judge_companions(struct agx_unit *u, const struct agx_backend_seen *seen,
                             uint64_t now_ms)
{
    const struct agx_life *l = &u->sandbox.life;
    size_t n = AGX_MIN(seen->companions_len, l->companions_len);

    if (n > 0 && !u->companion_watches) {
        u->companion_watches = calloc(l->companions_len, sizeof(*u->companion_watches));
        if (!u->companion_watches)
            abort();
    }
    for (size_t i = 0; i < n; i++) {
        struct agx_watch_verdict v =
            agx_watch_look(&u->companion_watches[i], &u->manager->config.watch,
                           (enum agx_seen)seen->companions[i], false, now_ms);
        struct agx_sandbox_input in = { .on = AGX_ON_COMPANION_FAILED,
                                        .companion = i,
                                        .error_code = v.error_code,
                                        .error_message = v.error_message };

        if (v.action == AGX_WATCH_FAIL) {
            agx_unit_report(u, &in);
        } else if (seen->companions[i] == AGX_SEEN_RUNNING &&
                   l->companions[i] != AGX_COMPANION_READY) {
            in.on = AGX_ON_COMPANION_READY;
            agx_unit_report(u, &in);
        } else {
            monitor_follow(u, &v, now_ms);
        }
    }
}

static bool all_run(const struct agx_backend_seen *seen)
{
    bool run = seen->primary == AGX_SEEN_RUNNING;

    for (size_t i = 0; i < seen->companions_len; i++)
        run = run && seen->companions[i] == AGX_SEEN_RUNNING;
    return run;
}

static void monitor_judge(struct agx_unit *u, const struct agx_backend_seen *seen, uint64_t number)
{
    const uint64_t now_ms = uv_now(agx_loop_uv(u->manager->loop));
    struct agx_watch_verdict v;

    u->seen = number;
    if (u->touched >= number || is_unsettled(u)) {
        if (all_run(seen))
            return;
        if (u->sandbox.life.phase == AGX_PHASE_READY)
            agx_monitor_unit(u, u->manager->config.watch.first_retry_ms);
        else
            u->down_early = true;
        return;
    }
    if (!u->reconciled) {
        agx_recovery_judge(u, seen);
        return;
    }
    if (u->sandbox.life.phase != AGX_PHASE_READY)
        return;
    v = agx_watch_look(&u->watch, &u->manager->config.watch, seen->primary, true, now_ms);
    if (v.action == AGX_WATCH_FAIL) {
        die(u, &v);
        return;
    }
    monitor_follow(u, &v, now_ms);
    if (v.action == AGX_WATCH_NONE)
        judge_companions(u, seen, now_ms);
}

/* ---- looks ---- */

static void on_seen(void *user, const struct agx_backend_seen *seen)
{
    const struct agx_look *look = user;
    struct agx_unit *u = agx_map_get(&look->manager->units, agx_str_from(seen->sandbox_id));

    if (u && u->born)
        monitor_judge(u, seen, look->number);
    else if (!u && !look->unit) /* a record exists before its sandbox, and longer */
        agx_recovery_orphan(look->manager, seen->sandbox_id);
}

static void look_free(struct agx_look *look)
{
    agx_alarms_clear(&look->manager->alarms, &look->alarm);
    if (look->unit)
        look->unit->look = NULL;
    else
        look->manager->look = NULL;
    free(look);
}

/* Judges the sandboxes that a look at all did not find. */
static void judge_missing(struct agx_manager *e, uint64_t number)
{
    const struct agx_backend_seen none = { .primary = AGX_SEEN_MISSING };
    void *value;

    for (size_t at = 0; agx_map_next(&e->units, &at, NULL, &value);) {
        struct agx_unit *u = value;

        if (u->born && u->seen < number)
            monitor_judge(u, &none, number);
    }
}

static void on_look_due(struct agx_alarm *a)
{
    look_at_all(container_of(a, struct agx_manager, look_due));
}

static void schedule(struct agx_manager *e)
{
    uint64_t ms = e->look_again ? 1 : e->config.look_ms;

    if (e->look_failures > 0)
        ms = AGX_MIN(ms, agx_backoff_ms(e->look_failures - 1, e->config.retry_first_ms,
                                        e->config.retry_max_ms));
    agx_manager_alarm(e, &e->look_due, AGX_MAX(ms, 1), on_look_due);
}

/* Takes the error. */
static void look_failed(struct agx_manager *e, struct agx_error *error)
{
    if (e->look_failures++ == 0)
        AGX_LOG(AGX_LOG_WARN, "backend.no_answer", AGX_F_ERR(error));
    agx_error_free(error);
    schedule(e);
}

static void all_looked(struct agx_manager *e, uint64_t number, struct agx_error *error)
{
    if (error) {
        look_failed(e, error);
        return;
    }
    if (e->look_failures > 0)
        AGX_LOG(AGX_LOG_INFO, "backend.answers");
    e->look_failures = 0;
    judge_missing(e, number);
    if (!e->recovered)
        AGX_LOG(AGX_LOG_INFO, "manager.recovered", AGX_F_UINT("sandboxes", e->units.len));
    e->recovered = true;
    schedule(e);
}

static void on_looked(void *user, struct agx_error *error)
{
    struct agx_look *look = user;
    struct agx_manager *e = look->manager;
    struct agx_unit *u = look->unit;
    uint64_t number = look->number;

    look_free(look);
    if (!u) {
        all_looked(e, number, error);
        return;
    }
    if (!error && u->seen < number)
        monitor_judge(u, &(struct agx_backend_seen){ .primary = AGX_SEEN_MISSING }, number);
    agx_error_free(error); /* the next look at all sandboxes will report it */
}

static void on_look_hung(struct agx_alarm *a)
{
    struct agx_look *look = container_of(a, struct agx_look, alarm);
    struct agx_error *error = NULL;

    agx_backend_abandon(look->op);
    look->manager->abandoned++;
    (void)agx_error_set(&error, AGX_DEADLINE_EXCEEDED, "the backend hung in a look");
    on_looked(look, error);
}

static void look(struct agx_manager *e, struct agx_unit *u)
{
    struct agx_look *look = agx_new(struct agx_look);
    struct agx_error *error = NULL;

    *look = (struct agx_look){ .manager = e, .unit = u, .number = ++e->looks };
    if (u)
        u->look = look;
    else
        e->look = look;
    if (agx_backend_look(e->config.backend, u ? u->sandbox.id : NULL, on_seen, on_looked, look,
                         &look->op, &error) < 0)
        on_looked(look, error);
    else
        agx_manager_alarm(e, &look->alarm, e->config.look_deadline_ms, on_look_hung);
}

static void look_at_all(struct agx_manager *e)
{
    assert(!e->look);
    e->look_again = false;
    look(e, NULL);
}

static void on_look_again(struct agx_alarm *a)
{
    struct agx_unit *u = container_of(a, struct agx_unit, again);

    /* The backend may have answered the running look before this event. */
    if (u->look)
        agx_monitor_unit(u, u->manager->config.watch.first_retry_ms);
    else
        look(u->manager, u);
}

void agx_monitor_unit(struct agx_unit *u, uint64_t ms)
{
    if (!u->manager->closing)
        agx_manager_alarm(u->manager, &u->again, AGX_MAX(ms, 1), on_look_again);
}

void agx_monitor_reset(struct agx_unit *u)
{
    u->watch = (struct agx_watch){ 0 };
    if (u->companion_watches)
        memset(u->companion_watches, 0,
               u->sandbox.life.companions_len * sizeof(*u->companion_watches));
    if (u->down_early && u->sandbox.life.phase == AGX_PHASE_READY)
        agx_monitor_unit(u, u->manager->config.watch.first_retry_ms);
    u->down_early = false;
}

static void on_news(void *user, const char *sandbox_id)
{
    struct agx_manager *e = user;
    struct agx_unit *u = sandbox_id ? agx_map_get(&e->units, agx_str_from(sandbox_id)) : NULL;

    if (u && u->born)
        agx_monitor_unit(u, 1);
    else if (!sandbox_id && e->look)
        e->look_again = true; /* the backend may have answered the running look already */
    else if (!sandbox_id)
        agx_manager_alarm(e, &e->look_due, 1, on_look_due);
}

void agx_monitor_start(struct agx_manager *e)
{
    e->config.backend->news = on_news;
    e->config.backend->news_user = e;
    look_at_all(e);
}

void agx_monitor_abandon(struct agx_unit *u)
{
    agx_alarms_clear(&u->manager->alarms, &u->again);
    if (!u->look)
        return;
    agx_backend_abandon(u->look->op);
    look_free(u->look);
}

void agx_monitor_close(struct agx_manager *e)
{
    e->config.backend->news = NULL;
    agx_alarms_clear(&e->alarms, &e->look_due);
    if (!e->look)
        return;
    agx_backend_abandon(e->look->op);
    look_free(e->look);
}

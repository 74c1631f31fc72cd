/*
 * timers.c: each unit has one alarm, set to what is due next, in one heap for all (alarms.h), so
 * nothing is scanned. Idle and clean-up times are rounded up to multiples of sweep_ms, so that many
 * of them wake the daemon once.
 */
#include "daemon/manager/timers.h"

#include "daemon/manager/manager_internal.h"

#include "base/banned.h"

/* How often a purge waits for readers that have not read all events of the sandbox. */
#define PURGE_WAITS_MAX 30

static void on_due(struct agx_alarm *a);

/* Sets the alarm, rounded up so that many alarms fall together. */
static void set_due(struct agx_unit *u, uint64_t left_ns)
{
    struct agx_manager *e = u->manager;
    uint64_t now = uv_now(agx_loop_uv(e->loop)), sweep = AGX_MAX(e->config.sweep_ms, 1);
    uint64_t at = now + AGX_MIN(left_ns, (uint64_t)INT64_MAX) / 1000000 + 1;

    at += sweep - 1 - (at - 1) % sweep;
    agx_manager_alarm(e, &u->due, at - now, on_due);
}

static void on_due(struct agx_alarm *a)
{
    struct agx_unit *u = container_of(a, struct agx_unit, due);
    const struct agx_manager_config *c = &u->manager->config;
    const struct agx_stamp now = agx_manager_now(u->manager);

    if (u->commit || !agx_list_is_empty(&u->queue)) {
        return; /* set again after the commit */
    }
    if (agx_sandbox_idle_left_ns(&u->sandbox, c->idle_ttl_ns, &now) == 0) {
        agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_IDLE });
    } else if (agx_sandbox_cleanup_left_ns(&u->sandbox, c->cleanup_ttl_ns, &now) > 0) {
        agx_timers_schedule(u);
    } else if (u->sandbox.life.phase == AGX_PHASE_DELETED &&
               agx_feed_group_lags(&u->feeds, u->sandbox.life.last_sequence) &&
               u->purge_waits++ < PURGE_WAITS_MAX) {
        set_due(u, 0); /* a purge removes its events: let readers finish first */
    } else {
        agx_unit_report(u, &(struct agx_sandbox_input){ .on = AGX_ON_CLEANUP });
    }
}

void agx_timers_schedule(struct agx_unit *u)
{
    const struct agx_manager_config *c = &u->manager->config;
    const struct agx_stamp now = agx_manager_now(u->manager);
    uint64_t idle = agx_sandbox_idle_left_ns(&u->sandbox, c->idle_ttl_ns, &now);
    uint64_t cleanup = agx_sandbox_cleanup_left_ns(&u->sandbox, c->cleanup_ttl_ns, &now);

    if (idle == AGX_LEFT_NEVER && cleanup == AGX_LEFT_NEVER)
        agx_alarms_clear(&u->manager->alarms, &u->due);
    else
        set_due(u, AGX_MIN(idle, cleanup));
}

static void on_exec_due(struct agx_alarm *a)
{
    struct agx_exec_unit *x = container_of(a, struct agx_exec_unit, due);
    const struct agx_stamp now = agx_manager_now(x->unit->manager);

    if (agx_exec_deadline_left_ns(&x->exec, &now) > 0)
        agx_timers_schedule_exec(x); /* the alarm was early: the loop's clock was ahead */
    else
        agx_unit_report_exec(x, &(struct agx_exec_input){ .on = AGX_EXEC_ON_DEADLINE });
}

void agx_timers_schedule_exec(struct agx_exec_unit *x)
{
    struct agx_manager *e = x->unit->manager;
    const struct agx_stamp now = agx_manager_now(e);
    uint64_t left = agx_exec_deadline_left_ns(&x->exec, &now);

    if (left == AGX_LEFT_NEVER)
        agx_alarms_clear(&e->alarms, &x->due);
    else
        agx_manager_alarm(e, &x->due, left / 1000000 + 1, on_exec_due);
}

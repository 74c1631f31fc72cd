/* reconcile.c: the table of recovery, and the crash-loop rule. */
#include "core/reconcile.h"

#include "base/banned.h"

/* clang-format off */
#define EACH(what) { \
    [AGX_SEEN_UNKNOWN] = (what), [AGX_SEEN_MISSING] = (what), [AGX_SEEN_EXITED] = (what), \
    [AGX_SEEN_OOM] = (what), [AGX_SEEN_PAUSED] = (what), [AGX_SEEN_RUNNING] = (what) }
/* clang-format on */

static const enum agx_recovery recovery[AGX_PHASE_COUNT][AGX_SEEN_COUNT] = {
    /* Objects with our mark but no record: from a create whose record was never stored. */
    [AGX_PHASE_ABSENT] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_OOM] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_REMOVE,
    },
    [AGX_PHASE_CREATING] = EACH(AGX_RECOVERY_CARRY_ON),
    [AGX_PHASE_RESUMING] = EACH(AGX_RECOVERY_CARRY_ON),
    [AGX_PHASE_READY] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_WAIT,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_FAIL,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_REVIVE,
        [AGX_SEEN_OOM] = AGX_RECOVERY_REVIVE,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_ADOPT,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_ADOPT,
    },
    [AGX_PHASE_STOPPING] = EACH(AGX_RECOVERY_CARRY_ON),
    [AGX_PHASE_STOPPED] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_WAIT,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_FAIL,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_OOM] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_HALT,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_HALT,
    },
    [AGX_PHASE_FAILED] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_OOM] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_HALT,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_HALT,
    },
    [AGX_PHASE_DELETING] = EACH(AGX_RECOVERY_CARRY_ON),
    [AGX_PHASE_DELETED] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_OOM] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_REMOVE,
    },
    [AGX_PHASE_PURGED] = {
        [AGX_SEEN_UNKNOWN] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_MISSING] = AGX_RECOVERY_KEEP,
        [AGX_SEEN_EXITED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_OOM] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_PAUSED] = AGX_RECOVERY_REMOVE,
        [AGX_SEEN_RUNNING] = AGX_RECOVERY_REMOVE,
    },
};

struct agx_recovery_plan agx_reconcile_start(enum agx_phase stored, enum agx_seen seen,
                                             bool remains)
{
    struct agx_recovery_plan plan = { .action = recovery[stored][seen] };

    /* Where a main process would be removed, remove also what is left without one. */
    if (seen == AGX_SEEN_MISSING && remains &&
        recovery[stored][AGX_SEEN_EXITED] == AGX_RECOVERY_REMOVE)
        plan.action = AGX_RECOVERY_REMOVE;
    if (plan.action == AGX_RECOVERY_FAIL) {
        plan.error_code = AGX_FAILED_NOT_RUNNING;
        plan.error_message = stored == AGX_PHASE_READY
                                 ? "primary container not running after daemon restart"
                                 : "primary container missing after daemon restart";
    }
    return plan;
}

uint64_t agx_backoff_ms(unsigned attempt, uint64_t first_ms, uint64_t max_ms)
{
    uint64_t wait = first_ms;

    while (attempt-- > 0 && wait < max_ms)
        wait = wait > max_ms / 2 ? max_ms : 2 * wait;
    return AGX_MIN(wait, max_ms);
}

static struct agx_watch_verdict reconcile_fail(const char *code, const char *message)
{
    return (struct agx_watch_verdict){ AGX_WATCH_FAIL, .error_code = code,
                                       .error_message = message };
}

static struct agx_watch_verdict look_down(struct agx_watch *w,
                                          const struct agx_watch_config *config, bool oom,
                                          bool primary, uint64_t now_ms)
{
    w->up = false;
    if (!w->down) {
        w->down = true;
        w->down_ms = now_ms;
        w->attempts = 0;
        w->retry_set = false;
    }
    if (now_ms - w->down_ms > config->window_ms) {
        if (oom)
            return reconcile_fail(AGX_FAILED_OOM, primary ? "primary container OOM killed"
                                                          : "companion container OOM killed");
        return reconcile_fail(AGX_FAILED_CRASHLOOP,
                              primary ? "primary container exited" : "companion container exited");
    }
    if (!w->retry_set) {
        w->retry_set = true;
        w->retry_ms =
            now_ms + agx_backoff_ms(w->attempts, config->first_retry_ms, config->max_retry_ms);
    }
    if (now_ms < w->retry_ms)
        return (struct agx_watch_verdict){ AGX_WATCH_WAIT, .at_ms = w->retry_ms };
    w->attempts++;
    w->retry_set = false;
    return (struct agx_watch_verdict){ AGX_WATCH_REVIVE };
}

struct agx_watch_verdict agx_watch_look(struct agx_watch *w, const struct agx_watch_config *config,
                                        enum agx_seen seen, bool primary, uint64_t now_ms)
{
    switch (seen) {
    case AGX_SEEN_MISSING:
        return reconcile_fail(
            AGX_FAILED_NOT_RUNNING,
            primary ? "primary container not running (detected during reconciliation)"
                    : "companion container not running (detected during reconciliation)");
    case AGX_SEEN_PAUSED:
        *w = (struct agx_watch){ 0 };
        break;
    case AGX_SEEN_RUNNING:
        if (!w->up) {
            w->up = true;
            w->up_ms = now_ms;
        }
        /* A short run does not reset the window: dying every few seconds is a crash loop too. */
        w->retry_set = false;
        if (now_ms - w->up_ms >= config->stable_ms)
            *w = (struct agx_watch){ .up = true, .up_ms = w->up_ms };
        break;
    case AGX_SEEN_EXITED:
    case AGX_SEEN_OOM:
        return look_down(w, config, seen == AGX_SEEN_OOM, primary, now_ms);
    default:
        break; /* UNKNOWN: nothing was learned */
    }
    return (struct agx_watch_verdict){ AGX_WATCH_NONE };
}

/*
 * reconcile.h: decides what follows from looking at the backend, at the daemon's start and later.
 *
 * It only decides; the result becomes an input of agx_sandbox_step(). Time is monotonic.
 */
#ifndef AGX_CORE_RECONCILE_H
#define AGX_CORE_RECONCILE_H

#include "base/limits.h"
#include "core/sandbox.h"

/* What the backend reports of a sandbox's main process, or of a companion. */
enum agx_seen {
    AGX_SEEN_UNKNOWN, /* the backend did not answer */
    AGX_SEEN_MISSING, /* nothing is left, not even what a resume needs */
    AGX_SEEN_EXITED,  /* it exists but does not run, as after a host reboot */
    AGX_SEEN_OOM,     /* the same, and the OOM killer killed it */
    AGX_SEEN_PAUSED,
    AGX_SEEN_RUNNING,
    AGX_SEEN_COUNT,
};

enum agx_recovery {
    AGX_RECOVERY_MISSING,  /* must not occur: the table is total */
    AGX_RECOVERY_KEEP,     /* as it should be */
    AGX_RECOVERY_CARRY_ON, /* the accepted operation continues (AGX_ON_RESTART started it) */
    AGX_RECOVERY_ADOPT,    /* it runs: apply isolation again, adopt its execs */
    AGX_RECOVERY_REVIVE,   /* AGX_ON_REVIVE */
    AGX_RECOVERY_FAIL,     /* AGX_ON_DIED with the code and message given */
    AGX_RECOVERY_HALT,     /* AGX_ON_HALT */
    AGX_RECOVERY_REMOVE,   /* remove leftovers; no record changes */
    AGX_RECOVERY_WAIT,     /* look again later; until then the stored state stays */
};

struct agx_recovery_plan {
    enum agx_recovery action;
    const char *error_code, *error_message; /* of FAIL; static */
};

/*
 * At the daemon's start, after agx_sandbox_step() with AGX_ON_RESTART. Objects without a record
 * count as ABSENT. `remains`: the main process is MISSING, but another part of the sandbox exists.
 * A sandbox that cannot be checked never delays the others.
 */
struct agx_recovery_plan agx_reconcile_start(enum agx_phase stored, enum agx_seen seen,
                                             bool remains);

struct agx_watch_config {
    uint64_t window_ms; /* down, or up too briefly, for longer: a crash loop */
    uint64_t stable_ms; /* up for this long: the history is reset */
    uint64_t first_retry_ms, max_retry_ms;
};

#define AGX_WATCH_CONFIG_INIT                                                                      \
    {                                                                                              \
        .window_ms = AGX_CRASH_WINDOW_MS, .stable_ms = AGX_CRASH_STABLE_MS,                        \
        .first_retry_ms = AGX_REVIVE_FIRST_MS, .max_retry_ms = AGX_REVIVE_MAX_MS,                  \
    }

/* The history of one container while its sandbox is READY; zeroed at first. In memory only. */
struct agx_watch {
    bool down, up;           /* are the next two set? */
    uint64_t down_ms, up_ms; /* when it began to fail; when it began to run */
    unsigned attempts;       /* restarts in this window */
    uint64_t retry_ms;       /* the earliest restart; only while it is down */
    bool retry_set;
};

enum agx_watch_action {
    AGX_WATCH_NONE,
    AGX_WATCH_REVIVE, /* start it now; counted as an attempt */
    AGX_WATCH_WAIT,   /* look again at retry_ms, to start it */
    AGX_WATCH_FAIL,   /* given up: see code and message */
};

struct agx_watch_verdict {
    enum agx_watch_action action;
    uint64_t at_ms; /* of WAIT */
    const char *error_code, *error_message;
};

/* For one look at the main process (`primary`) or a companion. */
struct agx_watch_verdict agx_watch_look(struct agx_watch *w, const struct agx_watch_config *config,
                                        enum agx_seen seen, bool primary, uint64_t now_ms);

/* The pause before attempt 0, 1, 2, ...: doubles from `first` to `max`. */
uint64_t agx_backoff_ms(unsigned attempt, uint64_t first_ms, uint64_t max_ms);

#endif

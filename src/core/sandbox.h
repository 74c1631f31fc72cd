/*
 * sandbox.h: the sandbox's record, and the rules by which it changes.
 *
 * The rules are one table (sandbox_table.c) of phases and inputs. The phase says what a sandbox is
 * about to become; the state that clients see follows from it. A phase wants at most one operation
 * of the backend, and at most one runs at any time:
 *
 *            create                       stop, idle
 *   ABSENT ---------> CREATING --ok--> READY --------> STOPPING --ok--> STOPPED
 *                        |             ^    |             |             |   |
 *                      failed          |   died         failed       resume died
 *                        v             |    v             v             |   v
 *                      FAILED        ok|  FAILED        FAILED          | FAILED
 *                                      |                                v
 *                                      +--------------------------- RESUMING --failed--> FAILED
 *
 *   any of these --delete--> DELETING --ok--> DELETED --cleanup--> PURGED
 *                               +--failed--> FAILED, and delete may be tried again
 *
 * Invariants:
 *  (1) `running` is the operation that the backend executes, `op` the one that the phase wants. If
 *      they differ, the running one was cancelled; its result is ignored, and `op` starts when it
 *      has ended. So an outdated operation never brings a sandbox back to life.
 *  (2) DELETED changes only to PURGED, and no event follows SANDBOX_DELETED.
 *  (3) last_sequence is the number of the newest event; events have no gap.
 *  (4) an accepted operation ends in an event, also across restarts: `phase` and `op` are stored,
 *      `running` and `active_execs` are not.
 */
#ifndef AGX_CORE_SANDBOX_H
#define AGX_CORE_SANDBOX_H

#include "core/event.h"
#include "core/reason.h"
#include "core/spec.h"

/* Stored: the numbers stay. */
enum agx_phase {
    AGX_PHASE_ABSENT,
    AGX_PHASE_CREATING,
    AGX_PHASE_RESUMING,
    AGX_PHASE_READY,
    AGX_PHASE_STOPPING,
    AGX_PHASE_STOPPED,
    AGX_PHASE_FAILED,
    AGX_PHASE_DELETING,
    AGX_PHASE_DELETED,
    AGX_PHASE_PURGED, /* the record is deleted; its id stays reserved */
    AGX_PHASE_COUNT,
};

/* Stored: the numbers stay. Each is idempotent, so it can be repeated after a restart. */
enum agx_do {
    AGX_DO_NONE,
    AGX_DO_CREATE,
    AGX_DO_RESUME,
    AGX_DO_STOP,
    AGX_DO_DELETE,
    AGX_DO_REVIVE, /* restart the main process, which ended by itself */
    AGX_DO_HALT,   /* stop the rest of a sandbox that should not run */
    AGX_DO_COUNT,
};

enum agx_on {
    /* Requests: accepted or refused. */
    AGX_ON_CREATE,
    AGX_ON_STOP,
    AGX_ON_RESUME,
    AGX_ON_DELETE,
    AGX_ON_EXEC, /* may an exec be created? */
    /* The running operation: it began, succeeded, or failed (also: was cancelled). */
    AGX_ON_BEGUN,
    AGX_ON_DONE,
    AGX_ON_FAILED,
    /* Decisions of reconcile.h. */
    AGX_ON_DIED,   /* gone for good: error_code and error_message say why */
    AGX_ON_REVIVE, /* the main process ended and should be restarted */
    AGX_ON_HALT,   /* something runs that should not */
    AGX_ON_COMPANION_READY,
    AGX_ON_COMPANION_FAILED,
    /* Timers. */
    AGX_ON_IDLE,
    AGX_ON_CLEANUP,
    /* The daemon started: nothing runs yet; accepted operations continue. */
    AGX_ON_RESTART,
    AGX_ON_COUNT,
};

/* Why it stops or is deleted. Stored: the numbers stay. */
enum agx_cause {
    AGX_CAUSE_NONE,
    AGX_CAUSE_STOP_REQUESTED,
    AGX_CAUSE_IDLE_TTL,
    AGX_CAUSE_DELETE_REQUESTED,
    AGX_CAUSE_CLEANUP_TTL,
    AGX_CAUSE_COUNT,
};

enum agx_companion_state { AGX_COMPANION_UNKNOWN, AGX_COMPANION_READY, AGX_COMPANION_FAILED };

/* The mutable part of a sandbox. It is small, so that a step that could not be stored is undone by
 * restoring a copy. */
struct agx_life {
    enum agx_phase phase;
    enum agx_do op;      /* the operation that the phase wants */
    enum agx_do running; /* the operation at the backend; not stored */
    bool prepared;       /* SANDBOX_PREPARING was sent */
    enum agx_cause cause;
    uint64_t last_sequence;
    struct agx_stamp changed;         /* when the state changed last */
    struct agx_stamp idle_from;       /* start of its idle time, while no exec is active */
    char *error_code, *error_message; /* only while FAILED */
    uint8_t *companions;              /* enum agx_companion_state, one for each of the spec's */
    size_t companions_len;
    uint32_t active_execs; /* not stored: counted from the execs at start */
};

struct agx_sandbox {
    char *id;
    uint64_t number;    /* key of its records in the store, in creation order; 0: none yet */
    uint32_t owner_uid; /* the creator: limits are per uid */
    struct agx_stamp created;
    struct agx_spec spec;      /* accepted; never changes */
    struct agx_words warnings; /* for clients, about the accepted spec; never change either */
    struct agx_life life;
};

struct agx_sandbox_input {
    enum agx_on on;
    struct agx_stamp now;
    enum agx_do op;                         /* BEGUN, DONE, FAILED: which operation reports */
    const char *error_code, *error_message; /* failures; NULL code: the operation's default */
    size_t companion;                       /* COMPANION_*: its index in the spec */
};

struct agx_sandbox_output {
    enum agx_reason reason; /* why it was refused, in addition to the error */
    bool changed;           /* record and event must be stored before an answer */
    bool has_event;
    struct agx_event event; /* owned by the caller */
    enum agx_do start;      /* start this at the backend when all is stored */
    bool cancel;            /* cancel the running operation */
    bool purge;             /* delete record, events, execs and logs */
};

/* A record for a create that was checked: phase ABSENT, no event. Takes the spec on success. */
int agx_sandbox_init(struct agx_sandbox *sb, const char *id, struct agx_spec *take_spec,
                     struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_sandbox_done(struct agx_sandbox *sb);

int agx_life_copy(struct agx_life *to, const struct agx_life *from,
                  struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_life_done(struct agx_life *l);

/*
 * Moves the sandbox. 0: done, or no effect here (then `out` is empty, as for a second stop). A
 * refusal returns its code, and sets `out->reason` if it has one. On any failure the record is
 * unchanged and `out` has nothing to free.
 *
 * If agx_sandbox_ends_execs() is true, the caller must end the execs first, since their events come
 * before the sandbox's; otherwise the step is -AGX_FAILED_PRECONDITION.
 */
int agx_sandbox_step(struct agx_sandbox *sb, const struct agx_sandbox_input *in,
                     struct agx_sandbox_output *out, struct agx_error **err) AGX_MUST_CHECK;

/* Does this input end all processes, so that active execs must be ended before it? */
bool agx_sandbox_ends_execs(const struct agx_sandbox *sb, const struct agx_sandbox_input *in);

/* List order, for qsort(3): newest first, then by id. */
int agx_sandbox_order(const struct agx_sandbox *a, const struct agx_sandbox *b);

/* The state that clients see. */
enum agx_state agx_phase_state(enum agx_phase phase);
static inline enum agx_state agx_sandbox_state(const struct agx_sandbox *sb)
{
    return agx_phase_state(sb->life.phase);
}

/* As on the wire: "stop_requested"; NULL for NONE. */
const char *agx_cause_name(enum agx_cause cause);

/* For logs and tests: "CREATING", "delete", "companion_failed". */
const char *agx_phase_name(enum agx_phase phase);
const char *agx_do_name(enum agx_do op);
const char *agx_on_name(enum agx_on on);

/* The result "never" of the next two functions. */
#define AGX_LEFT_NEVER UINT64_MAX

/* Time until an idle stop; 0: now. `default_ttl_ns` applies if the spec sets none; zero or less
 * disables the idle stop. */
uint64_t agx_sandbox_idle_left_ns(const struct agx_sandbox *sb, int64_t default_ttl_ns,
                                  const struct agx_stamp *now);
/* Time until a stopped sandbox is deleted, or a deleted one purged. */
uint64_t agx_sandbox_cleanup_left_ns(const struct agx_sandbox *sb, int64_t cleanup_ttl_ns,
                                     const struct agx_stamp *now);

#endif

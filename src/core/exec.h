/*
 * exec.h: a command in a sandbox, from its acceptance to its end.
 *
 *     ABSENT --create--> STARTING --begun--> RUNNING --exited--> ENDED
 *                           |                   |
 *                           +-- cancel ---------+--> CANCELLING --gone--> ENDED (CANCELLED)
 *                           +-- deadline -------+--> EXPIRING --gone--> ENDED (FAILED, 137)
 *
 * Clients see RUNNING up to the end, and the end only when no process of the command is left.
 *
 * Invariants:
 *  (1) one EXEC_STARTED, then exactly one of FINISHED, FAILED, CANCELLED.
 *  (2) at most one operation runs at the backend; a kill waits for a running start.
 *  (3) the first request decides the outcome: a cancel after the deadline changes nothing, nor does
 *      the deadline after a cancel.
 */
#ifndef AGX_CORE_EXEC_H
#define AGX_CORE_EXEC_H

#include "core/sandbox.h"

/* Stored: the numbers stay. */
enum agx_exec_phase {
    AGX_EXEC_PHASE_ABSENT,
    AGX_EXEC_PHASE_STARTING,
    AGX_EXEC_PHASE_RUNNING,
    AGX_EXEC_PHASE_CANCELLING,
    AGX_EXEC_PHASE_EXPIRING,
    AGX_EXEC_PHASE_ENDED,
    AGX_EXEC_PHASE_COUNT,
};

enum agx_exec_do {
    AGX_EXEC_DO_NONE,
    /* Start it. The backend identifies it by its id: a second start adopts it. */
    AGX_EXEC_DO_START,
    /* After a restart: does it still exist? Answers with BEGUN, EXITED or UNKNOWN. */
    AGX_EXEC_DO_ADOPT,
    /* TERM to the whole group, a grace period, KILL; GONE when no process is left. */
    AGX_EXEC_DO_KILL,
};

enum agx_exec_on {
    AGX_EXEC_ON_CREATE,
    AGX_EXEC_ON_CANCEL,
    AGX_EXEC_ON_DEADLINE,
    AGX_EXEC_ON_BEGUN,       /* START, ADOPT: it runs */
    AGX_EXEC_ON_REFUSED,     /* START: it could not be started */
    AGX_EXEC_ON_UNKNOWN,     /* ADOPT: the backend does not know it */
    AGX_EXEC_ON_EXITED,      /* the command itself ended, with exit_code */
    AGX_EXEC_ON_GONE,        /* KILL: no process is left */
    AGX_EXEC_ON_KILL_FAILED, /* to be retried; the caller pauses first */
    AGX_EXEC_ON_LOST,        /* the sandbox under it ended: exit_code, maybe error_message */
    AGX_EXEC_ON_RESTART,     /* the daemon started: we have no running operation yet */
    AGX_EXEC_ON_COUNT,
};

struct agx_exec {
    char *id, *sandbox_id;
    struct agx_words command; /* as requested, like cwd and env_overrides */
    char *cwd;
    struct agx_pairs env_overrides;
    int64_t deadline_ns; /* from its acceptance; 0: none */
    struct agx_stamp created;
    enum agx_exec_phase phase;
    enum agx_exec_do running; /* at the backend; not stored */
    enum agx_exec_state state;
    int32_t exit_code;
    char *error_code, *error_message; /* only when FAILED */
};

struct agx_exec_input {
    enum agx_exec_on on;
    struct agx_stamp now;
    int32_t exit_code;         /* EXITED, LOST */
    const char *error_message; /* REFUSED, LOST */
};

struct agx_exec_output {
    enum agx_reason reason; /* why it was refused, in addition to the error */
    bool changed;           /* exec, sandbox and event must be stored before an answer */
    bool has_event;
    struct agx_event event; /* owned by the caller */
    enum agx_exec_do start; /* start this at the backend when all is stored */
};

/* Exit codes when the sandbox under an exec ends; see AGX_EXEC_ON_LOST. */
#define AGX_EXEC_EXIT_KILLED 137 /* stopped or deleted: as SIGKILL would */
#define AGX_EXEC_EXIT_UNKNOWN (-1)

/* Zeroes it and sets the two ids; the caller fills in the rest of the request. */
int agx_exec_init(struct agx_exec *e, const char *id, const char *sandbox_id,
                  struct agx_error **err) AGX_MUST_CHECK;
/* Accepts NULL. */
void agx_exec_done(struct agx_exec *e);

/* The checks of a request that need no sandbox: a command, a deadline that is not negative, an id
 * that callers may choose (agx_ident_check). */
int agx_exec_check(const struct agx_exec *e, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Moves the exec and counts it in its sandbox; its event takes the sandbox's next sequence. 0:
 * done, or no effect in this phase. On failure nothing has changed and `out` has nothing to free.
 */
int agx_exec_step(struct agx_exec *e, struct agx_sandbox *sb, const struct agx_exec_input *in,
                  struct agx_exec_output *out, struct agx_error **err) AGX_MUST_CHECK;

/* Reverts the last step, which could not be stored. `before` is a plain copy of *e from before the
 * step; the caller restores the sandbox (agx_life_copy). */
void agx_exec_undo(struct agx_exec *e, const struct agx_exec *before);

/* Time until its deadline; 0: now; AGX_LEFT_NEVER: none. */
uint64_t agx_exec_deadline_left_ns(const struct agx_exec *e, const struct agx_stamp *now);

#endif

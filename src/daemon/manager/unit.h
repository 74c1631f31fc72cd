/*
 * unit.h: one sandbox with its active execs: a queue of inputs that are taken through the rules of
 * core/ one after the other, and stored before anybody learns of them.
 *
 * Invariants:
 *  (1) at most one commit of a unit is in flight (`commit`); new inputs wait in `queue`.
 *  (2) readers see `committed` until the commit is done: never state that a crash would undo.
 *  (3) a request is answered after the commit, also when it is refused. Other inputs (reports,
 *      timers) are never lost: when the commit fails they are queued again, in order.
 *  (4) an id is held from the moment its create is stepped: a unit or an exec that is not `born` is
 *      in the maps but readers cannot find it.
 */
#ifndef AGX_DAEMON_MANAGER_UNIT_H
#define AGX_DAEMON_MANAGER_UNIT_H

#include "base/list.h"
#include "daemon/manager/exec_logs.h"
#include "daemon/manager/feed_internal.h"
#include "daemon/manager/manager.h"
#include "loop/alarms.h"

struct agx_unit;
struct agx_exec_unit;

enum agx_input_kind { AGX_INPUT_SANDBOX, AGX_INPUT_EXEC, AGX_INPUT_EXEC_CREATE };

/* Something that happens to a sandbox or to one of its execs. */
struct agx_input {
    struct agx_list_node node; /* in a unit's queue, a change's inputs or an exec's waiters */
    struct agx_unit *unit;
    enum agx_input_kind kind;
    enum agx_on on; /* SANDBOX */
    enum agx_do op;
    size_t companion;
    enum agx_exec_on exec_on; /* EXEC */
    int32_t exit_code;
    struct agx_exec_unit *exec;       /* EXEC, EXEC_CREATE: a reference */
    char *error_code, *error_message; /* owned */
    agx_answer_fn answer;             /* NULL: not a request */
    void *user;
    struct agx_spec *spec;   /* of a create queued after another one; owned */
    uid_t uid;               /* likewise */
    struct agx_error *error; /* the refusal; NULL: accepted */
    enum agx_reason reason;
};

/* An exec from its request until shortly after its end. */
struct agx_exec_unit {
    struct agx_exec exec;
    struct agx_unit *unit;     /* NULL: it has ended and its unit is gone */
    struct agx_list_node node; /* in unit->execs */
    unsigned refs;             /* the unit's, and those of inputs */
    uid_t uid;                 /* against whose limit it counts */
    bool counted, stdin_open, held, born;
    /* While a commit that includes it is in flight. */
    bool touched, changed, stepped;
    struct agx_exec committed; /* the committed state; shares its texts with `exec` */
    enum agx_exec_do start;
    struct agx_list waiters; /* of struct agx_input: creates that want the same id */
    /* At the backend (drive_exec.c). */
    struct agx_log_fds logs;
    struct agx_backend_op *op, *kill;
    unsigned tries;         /* consecutive failed kills or adoptions */
    struct agx_alarm due;   /* the command's deadline */
    struct agx_alarm guard; /* time limit of the start */
    struct agx_alarm again; /* time limit of a kill, and the pause before the next */
};

struct agx_unit {
    struct agx_sandbox sandbox;    /* the state after all steps */
    struct agx_sandbox *committed; /* the committed state; shares id and spec. NULL: `sandbox` */
    struct agx_manager *manager;
    bool born, counted;
    struct agx_list_node dirty;      /* among those with something to do */
    struct agx_list queue;           /* of struct agx_input */
    struct agx_unit_commit *commit;  /* the commit under way */
    unsigned failures;               /* commits in a row */
    struct agx_list execs;           /* of struct agx_exec_unit */
    struct agx_operation *operation; /* at the backend */
    bool former_runs; /* the backend is still at what the daemon before us asked for */
    struct agx_feed_group feeds;
    struct agx_alarm due;   /* idle stop, clean-up */
    struct agx_alarm retry; /* of a failed commit */
    unsigned purge_waits;   /* how often the purge has waited for readers */
    /* monitor.c */
    struct agx_look *look;
    struct agx_alarm again; /* the next look */
    struct agx_watch watch, *companion_watches;
    uint64_t touched; /* e->looks at its last change: older looks do not count */
    uint64_t seen;    /* the newest look that found it */
    bool reconciled;  /* its stored state was compared with the backend */
    bool down_early;  /* a look found it down before READY: look again then */
};

/* Takes the sandbox's contents. The unit is in the map, but not born. */
struct agx_unit *agx_unit_new(struct agx_manager *e, struct agx_sandbox *take_sandbox);
/* Removes it from all maps. Requires that no commit is in flight. Accepts NULL. */
void agx_unit_free(struct agx_unit *u);
/* For a unit that was purged or never born: answers its queue and frees it. */
void agx_unit_bury(struct agx_unit *u);

/* The committed state. Borrowed. */
static inline const struct agx_sandbox *agx_unit_committed(const struct agx_unit *u)
{
    return u->committed ? u->committed : &u->sandbox;
}
static inline const struct agx_exec *agx_exec_unit_committed(const struct agx_exec_unit *x)
{
    return x->touched ? &x->committed : &x->exec;
}

/* Queues a request, or something that happened. Takes the input. */
void agx_unit_push(struct agx_unit *u, struct agx_input *take_input);
/* Queues what happened, with copies of its texts. */
void agx_unit_report(struct agx_unit *u, const struct agx_sandbox_input *in);
void agx_unit_report_exec(struct agx_exec_unit *x, const struct agx_exec_input *in);

void agx_unit_mark_dirty(struct agx_unit *u);
/* Takes the queue through the rules and commits the changes. No effect while a commit is in flight.
 */
void agx_unit_pump(struct agx_unit *u);

/* After a failed commit: retries the queue after a growing pause. */
void agx_unit_wait(struct agx_unit *u);

/* Takes the exec's contents. It is not in the map; the caller owns it. */
struct agx_exec_unit *agx_exec_unit_new(struct agx_unit *u, struct agx_exec *take_exec);
struct agx_exec_unit *agx_exec_unit_unref(struct agx_exec_unit *x);
/* Holds its id and joins its unit, which takes a reference. */
void agx_exec_unit_hold(struct agx_exec_unit *x);
/* Leaves map and unit; creates that waited for its id are tried again. */
void agx_exec_unit_release(struct agx_exec_unit *x);

struct agx_input *agx_input_new(enum agx_input_kind kind);
void agx_input_free(struct agx_input *in);
void agx_input_free_all(struct agx_list *inputs);

#endif

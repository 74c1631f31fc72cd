/*
 * event.h: a sandbox's events, one record each.
 *
 * Invariants:
 *  (1) the events of a sandbox are numbered 1, 2, 3, ... without a gap, across restarts.
 *  (2) an event and the change that it reports are stored and published in one step: a client that
 *      saw the event finds at least that state.
 *  (3) SANDBOX_DELETED is the last event of a sandbox.
 *
 * Only agx_sandbox_step() and agx_exec_step() number events.
 */
#ifndef AGX_CORE_EVENT_H
#define AGX_CORE_EVENT_H

#include "core/ident.h"
#include "core/stamp.h"
#include "core/text.h"

/* The numbers of the wire; 0: the event does not report a state. */
enum agx_state {
    AGX_STATE_NONE,
    AGX_STATE_PENDING,
    AGX_STATE_READY,
    AGX_STATE_FAILED,
    AGX_STATE_STOPPED,
    AGX_STATE_DELETING,
    AGX_STATE_DELETED,
    AGX_STATE_COUNT,
};

enum agx_exec_state {
    AGX_EXEC_NONE,
    AGX_EXEC_RUNNING,
    AGX_EXEC_FINISHED, /* exit code 0 */
    AGX_EXEC_FAILED,   /* any other end, also a nonzero exit code */
    AGX_EXEC_CANCELLED,
    AGX_EXEC_STATE_COUNT,
};

enum agx_event_type {
    AGX_EVENT_NONE,
    AGX_EVENT_SANDBOX_ACCEPTED,
    AGX_EVENT_SANDBOX_PREPARING,
    AGX_EVENT_SANDBOX_READY,
    AGX_EVENT_SANDBOX_FAILED,
    AGX_EVENT_SANDBOX_STOP_REQUESTED,
    AGX_EVENT_SANDBOX_STOPPED,
    AGX_EVENT_SANDBOX_DELETE_REQUESTED,
    AGX_EVENT_SANDBOX_DELETED,
    AGX_EVENT_EXEC_STARTED,
    AGX_EVENT_EXEC_FINISHED,
    AGX_EVENT_EXEC_FAILED,
    AGX_EVENT_EXEC_CANCELLED,
    AGX_EVENT_COMPANION_READY,
    AGX_EVENT_COMPANION_FAILED,
    AGX_EVENT_COUNT,
};

/* Which field of the wire's oneof `details` an event has. */
enum agx_event_details {
    AGX_EVENT_DETAILS_NONE,
    AGX_EVENT_DETAILS_PHASE,
    AGX_EVENT_DETAILS_EXEC,
    AGX_EVENT_DETAILS_COMPANION,
};

/* Error codes that events carry. */
#define AGX_FAILED_CREATE "SANDBOX_CREATE_FAILED"
#define AGX_FAILED_RESUME "SANDBOX_RESUME_FAILED"
#define AGX_FAILED_STOP "SANDBOX_STOP_FAILED"
#define AGX_FAILED_DELETE "SANDBOX_DELETE_FAILED"
#define AGX_FAILED_NOT_RUNNING "CONTAINER_NOT_RUNNING"
#define AGX_FAILED_CRASHLOOP "CONTAINER_CRASHLOOP"
#define AGX_FAILED_OOM "CONTAINER_OOM"
#define AGX_FAILED_INTERRUPTED "INTERRUPTED_PENDING"
#define AGX_FAILED_COMPANION "COMPANION_CONTAINER_FAILED"
#define AGX_FAILED_EXEC_RUN "EXEC_RUN_FAILED"
#define AGX_FAILED_EXEC_DEADLINE "EXEC_DEADLINE_EXCEEDED"
#define AGX_FAILED_EXEC_RESTARTED "DAEMON_RESTARTED"

struct agx_event {
    uint64_t sequence; /* 1 and up */
    enum agx_event_type type;
    enum agx_state state; /* the sandbox's new state; NONE: not reported */
    int64_t occurred_at_ns;
    int32_t exit_code;                /* execs only */
    bool synthetic;                   /* made for one subscriber's snapshot, never stored */
    char *subject;                    /* exec id, or the companion's name */
    char *reason;                     /* of a stop or delete */
    char *error_code, *error_message; /* of a failure */
};

/* The texts of a new event; each may be NULL. */
struct agx_event_text {
    const char *subject, *reason, *error_code, *error_message;
};

/* Copies the texts into a zeroed event; on failure it has none. */
int agx_event_init(struct agx_event *e, const struct agx_event_text *text,
                   struct agx_error **err) AGX_MUST_CHECK;
int agx_event_copy(struct agx_event *to, const struct agx_event *from,
                   struct agx_error **err) AGX_MUST_CHECK;
/* Empties it. Accepts NULL. */
void agx_event_done(struct agx_event *e);

/* As on the wire: "SANDBOX_ACCEPTED". */
const char *agx_event_name(enum agx_event_type type);
enum agx_event_details agx_event_details(enum agx_event_type type);
/* The exec state that an event of this type reports; NONE for others. */
enum agx_exec_state agx_event_exec_state(enum agx_event_type type);
/* The phase that the event names ("materialize"), or NULL. */
const char *agx_event_phase(enum agx_event_type type);

/* Room for "<sandbox>-snapshot-<exec>", the longest. */
#define AGX_EVENT_ID_SIZE (2 * AGX_IDENT_MAX + sizeof("-snapshot-"))

/* "<sandbox>-<sequence>", or "<sandbox>-snapshot-<exec>" in the snapshot of an exec. Returns `out`.
 */
char *agx_event_id(const struct agx_event *e, const char *sandbox_id, char out[AGX_EVENT_ID_SIZE]);

/*
 * May a subscription begin after `from`? Any number up to the newest may; a larger one is
 * -AGX_OUT_OF_RANGE (AGX_REASON_SEQUENCE_EXPIRED).
 */
int agx_event_check_from(const char *sandbox_id, uint64_t newest, uint64_t from,
                         struct agx_error **err) AGX_MUST_CHECK;

/* For a snapshot: an event for a running exec, with the number of the newest event. */
int agx_event_snapshot_exec(struct agx_event *e, const char *exec_id, uint64_t newest,
                            enum agx_state state, int64_t now_ns,
                            struct agx_error **err) AGX_MUST_CHECK;

#endif

/*
 * sandbox_table.c: every phase, every input. Read a block as: "while CREATING, on ... this
 * happens".
 *
 * Reports of an operation (BEGUN, DONE, FAILED) get here only if the phase wants that operation;
 * reports of outdated operations do not (sandbox.c).
 */
#include "core/sandbox_internal.h"

#include "base/banned.h"

/* clang-format off */
#define IGNORE            { .verdict = AGX_VERDICT_IGNORE }
#define ACCEPT            { .verdict = AGX_VERDICT_ACCEPT }
#define RESTART           { .verdict = AGX_VERDICT_RESTART }
#define REFUSE(why)       { .verdict = AGX_VERDICT_REFUSE, .reason = AGX_REASON_SANDBOX_##why }
#define REPORT(what)      { .verdict = AGX_VERDICT_REPORT, .event = AGX_EVENT_##what }
#define MOVE(where, ...)  { .verdict = AGX_VERDICT_MOVE, .to = AGX_PHASE_##where, __VA_ARGS__ }
#define TELL(what)        .event = AGX_EVENT_SANDBOX_##what
#define DO(what)          .op = AGX_DO_##what
#define WHY(what)         .cause = AGX_CAUSE_##what
#define FAIL(code)        TELL(FAILED), .error_code = AGX_FAILED_##code

#define DELETE_FOR(why)   MOVE(DELETING, TELL(DELETE_REQUESTED), DO(DELETE), WHY(why))
#define STOP_FOR(why, fl) MOVE(STOPPING, TELL(STOP_REQUESTED), DO(STOP), WHY(why), .flags = (fl))
/* clang-format on */

const struct agx_cell agx_sandbox_table[AGX_PHASE_COUNT][AGX_ON_COUNT] = {
    [AGX_PHASE_ABSENT] = {
        [AGX_ON_CREATE] = MOVE(CREATING, TELL(ACCEPTED), DO(CREATE), .flags = AGX_CELL_IDLE_FROM),
        [AGX_ON_STOP] = REFUSE(NOT_FOUND),
        [AGX_ON_RESUME] = REFUSE(NOT_FOUND),
        [AGX_ON_DELETE] = REFUSE(NOT_FOUND),
        [AGX_ON_EXEC] = REFUSE(NOT_FOUND),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = IGNORE,
        [AGX_ON_FAILED] = IGNORE,
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = IGNORE,
    },
    [AGX_PHASE_CREATING] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = REPORT(SANDBOX_PREPARING),
        [AGX_ON_DONE] = MOVE(READY, TELL(READY), .flags = AGX_CELL_IDLE_FROM),
        [AGX_ON_FAILED] = MOVE(FAILED, FAIL(CREATE)), /* the backend undid its own steps */
        [AGX_ON_DIED] = IGNORE,                       /* the create will report it */
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = REPORT(COMPANION_READY),
        [AGX_ON_COMPANION_FAILED] = REPORT(COMPANION_FAILED),
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_RESUMING] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE, /* a resume has no PREPARING */
        [AGX_ON_DONE] = MOVE(READY, TELL(READY), .flags = AGX_CELL_IDLE_FROM),
        [AGX_ON_FAILED] = MOVE(FAILED, FAIL(RESUME), DO(HALT)), /* parts of it may have started */
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = REPORT(COMPANION_READY),
        [AGX_ON_COMPANION_FAILED] = REPORT(COMPANION_FAILED),
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_READY] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = STOP_FOR(STOP_REQUESTED, 0),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = ACCEPT,
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = MOVE(READY),   /* the main process runs again */
        [AGX_ON_FAILED] = MOVE(READY), /* reconcile.h retries, or gives up with DIED */
        [AGX_ON_DIED] = MOVE(FAILED, FAIL(NOT_RUNNING), DO(HALT), .flags = AGX_CELL_ENDS_EXECS),
        [AGX_ON_REVIVE] = MOVE(READY, DO(REVIVE)),
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = REPORT(COMPANION_READY),
        [AGX_ON_COMPANION_FAILED] = REPORT(COMPANION_FAILED),
        [AGX_ON_IDLE] = STOP_FOR(IDLE_TTL, AGX_CELL_IF_QUIET),
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = MOVE(READY), /* first find out what runs */
    },
    [AGX_PHASE_STOPPING] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = ACCEPT,
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = MOVE(STOPPED, TELL(STOPPED), .flags = AGX_CELL_ENDS_EXECS),
        [AGX_ON_FAILED] = MOVE(FAILED, FAIL(STOP)),
        [AGX_ON_DIED] = IGNORE, /* a missing sandbox counts as stopped */
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_STOPPED] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = MOVE(RESUMING, TELL(ACCEPTED), DO(RESUME)),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = MOVE(STOPPED), /* halted; checked again at the daemon's start */
        [AGX_ON_FAILED] = MOVE(STOPPED),
        [AGX_ON_DIED] = MOVE(FAILED, FAIL(NOT_RUNNING)),
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = MOVE(STOPPED, DO(HALT)),
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = DELETE_FOR(CLEANUP_TTL),
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_FAILED] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = DELETE_FOR(DELETE_REQUESTED),
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = MOVE(FAILED, .flags = AGX_CELL_ENDS_EXECS), /* halted, kept to inspect */
        [AGX_ON_FAILED] = MOVE(FAILED),                             /* one failure is reported */
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = MOVE(FAILED, DO(HALT)),
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE, /* not automatically: a user may want to inspect it */
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_DELETING] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = ACCEPT,
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = MOVE(DELETED, TELL(DELETED), .flags = AGX_CELL_ENDS_EXECS),
        [AGX_ON_FAILED] = MOVE(FAILED, FAIL(DELETE)),
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = RESTART,
    },
    [AGX_PHASE_DELETED] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_STARTED),
        [AGX_ON_RESUME] = REFUSE(NOT_STOPPED),
        [AGX_ON_DELETE] = ACCEPT,
        [AGX_ON_EXEC] = REFUSE(NOT_READY),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = IGNORE,
        [AGX_ON_FAILED] = IGNORE,
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = MOVE(PURGED),
        [AGX_ON_RESTART] = IGNORE,
    },
    [AGX_PHASE_PURGED] = {
        [AGX_ON_CREATE] = REFUSE(ID_ALREADY_EXISTS),
        [AGX_ON_STOP] = REFUSE(NOT_FOUND),
        [AGX_ON_RESUME] = REFUSE(NOT_FOUND),
        [AGX_ON_DELETE] = REFUSE(NOT_FOUND),
        [AGX_ON_EXEC] = REFUSE(NOT_FOUND),
        [AGX_ON_BEGUN] = IGNORE,
        [AGX_ON_DONE] = IGNORE,
        [AGX_ON_FAILED] = IGNORE,
        [AGX_ON_DIED] = IGNORE,
        [AGX_ON_REVIVE] = IGNORE,
        [AGX_ON_HALT] = IGNORE,
        [AGX_ON_COMPANION_READY] = IGNORE,
        [AGX_ON_COMPANION_FAILED] = IGNORE,
        [AGX_ON_IDLE] = IGNORE,
        [AGX_ON_CLEANUP] = IGNORE,
        [AGX_ON_RESTART] = IGNORE,
    },
};

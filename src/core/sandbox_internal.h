/* sandbox_internal.h: the table of phases and inputs, for sandbox.c and its test. */
#ifndef AGX_CORE_SANDBOX_INTERNAL_H
#define AGX_CORE_SANDBOX_INTERNAL_H

#include "core/sandbox.h"

enum agx_verdict {
    AGX_VERDICT_MISSING, /* no cell may be so: the table is total */
    AGX_VERDICT_IGNORE,  /* of no effect here */
    AGX_VERDICT_ACCEPT,  /* a request that has nothing left to do */
    AGX_VERDICT_REFUSE,
    AGX_VERDICT_MOVE,
    AGX_VERDICT_REPORT,  /* an event, and the phase stays */
    AGX_VERDICT_RESTART, /* what was wanted is started again */
};

enum {
    AGX_CELL_ENDS_EXECS = 1 << 0, /* no process outlives this */
    AGX_CELL_IF_QUIET = 1 << 1,   /* only while no exec is active */
    AGX_CELL_IDLE_FROM = 1 << 2,  /* the idle clock starts again */
};

struct agx_cell {
    enum agx_verdict verdict;
    enum agx_phase to;
    enum agx_do op; /* what the new phase wants done */
    enum agx_event_type event;
    enum agx_reason reason;
    enum agx_cause cause;   /* becomes the record's; NONE: stays */
    const char *error_code; /* of a failure that brings none */
    unsigned flags;
};

extern const struct agx_cell agx_sandbox_table[AGX_PHASE_COUNT][AGX_ON_COUNT];

#endif

/* sandbox_internal.h: the table of phases and inputs, for sandbox.c and its test. */
#ifndef AGX_CORE_SANDBOX_INTERNAL_H
#define AGX_CORE_SANDBOX_INTERNAL_H

#include "core/sandbox.h"

enum agx_verdict {
    AGX_VERDICT_MISSING, /* must not occur: the table is total */
    AGX_VERDICT_IGNORE,  /* no effect here */
    AGX_VERDICT_ACCEPT,  /* a request that has nothing left to do */
    AGX_VERDICT_REFUSE,
    AGX_VERDICT_MOVE,
    AGX_VERDICT_REPORT,  /* an event, and the phase stays */
    AGX_VERDICT_RESTART, /* start the wanted operation again */
};

enum {
    AGX_CELL_ENDS_EXECS = 1 << 0, /* this ends all processes */
    AGX_CELL_IF_QUIET = 1 << 1,   /* only while no exec is active */
    AGX_CELL_IDLE_FROM = 1 << 2,  /* the idle clock starts again */
};

struct agx_cell {
    enum agx_verdict verdict;
    enum agx_phase to;
    enum agx_do op; /* the operation that the new phase wants */
    enum agx_event_type event;
    enum agx_reason reason;
    enum agx_cause cause;   /* the record's new cause; NONE: unchanged */
    const char *error_code; /* the default code of a failure */
    unsigned flags;
};

extern const struct agx_cell agx_sandbox_table[AGX_PHASE_COUNT][AGX_ON_COUNT];

#endif

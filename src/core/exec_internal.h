/* exec_internal.h: the table of an exec's phases and inputs, for exec.c and its test. */
#ifndef AGX_CORE_EXEC_INTERNAL_H
#define AGX_CORE_EXEC_INTERNAL_H

#include "core/exec.h"

enum agx_exec_verdict {
    AGX_EXEC_MISSING, /* must not occur: the table is total */
    AGX_EXEC_IGNORE,
    AGX_EXEC_ACCEPT,
    AGX_EXEC_REFUSE,
    AGX_EXEC_CREATE,
    AGX_EXEC_MOVE,
    AGX_EXEC_END,
};

enum agx_exec_outcome {
    AGX_EXEC_BY_EXIT,     /* FINISHED for 0, else FAILED with the command's code */
    AGX_EXEC_BY_REFUSAL,  /* FAILED, 0, the backend's message */
    AGX_EXEC_BY_LOSS,     /* FAILED with the code and message of the input */
    AGX_EXEC_BY_RESTART,  /* FAILED, 0: the outcome is unknown */
    AGX_EXEC_BY_CANCEL,   /* CANCELLED, 0 */
    AGX_EXEC_BY_DEADLINE, /* FAILED, 137 */
};

struct agx_exec_cell {
    enum agx_exec_verdict verdict;
    enum agx_exec_phase to;   /* MOVE */
    enum agx_reason reason;   /* REFUSE */
    enum agx_exec_do run;     /* MOVE: what starts as soon as nothing else runs */
    enum agx_exec_outcome by; /* END */
};

extern const struct agx_exec_cell agx_exec_table[AGX_EXEC_PHASE_COUNT][AGX_EXEC_ON_COUNT];

#endif

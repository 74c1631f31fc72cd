/*
 * reason.h: why a request was refused, in a form that programs can read.
 *
 * The RPC edge sends the name and the id as an ErrorInfo beside code and message; clients choose
 * their exception by the name. A refusal that has no reason here (bad arguments, a store that
 * fails) carries code and message alone.
 */
#ifndef AGX_CORE_REASON_H
#define AGX_CORE_REASON_H

#include "base/error.h"

enum agx_reason {
    AGX_REASON_NONE,
    AGX_REASON_SANDBOX_NOT_FOUND,
    AGX_REASON_SANDBOX_ID_ALREADY_EXISTS,
    AGX_REASON_SANDBOX_NOT_READY,   /* CreateExec */
    AGX_REASON_SANDBOX_NOT_STARTED, /* Stop: goes out as SANDBOX_INVALID_STATE */
    AGX_REASON_SANDBOX_NOT_STOPPED, /* Resume: the same */
    AGX_REASON_EXEC_NOT_FOUND,
    AGX_REASON_EXEC_ID_ALREADY_EXISTS,
    AGX_REASON_EXEC_ALREADY_TERMINAL,
    AGX_REASON_SEQUENCE_EXPIRED, /* SANDBOX_EVENT_SEQUENCE_EXPIRED */
    AGX_REASON_IMAGE_NOT_FOUND,
    AGX_REASON_IMAGE_IN_USE,
    AGX_REASON_IMAGE_PULL_FAILED, /* what went wrong on the way, or at the registry */
    AGX_REASON_COUNT,
};

/* The domain of every ErrorInfo. */
#define AGX_REASON_DOMAIN "agents-sandbox"

/* As clients know it ("SANDBOX_NOT_FOUND"); NULL for NONE. */
const char *agx_reason_name(enum agx_reason reason);

/* The key under which the id goes into the metadata ("sandbox_id"); NULL for NONE. */
const char *agx_reason_id_key(enum agx_reason reason);

/* Sets the message for that id and returns the negative code. Not for SEQUENCE_EXPIRED, whose
 * message has a number too (agx_event_check_from()), and images: their store has better ones. */
int agx_reason_error(enum agx_reason reason, const char *id, struct agx_error **err);

#endif

/*
 * reason.h: machine-readable reasons for refusals.
 *
 * The RPC edge sends name and id as an ErrorInfo in addition to code and message; clients choose
 * their exception by the name. A refusal without a reason here (bad arguments, a failing store)
 * has only code and message.
 */
#ifndef AGX_CORE_REASON_H
#define AGX_CORE_REASON_H

#include "base/error.h"

enum agx_reason {
    AGX_REASON_NONE,
    AGX_REASON_SANDBOX_NOT_FOUND,
    AGX_REASON_SANDBOX_ID_ALREADY_EXISTS,
    AGX_REASON_SANDBOX_NOT_READY,   /* CreateExec */
    AGX_REASON_SANDBOX_NOT_STARTED, /* Stop: sent as SANDBOX_INVALID_STATE */
    AGX_REASON_SANDBOX_NOT_STOPPED, /* Resume: sent as the same */
    AGX_REASON_EXEC_NOT_FOUND,
    AGX_REASON_EXEC_ID_ALREADY_EXISTS,
    AGX_REASON_EXEC_ALREADY_TERMINAL,
    AGX_REASON_SEQUENCE_EXPIRED, /* SANDBOX_EVENT_SEQUENCE_EXPIRED */
    AGX_REASON_IMAGE_NOT_FOUND,
    AGX_REASON_IMAGE_IN_USE,
    AGX_REASON_IMAGE_PULL_FAILED, /* a failure of the network or the registry */
    AGX_REASON_COUNT,
};

/* The domain of every ErrorInfo. */
#define AGX_REASON_DOMAIN "agents-sandbox"

/* The name for clients ("SANDBOX_NOT_FOUND"); NULL for NONE. */
const char *agx_reason_name(enum agx_reason reason);

/* The id's key in the metadata ("sandbox_id"); NULL for NONE. */
const char *agx_reason_id_key(enum agx_reason reason);

/* Sets the message for that id and returns the negative code. Not for SEQUENCE_EXPIRED, whose
 * message also has a number (agx_event_check_from()), nor for images: their store's are better. */
int agx_reason_error(enum agx_reason reason, const char *id, struct agx_error **err);

#endif

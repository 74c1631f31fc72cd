/* refusal.h: refusals in the form that clients expect: code, message, and a reason where
 * programs need to tell cases apart. */
#ifndef AGX_DAEMON_SERVICE_REFUSAL_H
#define AGX_DAEMON_SERVICE_REFUSAL_H

#include "core/reason.h"

#include <stdint.h>

struct agx_grpc_call;

/* The reason, in addition to the error. */
struct agx_refusal {
    enum agx_reason reason; /* NONE: no details are sent */
    const char *id;         /* of the sandbox or exec */
    uint64_t from_sequence; /* SEQUENCE_EXPIRED */
};

/* Ends the call with *take_error. The details repeat the exact message: clients compare them. */
void agx_service_fail(struct agx_grpc_call *call, struct agx_error **take_error,
                      const struct agx_refusal *why);

/* Ends the call for lack of memory for an answer. */
void agx_service_fail_memory(struct agx_grpc_call *call);

#endif

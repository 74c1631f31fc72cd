/* service_fail.h: refusals as clients know them: code, message, and where a program may want to
 * tell them apart, the reason. */
#ifndef AGX_DAEMON_SERVICE_FAIL_H
#define AGX_DAEMON_SERVICE_FAIL_H

#include "core/reason.h"

#include <stdint.h>

struct agx_rpc_call;

/* Why, beside the error. */
struct agx_refusal {
    enum agx_reason reason; /* NONE: the error says all, and no details are sent */
    const char *id;         /* of the sandbox or exec */
    uint64_t from_sequence; /* SEQUENCE_EXPIRED */
};

/* Ends the call with *take_error. Message and details agree exactly: clients compare them. */
void agx_service_fail(struct agx_rpc_call *call, struct agx_error **take_error,
                      const struct agx_refusal *why);

/* No memory for an answer. */
void agx_service_fail_memory(struct agx_rpc_call *call);

#endif

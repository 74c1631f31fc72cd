/* refusal.c: turns an error into a call's status. */
#include "daemon/service/refusal.h"

#include "base/limits.h"
#include "core/text.h"
#include "grpc/call.h"
#include "wire/status_details.h"

#include "base/banned.h"

enum { TEXT_MAX = 1024 };

void agx_service_fail(struct agx_grpc_call *call, struct agx_error **take_error,
                      const struct agx_refusal *why)
{
    _cleanup_buf_ struct agx_buf details = AGX_BUF_INIT(AGX_GRPC_TRAILERS_MAX);
    struct agx_grpc_status status = { .code = (*take_error)->code };
    char text[TEXT_MAX];

    status.message = agx_str_from(agx_error_format(*take_error, text, sizeof(text)));
    /* An id that a client sends may be of any length. */
    status.message.len = (size_t)agx_text_cut(status.message, sizeof(text) - 1);
    if (why->reason != AGX_REASON_NONE) {
        const struct agx_status s = { .code = status.code,
                                      .message = status.message,
                                      .reason = why->reason,
                                      .id = why->id,
                                      .from_sequence = why->from_sequence };

        /* Details that do not fit into the trailers are left out. */
        if (agx_status_encode(&details, &s) == 0)
            status.details = agx_buf_peek(&details);
    }
    agx_grpc_call_finish(call, &status);
    *take_error = agx_error_free(*take_error);
}

void agx_service_fail_memory(struct agx_grpc_call *call)
{
    agx_grpc_call_finish(
        call, &(struct agx_grpc_status){ .code = AGX_RESOURCE_EXHAUSTED,
                                         .message = AGX_STR("no memory for the answer") });
}

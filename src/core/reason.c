/* reason.c: one row for each reason; existing clients show these texts. */
#include "core/reason.h"

#include "base/banned.h"

#include <assert.h>

static const struct {
    const char *name, *id_key;
    const char *before, *after; /* the message is the id between them */
    enum agx_code code;
} rows[AGX_REASON_COUNT] = {
    [AGX_REASON_SANDBOX_NOT_FOUND] = { "SANDBOX_NOT_FOUND", "sandbox_id", "sandbox",
                                       "was not found", AGX_NOT_FOUND },
    [AGX_REASON_SANDBOX_ID_ALREADY_EXISTS] = { "SANDBOX_ID_ALREADY_EXISTS", "sandbox_id",
                                               "sandbox_id", "already exists", AGX_ALREADY_EXISTS },
    [AGX_REASON_SANDBOX_NOT_READY] = { "SANDBOX_NOT_READY", "sandbox_id", "sandbox", "is not ready",
                                       AGX_FAILED_PRECONDITION },
    [AGX_REASON_SANDBOX_NOT_STARTED] = { "SANDBOX_INVALID_STATE", "sandbox_id", "sandbox",
                                         "is not ready", AGX_FAILED_PRECONDITION },
    [AGX_REASON_SANDBOX_NOT_STOPPED] = { "SANDBOX_INVALID_STATE", "sandbox_id", "sandbox",
                                         "is not stopped", AGX_FAILED_PRECONDITION },
    [AGX_REASON_EXEC_NOT_FOUND] = { "EXEC_NOT_FOUND", "exec_id", "exec", "was not found",
                                    AGX_NOT_FOUND },
    [AGX_REASON_EXEC_ID_ALREADY_EXISTS] = { "EXEC_ID_ALREADY_EXISTS", "exec_id", "exec_id",
                                            "already exists", AGX_ALREADY_EXISTS },
    [AGX_REASON_EXEC_ALREADY_TERMINAL] = { "EXEC_ALREADY_TERMINAL", "exec_id", "exec",
                                           "is already terminal", AGX_FAILED_PRECONDITION },
    [AGX_REASON_SEQUENCE_EXPIRED] = { "SANDBOX_EVENT_SEQUENCE_EXPIRED", "sandbox_id" },
    [AGX_REASON_IMAGE_NOT_FOUND] = { "IMAGE_NOT_FOUND", "image" },
    [AGX_REASON_IMAGE_IN_USE] = { "IMAGE_IN_USE", "image" },
    [AGX_REASON_IMAGE_PULL_FAILED] = { "IMAGE_PULL_FAILED", "image" },
};

const char *agx_reason_name(enum agx_reason reason)
{
    return rows[reason].name;
}

const char *agx_reason_id_key(enum agx_reason reason)
{
    return rows[reason].id_key;
}

int agx_reason_error(enum agx_reason reason, const char *id, struct agx_error **err)
{
    assert(rows[reason].before);
    return agx_error_set(err, rows[reason].code, "%s %s %s", rows[reason].before, id,
                         rows[reason].after);
}

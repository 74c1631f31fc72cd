/*
 * sandbox_request.h: the requests of agbox.v1.SandboxService, read by the daemon and written by
 * clients.
 *
 * Decoding: -AGX_INVALID_ARGUMENT with the field's name for malformed bytes, text that is not UTF-8
 * or contains NUL, more entries than base/limits.h allows, and durations beyond an int64_t of
 * nanoseconds. Of duplicate map keys the last one counts. core/ checks the meaning of the values.
 * On success the caller owns the content and frees it with the function `done`; after a failure
 * there is nothing to free.
 *
 * Encoding appends to `out` and fails only with -AGX_RESOURCE_EXHAUSTED.
 */
#ifndef AGX_WIRE_SANDBOX_REQUEST_H
#define AGX_WIRE_SANDBOX_REQUEST_H

#include "base/buf.h"
#include "core/exec.h"

/* CreateSandboxRequest. */
struct agx_create_request {
    bool has_spec; /* false: create_spec is absent, and `spec` is empty */
    struct agx_spec spec;
    char *sandbox_id; /* NULL: the daemon chooses */
    struct agx_buf config_yaml;
};

void agx_create_request_init(struct agx_create_request *q);
int agx_create_request_decode(struct agx_create_request *q, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
int agx_create_request_encode(struct agx_buf *out,
                              const struct agx_create_request *q) AGX_MUST_CHECK;
void agx_create_request_done(struct agx_create_request *q);

/* CreateExecRequest. Sets the request's fields of the exec; its id is NULL if the daemon should
 * choose. `sandbox_id` is never NULL after decoding. */
struct agx_exec_request {
    struct agx_exec exec;
    bool has_stdin; /* WriteExecInput provides its stdin; otherwise /dev/null */
};

int agx_exec_request_decode(struct agx_exec_request *q, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;
int agx_exec_request_encode(struct agx_buf *out, const struct agx_exec_request *q) AGX_MUST_CHECK;
void agx_exec_request_done(struct agx_exec_request *q);

/* {Get,Resume,Stop,Delete}SandboxRequest and {Cancel,Get}ExecRequest: an id, never NULL. */
int agx_sandbox_id_decode(struct agx_str bytes, char **ret_id,
                          struct agx_error **err) AGX_MUST_CHECK;
int agx_exec_id_decode(struct agx_str bytes, char **ret_id, struct agx_error **err) AGX_MUST_CHECK;
/* Any of these. */
int agx_id_encode(struct agx_buf *out, const char *id) AGX_MUST_CHECK;

/* ListSandboxesRequest; the other fields belong to agentix.v1's request of the same name
 * (control_request.h). */
struct agx_list_request {
    bool include_deleted;
    struct agx_pairs selector;
    uint32_t page_size; /* 0: the default */
    char *page_token;   /* NULL: the first page */
    uint32_t states;    /* bits of the wanted enum agx_state; 0: any */
};

int agx_list_request_decode(struct agx_list_request *q, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;
int agx_list_request_encode(struct agx_buf *out, const struct agx_list_request *q) AGX_MUST_CHECK;
void agx_list_request_done(struct agx_list_request *q);

/* DeleteSandboxesRequest. The selector must be zeroed. */
int agx_delete_request_decode(struct agx_pairs *selector, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
int agx_delete_request_encode(struct agx_buf *out, const struct agx_pairs *selector) AGX_MUST_CHECK;

/* SubscribeSandboxEventsRequest. */
struct agx_subscribe_request {
    char *sandbox_id; /* never NULL after decoding */
    uint64_t from_sequence;
    bool snapshot; /* include_current_snapshot */
};

int agx_subscribe_request_decode(struct agx_subscribe_request *q, struct agx_str bytes,
                                 struct agx_error **err) AGX_MUST_CHECK;
int agx_subscribe_request_encode(struct agx_buf *out,
                                 const struct agx_subscribe_request *q) AGX_MUST_CHECK;
void agx_subscribe_request_done(struct agx_subscribe_request *q);

/* ListActiveExecsRequest: *ret_sandbox_id is owned, or NULL if absent. */
int agx_active_request_decode(struct agx_str bytes, char **ret_sandbox_id,
                              struct agx_error **err) AGX_MUST_CHECK;
int agx_active_request_encode(struct agx_buf *out, const char *sandbox_id) AGX_MUST_CHECK;

#endif

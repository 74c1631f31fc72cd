/*
 * control_request.h: the requests of agentix.v1.ControlService; the rules of sandbox_request.h
 * apply here too. GetStats and Backup have no fields.
 */
#ifndef AGX_WIRE_CONTROL_REQUEST_H
#define AGX_WIRE_CONTROL_REQUEST_H

#include "wire/sandbox_request.h"

/* WatchEventsRequest. */
struct agx_watch_request {
    uint64_t after_position; /* 0: from the first retained event */
    bool from_now;
    struct agx_pairs selector;
    struct agx_words sandbox_ids; /* empty: all */
};

/* -AGX_INVALID_ARGUMENT also for a position together with from_now. */
int agx_watch_request_decode(struct agx_watch_request *q, struct agx_str bytes,
                             struct agx_error **err) AGX_MUST_CHECK;
int agx_watch_request_encode(struct agx_buf *out, const struct agx_watch_request *q) AGX_MUST_CHECK;
void agx_watch_request_done(struct agx_watch_request *q);

enum agx_output_stream { AGX_OUTPUT_STDOUT = 1, AGX_OUTPUT_STDERR = 2 };

/* ReadExecOutputRequest. */
struct agx_output_request {
    char *exec_id; /* never NULL after decoding */
    enum agx_output_stream stream;
    uint64_t offset;
    bool follow;
    uint64_t max_bytes; /* 0: all */
};

/* -AGX_INVALID_ARGUMENT also for other streams. */
int agx_output_request_decode(struct agx_output_request *q, struct agx_str bytes,
                              struct agx_error **err) AGX_MUST_CHECK;
int agx_output_request_encode(struct agx_buf *out,
                              const struct agx_output_request *q) AGX_MUST_CHECK;
void agx_output_request_done(struct agx_output_request *q);

/* agentix.v1.ListSandboxesRequest. -AGX_INVALID_ARGUMENT also for unknown states. */
int agx_page_request_decode(struct agx_list_request *q, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;
int agx_page_request_encode(struct agx_buf *out, const struct agx_list_request *q) AGX_MUST_CHECK;

/* WaitSandboxRequest and WaitExecRequest. */
struct agx_wait_request {
    char *id;                /* of the sandbox or exec; never NULL after decoding */
    uint32_t states;         /* sandboxes: bits of enum agx_state; 0: the default */
    uint64_t after_sequence; /* sandboxes */
    int64_t timeout_ns;      /* or AGX_NS_UNSET; never negative after decoding */
};

int agx_wait_sandbox_decode(struct agx_wait_request *q, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;
int agx_wait_sandbox_encode(struct agx_buf *out, const struct agx_wait_request *q) AGX_MUST_CHECK;
int agx_wait_exec_decode(struct agx_wait_request *q, struct agx_str bytes,
                         struct agx_error **err) AGX_MUST_CHECK;
int agx_wait_exec_encode(struct agx_buf *out, const struct agx_wait_request *q) AGX_MUST_CHECK;
void agx_wait_request_done(struct agx_wait_request *q);

/* WriteExecInputRequest: one message of the stream. */
struct agx_input_request {
    char *exec_id; /* NULL: not in this message */
    struct agx_buf data;
    bool eof;
};

int agx_input_request_decode(struct agx_input_request *q, struct agx_str bytes,
                             struct agx_error **err) AGX_MUST_CHECK;
int agx_input_request_encode(struct agx_buf *out, const struct agx_input_request *q) AGX_MUST_CHECK;
void agx_input_request_done(struct agx_input_request *q);

#endif

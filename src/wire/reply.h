/*
 * reply.h: the answers of both services, as the daemon writes them.
 *
 * Everything appends to `out` and fails only with -AGX_RESOURCE_EXHAUSTED, leaving `out` unchanged.
 * Concatenated protobuf messages merge, so a list is made with one call per element, without an
 * array, and an answer may be made with several calls.
 */
#ifndef AGX_WIRE_REPLY_H
#define AGX_WIRE_REPLY_H

#include "base/buf.h"
#include "core/exec.h"
#include "core/pull.h"

/* PingResponse. */
int agx_reply_ping(struct agx_buf *out, const char *version, const char *daemon) AGX_MUST_CHECK;

/* AcceptedResponse. */
int agx_reply_accepted(struct agx_buf *out) AGX_MUST_CHECK;

/*
 * A sandbox: a whole CreateSandboxResponse, GetSandboxResponse or WaitSandboxResponse, or one
 * element of a ListSandboxesResponse (either service's). With `envs` it includes the companions'
 * environments, as unchanged clients expect of agboxd. It never includes the sandbox's own.
 */
int agx_reply_sandbox(struct agx_buf *out, const struct agx_sandbox *sb, bool envs) AGX_MUST_CHECK;

/* An exec: a whole GetExecResponse or WaitExecResponse, or one element of a
 * ListActiveExecsResponse. `last_sequence` is its sandbox's. With `envs` it includes its
 * env_overrides. */
int agx_reply_exec(struct agx_buf *out, const struct agx_exec *e, uint64_t last_sequence,
                   bool envs) AGX_MUST_CHECK;

/* After the above, for WaitSandboxResponse and WaitExecResponse: the wait timed out. */
int agx_reply_timed_out(struct agx_buf *out) AGX_MUST_CHECK;

/* For agentix.v1.ListSandboxesResponse: there is another page. */
int agx_reply_page_token(struct agx_buf *out, const char *token) AGX_MUST_CHECK;

/* DeleteSandboxesResponse: adds an id; sets their number. */
int agx_reply_deleted_id(struct agx_buf *out, const char *id) AGX_MUST_CHECK;
int agx_reply_deleted_count(struct agx_buf *out, uint32_t count) AGX_MUST_CHECK;

/* CreateExecResponse. */
int agx_reply_exec_created(struct agx_buf *out, const char *exec_id, const char *stdout_path,
                           const char *stderr_path) AGX_MUST_CHECK;

/* SandboxEvent, always with `replay` set. `snapshot`: it belongs to a snapshot. */
int agx_reply_event(struct agx_buf *out, const struct agx_event *e, const char *sandbox_id,
                    bool snapshot) AGX_MUST_CHECK;

/* WatchEventsResponse; `e` NULL: only the position. */
int agx_reply_watch(struct agx_buf *out, uint64_t position, const struct agx_event *e,
                    const char *sandbox_id) AGX_MUST_CHECK;

/* WatchEventsResponse with the pull of an image. */
int agx_reply_pull(struct agx_buf *out, uint64_t position, const char *sandbox_id,
                   const struct agx_pull *pull) AGX_MUST_CHECK;

/* ReadExecOutputResponse. */
int agx_reply_output(struct agx_buf *out, uint64_t offset, struct agx_str data,
                     uint64_t skipped) AGX_MUST_CHECK;

/* WriteExecInputResponse. */
int agx_reply_input(struct agx_buf *out, uint64_t bytes_written) AGX_MUST_CHECK;

/* BackupResponse. */
int agx_reply_backup(struct agx_buf *out, struct agx_str data) AGX_MUST_CHECK;

#endif

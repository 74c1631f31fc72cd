/*
 * view.h: the answers of both services, as clients read them.
 *
 * -AGX_INTERNAL for malformed bytes: the server is to blame. On success the caller owns the content
 * and frees it with the function `done`, which accepts NULL; after a failure there is nothing to
 * free.
 */
#ifndef AGX_WIRE_VIEW_H
#define AGX_WIRE_VIEW_H

#include "base/buf.h"
#include "core/exec.h"
#include "core/pull.h"

/* SandboxHandle. */
struct agx_sandbox_view {
    char *id;
    enum agx_state state; /* NONE also for an unknown number */
    uint64_t last_sequence;
    int64_t created_at_ns, changed_at_ns;
    struct agx_spec spec; /* image, labels and companions only */
    char *error_code, *error_message;
    struct agx_words warnings;
};

/* A list or page of sandboxes. */
struct agx_sandbox_views {
    struct agx_sandbox_view *items;
    size_t len;
    char *next_page_token; /* NULL: the last page */
};

/* {Create,Get,Wait}SandboxResponse. `ret_timed_out` may be NULL. */
int agx_sandbox_view_decode(struct agx_sandbox_view *v, struct agx_str bytes, bool *ret_timed_out,
                            struct agx_error **err) AGX_MUST_CHECK;
void agx_sandbox_view_done(struct agx_sandbox_view *v);

/* ListSandboxesResponse of either service. */
int agx_sandbox_views_decode(struct agx_sandbox_views *v, struct agx_str bytes,
                             struct agx_error **err) AGX_MUST_CHECK;
void agx_sandbox_views_done(struct agx_sandbox_views *v);

/* ExecStatus. */
struct agx_exec_view {
    struct agx_exec exec; /* the fields that clients may see; `phase` and `running` are not set */
    uint64_t last_sequence;
};

struct agx_exec_views {
    struct agx_exec_view *items;
    size_t len;
};

/* {Get,Wait}ExecResponse. `ret_timed_out` may be NULL. */
int agx_exec_view_decode(struct agx_exec_view *v, struct agx_str bytes, bool *ret_timed_out,
                         struct agx_error **err) AGX_MUST_CHECK;
void agx_exec_view_done(struct agx_exec_view *v);

/* ListActiveExecsResponse. */
int agx_exec_views_decode(struct agx_exec_views *v, struct agx_str bytes,
                          struct agx_error **err) AGX_MUST_CHECK;
void agx_exec_views_done(struct agx_exec_views *v);

/* SandboxEvent. */
struct agx_event_view {
    char *event_id, *sandbox_id;
    struct agx_event event;
    bool replay, snapshot;
};

int agx_event_view_decode(struct agx_event_view *v, struct agx_str bytes,
                          struct agx_error **err) AGX_MUST_CHECK;
void agx_event_view_done(struct agx_event_view *v);

/* WatchEventsResponse. 1: with an event; 0: only the position, or a pull, and `v` is empty. */
int agx_watch_view_decode(struct agx_event_view *v, uint64_t *ret_position, struct agx_str bytes,
                          struct agx_error **err) AGX_MUST_CHECK;

/* WatchEventsResponse with the pull of an image. */
struct agx_pull_view {
    char *sandbox_id, *image; /* never NULL */
    struct agx_pull pull;     /* borrows the image */
};

/* 1: with a pull; 0: without, and `v` is empty. */
int agx_pull_view_decode(struct agx_pull_view *v, struct agx_str bytes,
                         struct agx_error **err) AGX_MUST_CHECK;
void agx_pull_view_done(struct agx_pull_view *v);

/* PingResponse. */
struct agx_ping_view {
    char *version, *daemon;
};

int agx_ping_view_decode(struct agx_ping_view *v, struct agx_str bytes,
                         struct agx_error **err) AGX_MUST_CHECK;
void agx_ping_view_done(struct agx_ping_view *v);

/* CreateExecResponse. */
struct agx_exec_created_view {
    char *exec_id, *stdout_path, *stderr_path; /* never NULL, maybe empty */
};

int agx_exec_created_view_decode(struct agx_exec_created_view *v, struct agx_str bytes,
                                 struct agx_error **err) AGX_MUST_CHECK;
void agx_exec_created_view_done(struct agx_exec_created_view *v);

/* DeleteSandboxesResponse: the ids; `ids` must be zeroed. */
int agx_deleted_view_decode(struct agx_words *ids, struct agx_str bytes,
                            struct agx_error **err) AGX_MUST_CHECK;

/* ReadExecOutputResponse. */
struct agx_output_view {
    uint64_t offset, skipped;
    struct agx_buf data;
};

int agx_output_view_decode(struct agx_output_view *v, struct agx_str bytes,
                           struct agx_error **err) AGX_MUST_CHECK;
void agx_output_view_done(struct agx_output_view *v);

/* BackupResponse: the bytes are appended to `out`. */
int agx_backup_view_decode(struct agx_str bytes, struct agx_buf *out,
                           struct agx_error **err) AGX_MUST_CHECK;

#endif

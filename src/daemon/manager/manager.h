/*
 * manager.h: the manager, the core of the daemon: it holds all sandboxes and execs, and everything
 * that happens to them, in order and durably.
 *
 * Requests, also refused ones, are answered by a callback after their commit. Reads are answered at
 * once with the committed state. A client that saw an event finds at least the state after it.
 * docs/design/daemon.md describes the order of steps. Loop thread only.
 */
#ifndef AGX_DAEMON_MANAGER_MANAGER_H
#define AGX_DAEMON_MANAGER_MANAGER_H

#include "backend/backend.h"
#include "base/limits.h"
#include "core/exec.h"
#include "store/store.h"

struct agx_manager;
struct agx_sources;

/* Times and sizes come from the configuration; tests shorten them. */
struct agx_manager_config {
    struct agx_store *store;     /* opened with agx_schema_layout; outlives the manager */
    struct agx_backend *backend; /* likewise */
    const char *log_root;        /* directory of exec logs, 0700, exists; absolute */
    struct agx_spec_host host;   /* look NULL: the manager checks, on its threads */
    struct agx_sources *sources; /* used for these checks; NULL: only symlinks are checked */
    int64_t idle_ttl_ns, cleanup_ttl_ns;
    uint64_t sweep_ms; /* how often idle and clean-up times are checked */
    uint64_t look_ms;  /* how often the backend is asked when it reports no events */
    struct agx_watch_config watch;
    uint64_t create_ms, resume_ms, stop_ms, delete_ms, look_deadline_ms, exec_start_ms;
    uint64_t usage_ms;   /* time limit of a resource usage query */
    uint64_t abandon_ms; /* from a cancel until an operation is given up */
    uint64_t stop_grace_ms, exec_grace_ms;
    uint64_t settle_ms; /* between the answer to a request and its operation; 0: none */
    uint64_t retry_first_ms, retry_max_ms; /* pauses between retries */
    uint64_t log_head_max, log_tail_max;
    uint32_t sandboxes_per_uid, execs_per_uid; /* 0: no limit */
};

/* Sets all but store, backend, log_root, the host's homes and our paths. */
#define AGX_MANAGER_CONFIG_INIT                                                                    \
    {                                                                                              \
        .idle_ttl_ns = AGX_IDLE_TTL_NS, .cleanup_ttl_ns = AGX_CLEANUP_TTL_NS,                      \
        .sweep_ms = AGX_SWEEP_MS, .look_ms = AGX_LOOK_MS, .watch = AGX_WATCH_CONFIG_INIT,          \
        .create_ms = AGX_CREATE_MS, .resume_ms = AGX_RESUME_SANDBOX_MS, .stop_ms = AGX_STOP_MS,    \
        .delete_ms = AGX_DELETE_MS, .look_deadline_ms = AGX_LOOK_DEADLINE_MS,                      \
        .exec_start_ms = AGX_EXEC_START_MS, .usage_ms = AGX_USAGE_MS,                              \
        .abandon_ms = AGX_ABANDON_MS, .stop_grace_ms = AGX_STOP_GRACE_MS,                          \
        .exec_grace_ms = AGX_EXEC_GRACE_MS, .retry_first_ms = AGX_RETRY_FIRST_MS,                  \
        .retry_max_ms = AGX_RETRY_MAX_MS, .log_head_max = AGX_EXEC_LOG_HEAD,                       \
        .log_tail_max = AGX_EXEC_LOG_TAIL, .sandboxes_per_uid = AGX_SANDBOXES_PER_UID,             \
        .execs_per_uid = AGX_EXECS_PER_UID                                                         \
    }

/*
 * Loads the store, restarts every record, and serves. The backend is asked later, which delays
 * nothing. A record that cannot be read is logged and left out.
 */
int agx_manager_open(struct agx_loop *l, const struct agx_manager_config *c,
                     struct agx_manager **ret_manager, struct agx_error **err) AGX_MUST_CHECK;

/* Takes no more inputs, waits for running commits, abandons the backend's operations. Sandboxes
 * keep running. */
void agx_manager_close(struct agx_manager *e, agx_done_fn closed, void *user);

/* ---- reads ---- */

/* The sandbox as it is committed, borrowed until the current callback returns. -AGX_NOT_FOUND with
 * the reason's message. */
int agx_manager_find(struct agx_manager *e, const char *id, const struct agx_sandbox **ret,
                     struct agx_error **err) AGX_MUST_CHECK;

/*
 * Lists in the order of agx_sandbox_order(): calls `visit` for at most `max` sandboxes (0: all)
 * after the given position (after_id NULL: from the first). The sandbox at that position may have
 * been deleted. visit returns 0 to go on, positive to stop.
 */
typedef int (*agx_sandbox_visit_fn)(void *user, const struct agx_sandbox *sb);
void agx_manager_list(struct agx_manager *e, int64_t after_created_ns, const char *after_id,
                      size_t max, agx_sandbox_visit_fn visit, void *user);

/* An exec as it is committed, from memory while it is active, else from the store. The caller owns
 * it. `ret_sequence` is its sandbox's newest. */
int agx_manager_exec_find(struct agx_manager *e, const char *exec_id, struct agx_exec *ret,
                          uint64_t *ret_sequence, struct agx_error **err) AGX_MUST_CHECK;

/* Visits active execs by id until `visit` returns nonzero. `sandbox_id` NULL: those of all
 * sandboxes; `after_id` NULL: from the first, else those after it. */
typedef int (*agx_exec_visit_fn)(void *user, const struct agx_exec *exec, uint64_t sequence);
void agx_manager_exec_list(struct agx_manager *e, const char *sandbox_id, const char *after_id,
                           agx_exec_visit_fn visit, void *user);

/* ---- requests ---- */

/* The answer to a request; error NULL: accepted. All is borrowed for the call, except
 * `error`, which the callee owns. */
struct agx_answer {
    struct agx_error *error;
    enum agx_reason reason;
    const char *reason_id;             /* the id of the reason's metadata */
    const struct agx_sandbox *sandbox; /* create, stop, resume, delete: as it is committed */
    const char *exec_id;               /* exec_create */
    const char *out_path, *err_path;   /* exec_create: of its logs */
};
typedef void (*agx_answer_fn)(void *user, const struct agx_answer *a);

/* Takes the spec, accepted or not; `id` NULL: a UUID. Makes the checks in contract order
 * (agx_spec_accept, id, backend's check, caps). The answer never comes inside the call. */
void agx_manager_create(struct agx_manager *e, uid_t uid, const char *id,
                        struct agx_spec *take_spec, agx_answer_fn answer, void *user);

/* `on`: AGX_ON_STOP, AGX_ON_RESUME or AGX_ON_DELETE. */
void agx_manager_ask(struct agx_manager *e, const char *id, enum agx_on on, agx_answer_fn answer,
                     void *user);

/* Runs a command. Takes the exec's contents (sandbox_id, command, cwd, env_overrides,
 * deadline_ns; id NULL: a UUID). */
void agx_manager_exec_create(struct agx_manager *e, uid_t uid, struct agx_exec *take_exec,
                             bool stdin_open, agx_answer_fn answer, void *user);
void agx_manager_exec_cancel(struct agx_manager *e, const char *exec_id, agx_answer_fn answer,
                             void *user);
/* Writes to its stdin. Calls `taken` when the next bytes may follow. */
int agx_manager_exec_write(struct agx_manager *e, const char *exec_id, struct agx_str data,
                           bool eof, agx_done_fn taken, void *user,
                           struct agx_error **err) AGX_MUST_CHECK;

/* ---- events ---- */

/*
 * One reader of events, of one sandbox or of all. It pulls: agx_feed_next() gives the next event
 * until there is none; `ready` reports when there is one again. A slow reader reads on from the
 * store and costs no memory for its backlog.
 */
struct agx_feed;
struct agx_feed_ops {
    /* agx_feed_next() has an event again, or the end. Never inside a call. */
    void (*ready)(void *user);
    /* For a reader of all sandboxes that has read everything: an image pull made progress.
     * `position` is that of the last event it read. Never inside a call. May be NULL. */
    void (*pull)(void *user, uint64_t position, const char *sandbox_id,
                 const struct agx_pull *pull);
};

/* `sandbox_id` NULL: all sandboxes, and `from` is a position; else `from` is the sequence of the
 * last event that the reader knows. Does not check `from` (agx_event_check_from). -AGX_NOT_FOUND:
 * no such sandbox. */
int agx_feed_open(struct agx_manager *e, const char *sandbox_id, uint64_t from,
                  const struct agx_feed_ops *ops, void *user, struct agx_feed **ret_feed,
                  struct agx_error **err) AGX_MUST_CHECK;
/* Returns NULL and accepts it. */
struct agx_feed *agx_feed_close(struct agx_feed *f);

struct agx_feed_item {
    const char *sandbox_id;
    uint64_t position;
    const struct agx_event *event;
    /* The event as a serialized agbox.v1.SandboxEvent (replay set), shared by all readers. */
    struct agx_str encoded;
};

/* 1: *ret, borrowed until the next call for any feed or the turn's end; 0: no event now; 2: the
 * end, the sandbox was purged and all its events were read; negative: the store failed. */
#define AGX_FEED_END 2
int agx_feed_next(struct agx_feed *f, struct agx_feed_item *ret,
                  struct agx_error **err) AGX_MUST_CHECK;

/* The newest position of all events. */
uint64_t agx_manager_position(const struct agx_manager *e);

/* ---- logs ---- */

enum agx_stream { AGX_STREAM_OUT, AGX_STREAM_ERR };

/* Opens the log of an exec for reading; see base/caplog.h. -AGX_NOT_FOUND: no such exec, or its log
 * was removed. */
int agx_manager_open_log(struct agx_manager *e, const char *exec_id, enum agx_stream stream,
                         int *ret_data_fd, int *ret_index_fd,
                         struct agx_error **err) AGX_MUST_CHECK;

struct agx_manager_stats {
    uint64_t by_state[AGX_STATE_COUNT];
    uint64_t active_execs, feeds, operations, abandoned, unreadable;
};
void agx_manager_stats(const struct agx_manager *e, struct agx_manager_stats *ret);

#endif

/*
 * engine.h: the daemon's heart: which sandboxes and execs there are, and everything that happens to
 * them, in order and durable.
 *
 * Requests are answered by a callback after their commit, refusals included; reads are answered at
 * once with what is committed. Whoever saw an event finds at least that state.
 * docs/design/daemon.md has the order of things. Loop thread only.
 */
#ifndef AGX_DAEMON_ENGINE_H
#define AGX_DAEMON_ENGINE_H

#include "backend/backend.h"
#include "base/limits.h"
#include "core/exec.h"
#include "store/store.h"

struct agx_engine;
struct agx_sources;

/* Spans and sizes come from the configuration; tests shorten them. */
struct agx_engine_config {
    struct agx_store *store;     /* opened with agx_schema_layout; outlives the engine */
    struct agx_backend *backend; /* likewise */
    const char *log_root;        /* directory of exec logs, 0700, exists; absolute */
    struct agx_spec_host host;   /* look NULL: the engine looks itself, on threads of its own */
    struct agx_sources *sources; /* by which it looks; NULL: only symlinks are judged */
    int64_t idle_ttl_ns, cleanup_ttl_ns;
    uint64_t sweep_ms; /* how often idle and clean-up times are looked at */
    uint64_t look_ms;  /* how often the backend is looked at without news */
    struct agx_watch_config watch;
    uint64_t create_ms, resume_ms, stop_ms, delete_ms, look_deadline_ms, exec_start_ms;
    uint64_t use_ms;     /* what a sandbox uses is asked for so long */
    uint64_t abandon_ms; /* from a cancel to the moment where an operation is given up */
    uint64_t stop_grace_ms, exec_grace_ms;
    uint64_t settle_ms; /* between the answer to a request and what it sets going; 0: nothing */
    uint64_t retry_first_ms, retry_max_ms; /* pauses before what failed is tried again */
    uint64_t log_head_max, log_tail_max;
    uint32_t sandboxes_per_uid, execs_per_uid; /* 0: no limit */
};

/* All but store, backend, log_root, the host's homes and our paths. */
#define AGX_ENGINE_CONFIG_INIT                                                                     \
    {                                                                                              \
        .idle_ttl_ns = AGX_IDLE_TTL_NS, .cleanup_ttl_ns = AGX_CLEANUP_TTL_NS,                      \
        .sweep_ms = AGX_SWEEP_MS, .look_ms = AGX_LOOK_MS, .watch = AGX_WATCH_CONFIG_INIT,          \
        .create_ms = AGX_CREATE_MS, .resume_ms = AGX_RESUME_SANDBOX_MS, .stop_ms = AGX_STOP_MS,    \
        .delete_ms = AGX_DELETE_MS, .look_deadline_ms = AGX_LOOK_DEADLINE_MS,                      \
        .exec_start_ms = AGX_EXEC_START_MS, .use_ms = AGX_USE_MS, .abandon_ms = AGX_ABANDON_MS,    \
        .stop_grace_ms = AGX_STOP_GRACE_MS, .exec_grace_ms = AGX_EXEC_GRACE_MS,                    \
        .retry_first_ms = AGX_RETRY_FIRST_MS, .retry_max_ms = AGX_RETRY_MAX_MS,                    \
        .log_head_max = AGX_EXEC_LOG_HEAD, .log_tail_max = AGX_EXEC_LOG_TAIL,                      \
        .sandboxes_per_uid = AGX_SANDBOXES_PER_UID, .execs_per_uid = AGX_EXECS_PER_UID             \
    }

/*
 * Loads the store, gives every record its restart, and serves; what the backend has to say comes
 * later and holds up nothing. A record that cannot be read is logged and left out.
 */
int agx_engine_open(struct agx_loop *l, const struct agx_engine_config *c,
                    struct agx_engine **ret_engine, struct agx_error **err) AGX_MUST_CHECK;

/* Takes no more inputs, waits for commits under way, abandons the backend's operations; sandboxes
 * run on. */
void agx_engine_close(struct agx_engine *e, agx_done_fn closed, void *user);

/* ---- reads ---- */

/* The sandbox as it is committed, borrowed until the callback in which this is called returns.
 * -AGX_NOT_FOUND with the reason's message. */
int agx_engine_find(struct agx_engine *e, const char *id, const struct agx_sandbox **ret,
                    struct agx_error **err) AGX_MUST_CHECK;

/*
 * Lists in the order of agx_sandbox_order(): calls `visit` for those behind the given place
 * (after_id NULL: from the first), at most `max`; 0: all. The sandbox of that place may be gone.
 * visit: 0 go on, positive: enough.
 */
typedef int (*agx_sandbox_visit_fn)(void *user, const struct agx_sandbox *sb);
void agx_engine_list(struct agx_engine *e, int64_t after_created_ns, const char *after_id,
                     size_t max, agx_sandbox_visit_fn visit, void *user);

/* An exec as it is committed, from memory while it is active, else from the store. The caller owns
 * it. `ret_sequence` is its sandbox's newest. */
int agx_engine_exec_find(struct agx_engine *e, const char *exec_id, struct agx_exec *ret,
                         uint64_t *ret_sequence, struct agx_error **err) AGX_MUST_CHECK;

/* Active execs by id, until `visit` returns something else than 0. `sandbox_id` NULL: of all;
 * `after_id` NULL: from the first, else those behind it. */
typedef int (*agx_exec_visit_fn)(void *user, const struct agx_exec *exec, uint64_t sequence);
void agx_engine_exec_list(struct agx_engine *e, const char *sandbox_id, const char *after_id,
                          agx_exec_visit_fn visit, void *user);

/* ---- requests ---- */

/* The answer to a request; error NULL: accepted. Everything is borrowed for the call, but for
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

/* Takes the spec, whether or not it is accepted; `id` NULL: a UUID. The checks of contract order
 * are made here (agx_spec_accept, id, backend's check, caps). The answer never comes inside. */
void agx_engine_create(struct agx_engine *e, uid_t uid, const char *id, struct agx_spec *take_spec,
                       agx_answer_fn answer, void *user);

/* `on`: AGX_ON_STOP, AGX_ON_RESUME or AGX_ON_DELETE. */
void agx_engine_ask(struct agx_engine *e, const char *id, enum agx_on on, agx_answer_fn answer,
                    void *user);

/* A command to be run. Takes the exec's contents (sandbox_id, command, cwd, env_overrides,
 * deadline_ns; id NULL: a UUID). */
void agx_engine_exec_create(struct agx_engine *e, uid_t uid, struct agx_exec *take_exec,
                            bool stdin_open, agx_answer_fn answer, void *user);
void agx_engine_exec_cancel(struct agx_engine *e, const char *exec_id, agx_answer_fn answer,
                            void *user);
/* Bytes for its input: `taken` when the next may come. */
int agx_engine_exec_write(struct agx_engine *e, const char *exec_id, struct agx_str data, bool eof,
                          agx_done_fn taken, void *user, struct agx_error **err) AGX_MUST_CHECK;

/* ---- events ---- */

/*
 * One reader of events: of a sandbox, or of all. It pulls: agx_feed_next() gives the next event
 * until there is none; `ready` tells when there is one again. So a slow reader costs nothing but
 * its place, and reads on from the store.
 */
struct agx_feed;
struct agx_feed_ops {
    /* There is something for agx_feed_next() again (also: the end). Never inside a call. */
    void (*ready)(void *user);
    /* Of all, and it has read everything: an image is being pulled. `position` is that of its last
     * event. Never inside a call. May be NULL. */
    void (*pull)(void *user, uint64_t position, const char *sandbox_id,
                 const struct agx_pull *pull);
};

/* `sandbox_id` NULL: all of them, and `from` is a position; else the sequence of the last event
 * that is already known. Does not check `from` (agx_event_check_from). -AGX_NOT_FOUND: no such
 * sandbox. */
int agx_feed_open(struct agx_engine *e, const char *sandbox_id, uint64_t from,
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

/* 1: *ret, borrowed until the next call for any feed or the turn's end; 0: nothing now; 2: the end,
 * the sandbox was purged and all its events were given; negative: the store failed. */
#define AGX_FEED_END 2
int agx_feed_next(struct agx_feed *f, struct agx_feed_item *ret,
                  struct agx_error **err) AGX_MUST_CHECK;

/* The newest position of all. */
uint64_t agx_engine_position(const struct agx_engine *e);

/* ---- logs ---- */

enum agx_stream { AGX_STREAM_OUT, AGX_STREAM_ERR };

/* Opens the log of an exec for reading; see base/caplog.h. -AGX_NOT_FOUND: no exec, or its log is
 * gone. */
int agx_engine_open_log(struct agx_engine *e, const char *exec_id, enum agx_stream stream,
                        int *ret_data_fd, int *ret_index_fd, struct agx_error **err) AGX_MUST_CHECK;

struct agx_engine_stats {
    uint64_t by_state[AGX_STATE_COUNT];
    uint64_t active_execs, feeds, operations, abandoned, unreadable;
};
void agx_engine_stats(const struct agx_engine *e, struct agx_engine_stats *ret);

#endif

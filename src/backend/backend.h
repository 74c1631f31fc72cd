/*
 * backend.h: what runs sandboxes: the vtable of a backend, and the calls that the daemon makes.
 *
 *     agx_backend_start(b, &request, &hooks, user, &op, err);    hooks->done follows, once
 *     agx_backend_cancel(op);                                    ends early; `done` reports it
 *
 * A backend knows sandboxes and execs by their ids. Every call can be repeated: creating what
 * exists, stopping what is stopped and deleting what is gone succeed, and starting an exec that was
 * started adopts it. So a restarted daemon continues by asking again, and nothing is done twice.
 *
 * Invariants that every backend keeps and tests/conformance/backend.c checks:
 *  (1) `done` comes exactly once for each call that returned 0, on the loop thread, never inside
 *      the call; no hook comes after it.
 *  (2) Operations on one sandbox do not overlap. While one runs (even if its `done` said that it
 *      was given up), the `done` of another reports -AGX_UNAVAILABLE.
 *  (3) An operation that hangs in one sandbox delays no other sandbox.
 *  (4) The spec and all strings of a request are copied before the call returns.
 *  (5) Sandboxes outlive the daemon: after agx_backend_close() or a kill -9 everything keeps
 *      running, and a new backend object finds it again.
 *  (6) It touches nothing that it did not make.
 *  (7) When `exited` or `gone` comes, the logs of that exec are complete.
 *
 * Loop thread only. The caller enforces deadlines: it cancels.
 */
#ifndef AGX_BACKEND_BACKEND_H
#define AGX_BACKEND_BACKEND_H

#include "core/exec.h"
#include "core/pull.h"
#include "core/reconcile.h"
#include "core/resource_usage.h"
#include "loop/loop.h"

struct agx_backend;

/* A call in progress, until its last hook. Embedded first by implementations. */
struct agx_backend_op {
    struct agx_backend *backend;
    const struct agx_backend_op_ops *ops; /* NULL: those of the backend */
};

/* For ops that another module made for the backend (init_client.h). */
struct agx_backend_op_ops {
    void (*cancel)(struct agx_backend_op *op);
    void (*abandon)(struct agx_backend_op *op);
};

/* An operation on a sandbox. */
struct agx_backend_request {
    enum agx_do verb;                  /* CREATE, RESUME, STOP, DELETE, REVIVE, HALT */
    const struct agx_sandbox *sandbox; /* id, spec; borrowed for the call */
    uint64_t grace_ms;                 /* STOP, DELETE, HALT: between SIGTERM and SIGKILL */
};

struct agx_backend_hooks {
    /* The work has begun: CREATE only (SANDBOX_PREPARING). May be NULL. */
    void (*begun)(void *user);
    /* CREATE, RESUME: a companion became ready (error NULL) or failed; `companion` is its index in
     * the spec. Later changes come as news. The callee owns `error`. May be NULL. */
    void (*companion)(void *user, size_t companion, struct agx_error *error);
    agx_done_fn done;
    /* CREATE: how far the pull of an image is; may be called any number of times. May be NULL. */
    void (*progress)(void *user, const struct agx_pull *pull);
};

/* Log files of one command. The backend duplicates the descriptors; the caller closes its own. */
struct agx_backend_log {
    int data_fd, index_fd; /* see base/caplog.h */
    uint64_t head_max, tail_max;
};

struct agx_backend_exec {
    const struct agx_sandbox *sandbox;
    const struct agx_exec *exec;
    bool stdin_open; /* input will come by agx_backend_write(); else the command reads /dev/null */
    struct agx_backend_log out, err;
};

/* `begun` comes at most once, and not for an exec that has already ended; then one of the others.
 * The callee owns `error`. All are required, except `unknown` of a start. */
struct agx_backend_exec_hooks {
    void (*begun)(void *user);                            /* it runs (started, or adopted) */
    void (*refused)(void *user, struct agx_error *error); /* START: could not be started; final */
    void (*unknown)(void *user);                          /* ADOPT: no such exec; final */
    void (*exited)(void *user, int32_t exit_code);        /* none of its processes is left; final */
    void (*lost)(void *user, struct agx_error *error);    /* the backend cannot tell; final */
};

/* The state of one sandbox in the backend. */
struct agx_backend_seen {
    const char *sandbox_id; /* borrowed for the call */
    enum agx_seen primary;
    bool remains;              /* the primary is MISSING, but other parts of the sandbox exist */
    const uint8_t *companions; /* enum agx_seen, in the order of the spec; may be short */
    size_t companions_len;
};

/* Called for each sandbox; for a single one exactly once (MISSING: none exists); then `done`. */
typedef void (*agx_backend_seen_fn)(void *user, const struct agx_backend_seen *seen);

/* Called for the primary (part 0) and for each existing companion (its index in the spec plus 1).
 * Then `done`. */
typedef void (*agx_backend_usage_fn)(void *user, size_t part, const struct agx_resource_usage *use);

/* This sandbox may have changed by itself: look at it. NULL: look at all of them. */
typedef void (*agx_backend_news_fn)(void *user, const char *sandbox_id);

struct agx_backend_ops {
    const char *name; /* "native" */
    int (*start)(struct agx_backend *b, const struct agx_backend_request *q,
                 const struct agx_backend_hooks *hooks, void *user, struct agx_backend_op **ret_op,
                 struct agx_error **err);
    void (*cancel)(struct agx_backend_op *op);
    void (*abandon)(struct agx_backend_op *op);
    int (*look)(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                struct agx_error **err);
    int (*exec_start)(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                      const struct agx_backend_exec_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err);
    int (*exec_kill)(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                     uint64_t grace_ms, agx_done_fn gone, void *user,
                     struct agx_backend_op **ret_op, struct agx_error **err);
    int (*exec_write)(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                      struct agx_str data, bool eof, agx_done_fn taken, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err);
    int (*forget_exec)(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                       struct agx_error **err);
    /* May be NULL: this backend does not measure resource usage. */
    int (*use)(struct agx_backend *b, const struct agx_sandbox *sandbox, agx_backend_usage_fn use,
               agx_done_fn done, void *user, struct agx_backend_op **ret_op,
               struct agx_error **err);
    /* Synchronous: refuses what it cannot provide (FAILED_PRECONDITION, field); adds warnings. */
    int (*check)(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                 struct agx_error **err);
    void (*close)(struct agx_backend *b, agx_done_fn closed, void *user);
};

/* Embedded first by implementations. */
struct agx_backend {
    const struct agx_backend_ops *ops;
    struct agx_loop *loop;
    agx_backend_news_fn news; /* set by the owner; NULL: none */
    void *news_user;
    bool closing;
};

/* The daemon makes the calls below; each checks its arguments and calls the op of the same name. */
int agx_backend_start(struct agx_backend *b, const struct agx_backend_request *q,
                      const struct agx_backend_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Asks for an early end; `done` still comes. What a CREATE made may be left for DELETE. Does
 * nothing to an exec: that is killed instead. */
void agx_backend_cancel(struct agx_backend_op *op);

/* No hook is called any more, and `op` must not be used again. Its work may continue: see (2). */
void agx_backend_abandon(struct agx_backend_op *op);

/* Looks at one sandbox, or (NULL) at all that the backend has, including those without a record. */
int agx_backend_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                     agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Starts a command, or (`adopt`) takes over one that an earlier daemon started. The op lives until
 * a final hook; abandoning it does not affect the command. */
int agx_backend_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                           const struct agx_backend_exec_hooks *hooks, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* SIGTERM to the whole group, SIGKILL after the grace period. `gone` comes when no process is left,
 * also when there was none or no such exec. The exec's own `exited` comes too, before or after. */
int agx_backend_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                          uint64_t grace_ms, agx_done_fn gone, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Bytes for its standard input, in order, up to AGX_BACKEND_WRITE_MAX; `taken` comes when the next
 * may follow. It reports -AGX_NOT_FOUND when there is no such exec, or its input is closed. */
int agx_backend_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                           struct agx_str data, bool eof, agx_done_fn taken, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* The daemon has stored the end of the exec: the backend need not remember it. No answer comes. */
int agx_backend_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            struct agx_error **err) AGX_MUST_CHECK;

/* Its current resource usage; only disk usage of stopped parts. Not an operation in the sense of
 * (2). -AGX_NOT_FOUND in `done`: no such sandbox. -AGX_UNIMPLEMENTED: not measured here. */
int agx_backend_usage(struct agx_backend *b, const struct agx_sandbox *sandbox,
                      agx_backend_usage_fn use, agx_done_fn done, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

int agx_backend_check(struct agx_backend *b, const struct agx_spec *spec,
                      struct agx_words *warnings, struct agx_error **err) AGX_MUST_CHECK;

/* Abandons what is in progress: no hook is called any more except `closed` (may be NULL), and the
 * backend is gone then. The sandboxes keep running. */
void agx_backend_close(struct agx_backend *b, agx_done_fn closed, void *user);

#endif

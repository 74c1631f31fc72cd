/*
 * backend.h: what makes sandboxes real: the vtable, and what the daemon calls.
 *
 *     agx_backend_start(b, &request, &hooks, user, &op, err);    hooks->done follows, once
 *     agx_backend_cancel(op);                                    it ends early, and says so
 *
 * A backend knows sandboxes and execs by their ids. Everything can be repeated: creating what is
 * there, stopping what stands, deleting what is gone succeeds; starting an exec that was started
 * adopts it. So a daemon that died carries on by asking again, and nothing is done twice.
 *
 * Invariants that every backend keeps and tests/conformance/backend.c checks:
 *  (1) `done` comes exactly once for each call that returned 0, on the loop thread, never inside
 *      the call; no hook comes after it.
 *  (2) Operations on one sandbox do not overlap. While one runs (also one whose `done` said
 *      that it was given up) another is refused in its `done` with -AGX_UNAVAILABLE.
 *  (3) What hangs in one sandbox holds up no other.
 *  (4) The spec and all strings of a request are copied before the call returns.
 *  (5) Its world outlives the daemon: after agx_backend_close(), or a kill -9, everything runs on,
 *      and a new backend object on the same world finds it.
 *  (6) Nothing it did not make is touched.
 *  (7) When `exited` comes, or `gone`, the logs of that exec are complete.
 *
 * Loop thread only. Deadlines are the caller's: it cancels.
 */
#ifndef AGX_BACKEND_BACKEND_H
#define AGX_BACKEND_BACKEND_H

#include "core/exec.h"
#include "core/pull.h"
#include "core/reconcile.h"
#include "core/use.h"
#include "loop/loop.h"

struct agx_backend;

/* What a call started, until its last hook. Embedded first by implementations. */
struct agx_backend_op {
    struct agx_backend *backend;
    const struct agx_backend_op_ops *ops; /* NULL: the backend's own */
};

/* Of ops that something else than the backend itself made (attend.h). */
struct agx_backend_op_ops {
    void (*cancel)(struct agx_backend_op *op);
    void (*abandon)(struct agx_backend_op *op);
};

/* An operation on a sandbox. */
struct agx_backend_request {
    enum agx_do verb;                  /* CREATE, RESUME, STOP, DELETE, REVIVE, HALT */
    const struct agx_sandbox *sandbox; /* id, spec; borrowed for the call */
    uint64_t grace_ms;                 /* STOP, DELETE, HALT: between TERM and KILL */
};

struct agx_backend_hooks {
    /* The work has really begun: CREATE only (SANDBOX_PREPARING). May be NULL. */
    void (*begun)(void *user);
    /* CREATE, RESUME: a companion became ready (error NULL) or failed; `companion` is its place in
     * the spec. What happens to it after `done` is news. The callee owns `error`. May be NULL. */
    void (*companion)(void *user, size_t companion, struct agx_error *error);
    agx_done_fn done;
    /* CREATE: an image is being pulled, and is so far; as often as it likes. May be NULL. */
    void (*progress)(void *user, const struct agx_pull *pull);
};

/* One command. Descriptors are duplicated by the backend; the caller closes its own. */
struct agx_backend_log {
    int data_fd, index_fd; /* see base/caplog.h */
    uint64_t head_max, tail_max;
};

struct agx_backend_exec {
    const struct agx_sandbox *sandbox;
    const struct agx_exec *exec;
    bool stdin_open; /* bytes will come by agx_backend_write(); else it reads /dev/null */
    struct agx_backend_log out, err;
};

/* `begun` at most once, and not for one that is found at its end; then one of the others. The
 * callee owns `error`. All but `unknown` of a start are required. */
struct agx_backend_exec_hooks {
    void (*begun)(void *user);                            /* it runs (started, or adopted) */
    void (*refused)(void *user, struct agx_error *error); /* START: could not be started; the end */
    void (*unknown)(void *user);                          /* ADOPT: no such exec; the end */
    void (*exited)(void *user, int32_t exit_code);        /* no process of it is left; the end */
    void (*lost)(void *user, struct agx_error *error);    /* the backend cannot say; the end */
};

/* What the backend has of one sandbox. */
struct agx_backend_seen {
    const char *sandbox_id; /* borrowed for the call */
    enum agx_seen primary;
    bool remains;              /* the primary is MISSING, and something else of it is there */
    const uint8_t *companions; /* enum agx_seen, in the order of the spec; may be short */
    size_t companions_len;
};

/* Called for each, of a single one exactly once (MISSING: there is none); then `done`. */
typedef void (*agx_backend_seen_fn)(void *user, const struct agx_backend_seen *seen);

/* Called for the primary, which is part 0, and for each companion that there is, whose part is its
 * place in the spec and one; then `done`. */
typedef void (*agx_backend_use_fn)(void *user, size_t part, const struct agx_use *use);

/* Something about this sandbox may have changed by itself: look at it. NULL: at all of them. */
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
    /* May be NULL: this backend counts nothing. */
    int (*use)(struct agx_backend *b, const struct agx_sandbox *sandbox, agx_backend_use_fn use,
               agx_done_fn done, void *user, struct agx_backend_op **ret_op,
               struct agx_error **err);
    /* At once: refuses what it cannot give (FAILED_PRECONDITION, the field); adds warnings. */
    int (*check)(struct agx_backend *b, const struct agx_spec *spec, struct agx_words *warnings,
                 struct agx_error **err);
    void (*close)(struct agx_backend *b, agx_done_fn closed, void *user);
};

/* Embedded first by implementations. */
struct agx_backend {
    const struct agx_backend_ops *ops;
    struct agx_loop *loop;
    agx_backend_news_fn news; /* its owner's; NULL: nobody listens */
    void *news_user;
    bool closing;
};

/* The calls below are the daemon's; each is its op's with the arguments checked. */
int agx_backend_start(struct agx_backend *b, const struct agx_backend_request *q,
                      const struct agx_backend_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Asks for an early end; `done` still comes. Of a CREATE what was made may be left for DELETE. An
 * exec's op is not cancelled but killed: nothing happens. */
void agx_backend_cancel(struct agx_backend_op *op);

/* No hook will come any more, and `op` is dead for the caller. What it did may go on: see (2). */
void agx_backend_abandon(struct agx_backend_op *op);

/* Looks at one sandbox, or (NULL) at all that the backend has, also those without a record. */
int agx_backend_look(struct agx_backend *b, const char *sandbox_id, agx_backend_seen_fn seen,
                     agx_done_fn done, void *user, struct agx_backend_op **ret_op,
                     struct agx_error **err) AGX_MUST_CHECK;

/* Starts a command, or (`adopt`) takes up one that an earlier daemon started. The op lives until an
 * end hook; abandoning it leaves the command alone. */
int agx_backend_exec_start(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                           const struct agx_backend_exec_hooks *hooks, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* TERM to the whole group, after the grace KILL; `gone` when no process is left, also when there
 * was none or no such exec. The exec's own `exited` comes too, before or after. */
int agx_backend_exec_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                          uint64_t grace_ms, agx_done_fn gone, void *user,
                          struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* Bytes for its standard input, in order, up to AGX_BACKEND_WRITE_MAX; `taken` when the next may
 * come. -AGX_NOT_FOUND in it: no such exec, or its input is closed. */
int agx_backend_exec_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                           struct agx_str data, bool eof, agx_done_fn taken, void *user,
                           struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

/* The end of an exec is durable with us: the backend need not remember it. Without an answer. */
int agx_backend_forget_exec(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                            struct agx_error **err) AGX_MUST_CHECK;

/* What it uses now; of what does not run its disk alone. Not an operation in the sense of (2).
 * -AGX_NOT_FOUND in `done`: there is none. -AGX_UNIMPLEMENTED: the backend does not count. */
int agx_backend_use(struct agx_backend *b, const struct agx_sandbox *sandbox,
                    agx_backend_use_fn use, agx_done_fn done, void *user,
                    struct agx_backend_op **ret_op, struct agx_error **err) AGX_MUST_CHECK;

int agx_backend_check(struct agx_backend *b, const struct agx_spec *spec,
                      struct agx_words *warnings, struct agx_error **err) AGX_MUST_CHECK;

/* Abandons what runs: no hook comes any more but `closed` (may be NULL), and the backend is gone
 * then. The world goes on. */
void agx_backend_close(struct agx_backend *b, agx_done_fn closed, void *user);

#endif

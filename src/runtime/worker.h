/*
 * worker.h: the worker process of a server: started at once, restarted when it dies, with frames on
 * two private sockets. User code never runs in the server's process, and the worker's death is an
 * event, not an error.
 *
 *                start             ready frame
 *   DOWN ------------------> BOOTING ---------> READY
 *     ^   (growing delay)       |                 |
 *     +------ exit, protocol error, boot timeout -+        stop: from each state --> STOPPING -->
 * STOPPED
 *
 * Invariants:
 *  (1) agx_worker_out() always returns a buffer: without a process, frames wait in it for the next
 *      one;
 *  (2) when a process is gone, its waiting frames are dropped, and gone() has been called once for
 *      it;
 *  (3) no process of the worker's group is left when it is STOPPED.
 * Loop thread only.
 */
#ifndef AGX_RUNTIME_WORKER_H
#define AGX_RUNTIME_WORKER_H

#include "base/buf.h"
#include "base/limits.h"
#include "codec/remote_call.h"

struct agx_loop;
struct agx_conn_group;
struct agx_worker;

struct agx_worker_config {
    const char *const *argv;  /* argv[0] is the program's path; ends with NULL */
    const char *const *env;   /* the whole environment; AGENTIX_WORKER_FDS is added */
    int stdout_fd, stderr_fd; /* where its output goes; borrowed */
    size_t max_frame;
    uint64_t boot_ms;        /* how long it may take to get ready */
    uint64_t restart_max_ms; /* the longest pause before a restart */
};
#define AGX_WORKER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .stdout_fd = -1, .stderr_fd = -1, .max_frame = AGX_MESSAGE_MAX + AGX_FRAME_EXTRA,          \
        .boot_ms = AGX_WORKER_BOOT_MS, .restart_max_ms = AGX_WORKER_RESTART_MAX_MS                 \
    }

struct agx_worker_ops {
    /* Any frame except `ready` and `boot_error`. On failure the worker is killed. */
    int (*frame)(void *user, struct agx_str frame, struct agx_error **err);
    /*
     * The process is gone, or could not be started: type WorkerExited or WorkerUnavailable, and a
     * message for people; `returncode` is the exit code, -signal, or INT_MIN without a process.
     */
    void (*gone)(void *user, struct agx_str type, const char *message, int returncode);
    /* It is ready; `name` identifies it ("python 3.11.2"). */
    void (*ready)(void *user, struct agx_str name);
    /* All is sent, after much had been waiting. */
    void (*drained)(void *user);
};

/* Makes a worker; its first process starts in the next turn. The strings of `config` and `ops` are
 * borrowed for its life. */
struct agx_worker *agx_worker_open(struct agx_loop *l, struct agx_conn_group *g,
                                   const struct agx_worker_config *config,
                                   const struct agx_worker_ops *ops, void *user);

/* Where to append frames; see (1). Borrowed; valid until the loop's next turn. */
struct agx_buf *agx_worker_out(struct agx_worker *w, enum agx_remote_lane lane);
/* Bytes that wait in both lanes. */
size_t agx_worker_queued(const struct agx_worker *w);
bool agx_worker_is_ready(const struct agx_worker *w);
/* The pid, or -1. */
int agx_worker_pid(const struct agx_worker *w);

/*
 * Asks it to end, kills its group after `grace_ms`, and calls `stopped` when no process is left;
 * the worker is then freed. No other callback follows.
 */
void agx_worker_stop(struct agx_worker *w, uint64_t grace_ms, void (*stopped)(void *user),
                     void *user);

#endif

/* worker.c: see worker.h for the states and invariants. */
#include "runtime/worker.h"

#include "base/banned.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "codec/frame.h"
#include "codec/mp_fields.h"
#include "loop/child.h"
#include "loop/conn.h"
#include "loop/loop.h"

#include <assert.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    DRAIN_MS = 500,        /* time to read a dead worker's sockets */
    DRAIN_TURNS = 16,      /* and at least this many turns: more than a socket holds */
    FIRST_FD = 3,          /* the lanes' descriptors in the child, after 0, 1 and 2 */
    RESTART_FIRST_MS = 50, /* the pause after a second death in a row; it doubles from there */
    STABLE_MS = 10000,     /* after this time a worker is restarted without a pause */
};

enum state { DOWN, BOOTING, READY, STOPPING };

struct lane {
    struct agx_worker *worker;
    struct agx_conn *conn;  /* NULL: no process, or its socket is closed */
    struct agx_buf waiting; /* (1): frames for the next process */
    struct agx_frame_decoder decoder;
};

struct agx_worker {
    struct agx_loop *loop;
    struct agx_conn_group *group;
    struct agx_worker_config config;
    const struct agx_worker_ops *ops;
    void *user;
    enum state state;
    struct agx_child *child; /* NULL: none */
    struct lane lanes[AGX_LANE_COUNT];
    uv_timer_t timer; /* restart, boot deadline or stop's grace, by state */
    uint64_t started_ms;
    uint64_t pause_ms; /* before the next start */
    bool was_ready;    /* this process reached READY */
    bool exited;       /* it exited with `status`; its last frames are being read */
    unsigned n_turns;  /* turns of the loop since DRAIN_MS passed */
    struct agx_child_status status;
    char *why;  /* owned; the reason of its end besides its exit code */
    char **env; /* owned array; the config owns all strings but the last */
    void (*stopped)(void *user);
    void *stopped_user;
};

static void start_process(struct agx_worker *w);
static void bury(struct agx_worker *w);

static bool has_lane(const struct agx_worker *w)
{
    return w->lanes[AGX_LANE_LOOP].conn || w->lanes[AGX_LANE_THREAD].conn;
}

struct agx_buf *agx_worker_out(struct agx_worker *w, enum agx_remote_lane lane)
{
    struct lane *l = &w->lanes[lane];

    return l->conn ? agx_conn_out(l->conn) : &l->waiting;
}

size_t agx_worker_queued(const struct agx_worker *w)
{
    size_t n = 0;

    for (int i = 0; i < AGX_LANE_COUNT; i++)
        n += w->lanes[i].waiting.len + (w->lanes[i].conn ? agx_conn_queued(w->lanes[i].conn) : 0);
    return n;
}

bool agx_worker_is_ready(const struct agx_worker *w)
{
    return w->state == READY;
}

int agx_worker_pid(const struct agx_worker *w)
{
    return w->child ? (int)agx_child_pid(w->child) : -1;
}

/* Stores the first reason; the exit code follows it. */
static void set_why(struct agx_worker *w, const struct agx_error *err)
{
    char text[512];

    if (w->why || !err)
        return;
    w->why = agx_str_dup(agx_str_from(agx_error_format(err, text, sizeof(text))));
}

/* It violates the protocol, or takes too long: kills it and ignores further frames. */
static void condemn(struct agx_worker *w, const struct agx_error *err)
{
    set_why(w, err);
    if (w->child)
        agx_child_kill_group(w->child, SIGKILL);
}

/* Takes the message of an error object, for logs and waiting callers. */
static void on_boot_error(struct agx_worker *w, struct agx_str error)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) },
                                { AGX_STR("message"), AGX_MP_BIT(AGX_MP_STR) } };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    if (agx_mp_read_fields(error, &limits, f, 2, NULL) < 0)
        return;
    (void)agx_error_set(&err, AGX_UNAVAILABLE, "%.*s: %.*s", AGX_STR_ARG(f[0].value.bytes),
                        AGX_STR_ARG(f[1].value.bytes));
    set_why(w, err);
}

static void on_silence(uv_timer_t *t)
{
    struct agx_worker *w = container_of(t, struct agx_worker, timer);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    (void)agx_error_set(&err, AGX_UNAVAILABLE, "it closed its socket but did not exit");
    condemn(w, err);
}

enum { TYPE, NAME, ERROR };

/* True if the frame was about the worker itself. */
static bool on_own_frame(struct agx_worker *w, struct agx_str frame)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = {
        [TYPE] = { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) },
        [NAME] = { AGX_STR("name"), AGX_MP_BIT(AGX_MP_STR) },
        [ERROR] = { AGX_STR("error"), AGX_MP_BIT(AGX_MP_MAP) },
    };

    if (agx_mp_read_fields(frame, &limits, f, AGX_ARRAY_LEN(f), NULL) < 0 || !f[TYPE].present)
        return false;
    if (agx_str_eq(f[TYPE].value.bytes, AGX_STR("boot_error"))) {
        if (f[ERROR].present)
            on_boot_error(w, f[ERROR].raw);
        uv_timer_start(&w->timer, on_silence, AGX_WORKER_GRACE_MS, 0);
        return true;
    }
    if (!agx_str_eq(f[TYPE].value.bytes, AGX_STR("ready")))
        return false;
    if (w->state == BOOTING) {
        w->state = READY;
        w->was_ready = true;
        uv_timer_stop(&w->timer);
        w->ops->ready(w->user, f[NAME].present ? f[NAME].value.bytes : AGX_STR("unknown"));
    }
    return true;
}

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct lane *lane = user;
    struct agx_worker *w = lane->worker;
    struct agx_str in = agx_str_bytes(data, len), frame;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int r;

    if (w->state == STOPPING || w->why)
        return len;
    while ((r = agx_frame_decoder_next(&lane->decoder, &in, &frame, &err)) > 0) {
        if (w->state == BOOTING && on_own_frame(w, frame))
            continue;
        r = w->ops->frame(w->user, frame, &err);
        if (r < 0)
            break;
    }
    if (r < 0)
        condemn(w, err);
    return len;
}

/* The exit code is more informative than the socket's end: wait for it, with a limit. */
static void on_lane_closed(void *user, struct agx_error *error)
{
    struct lane *lane = user;
    struct agx_worker *w = lane->worker;

    lane->conn = NULL;
    agx_error_free(error);
    if (w->exited) {
        if (!has_lane(w))
            bury(w);
        return;
    }
    if (w->state == BOOTING || w->state == READY)
        (void)uv_timer_start(&w->timer, on_silence, AGX_WORKER_GRACE_MS, 0);
}

static void on_lane_drained(void *user)
{
    struct agx_worker *w = ((struct lane *)user)->worker;

    w->ops->drained(w->user);
}

static const struct agx_conn_ops lane_ops = {
    .data = on_data,
    .drained = on_lane_drained,
    .closed = on_lane_closed,
};

/* The user of a lane whose process is gone: the connection closes by itself. */
static void on_orphan_closed(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

static size_t on_orphan_data(void *user, uint8_t *data, size_t len)
{
    (void)user;
    (void)data;
    return len;
}

static const struct agx_conn_ops orphan_ops = { .data = on_orphan_data,
                                                .closed = on_orphan_closed };

static void close_lanes(struct agx_worker *w)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++) {
        struct lane *lane = &w->lanes[i];

        if (lane->conn) {
            agx_conn_hand_over(lane->conn, &orphan_ops, NULL);
            agx_conn_abort(lane->conn, NULL);
            lane->conn = NULL;
        }
        agx_buf_done(&lane->waiting);
        agx_frame_decoder_done(&lane->decoder);
        agx_frame_decoder_init(&lane->decoder, w->config.max_frame);
    }
}

static void on_timer_closed(uv_handle_t *h)
{
    struct agx_worker *w = container_of((uv_timer_t *)h, struct agx_worker, timer);

    if (w->stopped)
        w->stopped(w->stopped_user);
    free(w->why);
    free(w->env[0]);
    free(w->env);
    free(w);
}

static void worker_finish(struct agx_worker *w)
{
    close_lanes(w);
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_frame_decoder_done(&w->lanes[i].decoder);
    uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

static void on_restart_due(uv_timer_t *t)
{
    start_process(container_of(t, struct agx_worker, timer));
}

static void on_boot_timeout(uv_timer_t *t)
{
    struct agx_worker *w = container_of(t, struct agx_worker, timer);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    (void)agx_error_set(&err, AGX_DEADLINE_EXCEEDED, "not ready after %llu ms",
                        (unsigned long long)w->config.boot_ms);
    condemn(w, err);
}

/* Reports the end, and schedules the next start: at once after a long life, with growing pauses
 * after short ones. */
static void go_down(struct agx_worker *w, int returncode, const char *message)
{
    uint64_t lived = uv_now(agx_loop_uv(w->loop)) - w->started_ms;
    uint64_t pause = w->was_ready && lived >= STABLE_MS ? 0 : w->pause_ms;

    close_lanes(w);
    w->pause_ms = pause == 0 ? RESTART_FIRST_MS : AGX_MIN(pause * 2, w->config.restart_max_ms);
    w->state = DOWN;
    AGX_LOG(AGX_LOG_WARN, "worker.gone", AGX_F_STR("why", message),
            AGX_F_INT("returncode", returncode), AGX_F_UINT("restart_ms", pause));
    uv_timer_start(&w->timer, on_restart_due, pause, 0);
    w->ops->gone(w->user, w->was_ready ? AGX_STR("WorkerExited") : AGX_STR("WorkerUnavailable"),
                 message, returncode);
}

/* The process is gone and all its output was read: reports how it ended. */
static void bury(struct agx_worker *w)
{
    const struct agx_child_status *status = &w->status;
    int returncode = status->signo > 0 ? -status->signo : status->code;
    _cleanup_free_ char *why = AGX_TAKE_PTR(w->why);
    char text[700];

    w->exited = false;
    if (status->signo > 0)
        (void)snprintf(text, sizeof(text), "runtime worker was killed by signal %d (%s)%s%s",
                       status->signo, strsignal(status->signo), why ? ": " : "", why ? why : "");
    else
        (void)snprintf(text, sizeof(text), "runtime worker exited with code %d%s%s%s", status->code,
                       w->was_ready ? "" : " before it was ready", why ? ": " : "", why ? why : "");
    go_down(w, returncode, text);
}

/* A delayed loop may not have read the sockets yet. */
static void on_drained_long_enough(uv_timer_t *t)
{
    struct agx_worker *w = container_of(t, struct agx_worker, timer);

    if (w->n_turns++ < DRAIN_TURNS)
        uv_timer_start(t, on_drained_long_enough, 1, 0);
    else
        bury(w);
}

/* Answers that it sent before its death count: read them first. */
static void on_exit_status(void *user, const struct agx_child_status *status)
{
    struct agx_worker *w = user;

    w->child = NULL;
    w->status = *status;
    if (w->state == STOPPING) {
        worker_finish(w);
        return;
    }
    w->exited = true;
    w->n_turns = 0;
    if (has_lane(w))
        uv_timer_start(&w->timer, on_drained_long_enough, DRAIN_MS, 0);
    else
        bury(w);
}

/* A socketpair for each lane: ours becomes a connection, theirs[] are for the child. */
static int open_lanes(struct agx_worker *w, int theirs[AGX_LANE_COUNT], struct agx_error **err)
{
    for (int i = 0; i < AGX_LANE_COUNT; i++) {
        struct lane *lane = &w->lanes[i];
        int pair[2], r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            return agx_error_errno(err, errno, "make a socket for the worker");
        theirs[i] = pair[1];
        r = agx_fd_set_nonblock(pair[0], true, err);
        if (r == 0)
            r = agx_conn_open(w->group, &pair[0], &lane_ops, lane, &lane->conn, err);
        agx_closep(&pair[0]);
        if (r < 0)
            return r;
        if (agx_buf_append(agx_conn_out(lane->conn), agx_buf_peek(&lane->waiting)) < 0)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "too much waits for the worker");
        agx_buf_done(&lane->waiting);
    }
    return 0;
}

static int worker_spawn(struct agx_worker *w, struct agx_error **err)
{
    int theirs[AGX_LANE_COUNT] = { -1, -1 }, r;
    struct agx_child_fd fds[] = {
        { w->config.stdout_fd, 1 },
        { w->config.stderr_fd, 2 },
        { -1, FIRST_FD },
        { -1, FIRST_FD + 1 },
    };
    struct agx_child_params params = {
        .file = w->config.argv[0],
        .argv = w->config.argv,
        .env = (const char *const *)w->env,
        .fds = fds,
        .n_fds = AGX_ARRAY_LEN(fds),
        .group = AGX_CHILD_NEW_SESSION,
        .end_group = true,
    };

    r = open_lanes(w, theirs, err);
    if (r == 0) {
        fds[2].ours = theirs[AGX_LANE_LOOP];
        fds[3].ours = theirs[AGX_LANE_THREAD];
        r = agx_child_start(w->loop, &params, on_exit_status, w, &w->child, err);
    }
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_closep(&theirs[i]);
    return r;
}

static void start_process(struct agx_worker *w)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[700];

    w->was_ready = false;
    w->started_ms = uv_now(agx_loop_uv(w->loop));
    w->state = BOOTING;
    if (worker_spawn(w, &err) < 0) {
        go_down(w, INT_MIN, agx_error_format(err, text, sizeof(text)));
        return;
    }
    uv_timer_start(&w->timer, on_boot_timeout, w->config.boot_ms, 0);
}

/* The environment plus the lanes' descriptor numbers. */
static char **make_env(const char *const *env)
{
    size_t n = 0;
    char **out;

    while (env && env[n])
        n++;
    out = agx_alloc((n + 2) * sizeof(char *));
    if (asprintf(&out[0], "AGENTIX_WORKER_FDS=%d,%d", FIRST_FD, FIRST_FD + 1) < 0)
        abort();
    for (size_t i = 0; i < n; i++)
        out[i + 1] = (char *)env[i];
    return out;
}

struct agx_worker *agx_worker_open(struct agx_loop *l, struct agx_conn_group *g,
                                   const struct agx_worker_config *config,
                                   const struct agx_worker_ops *ops, void *user)
{
    struct agx_worker *w = agx_new(struct agx_worker);

    w->loop = l;
    w->group = g;
    w->config = *config;
    w->ops = ops;
    w->user = user;
    w->env = make_env(config->env);
    for (int i = 0; i < AGX_LANE_COUNT; i++) {
        w->lanes[i].worker = w;
        w->lanes[i].waiting = (struct agx_buf)AGX_BUF_INIT(2 * config->max_frame);
        agx_frame_decoder_init(&w->lanes[i].decoder, config->max_frame);
    }
    (void)uv_timer_init(agx_loop_uv(l), &w->timer);
    (void)uv_timer_start(&w->timer, on_restart_due, 0, 0);
    return w;
}

/* Best effort: a worker that does not read it is killed after the grace. */
static void send_shutdown(struct agx_worker *w, uint64_t grace_ms)
{
    struct agx_mp_writer m;

    agx_frame_begin(&m, agx_worker_out(w, AGX_LANE_LOOP));
    agx_mp_write_map(&m, 2);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, AGX_STR("shutdown"));
    agx_mp_write_str(&m, AGX_STR("grace_ms"));
    agx_mp_write_uint(&m, grace_ms);
    (void)!agx_frame_end(&m, w->config.max_frame, NULL);
}

static void on_grace_over(uv_timer_t *t)
{
    struct agx_worker *w = container_of(t, struct agx_worker, timer);

    if (w->child)
        agx_child_kill_group(w->child, SIGKILL);
}

void agx_worker_stop(struct agx_worker *w, uint64_t grace_ms, void (*stopped)(void *user),
                     void *user)
{
    assert(w->state != STOPPING);
    w->stopped = stopped;
    w->stopped_user = user;
    uv_timer_stop(&w->timer);
    w->state = STOPPING;
    if (!w->child) {
        worker_finish(w);
        return;
    }
    send_shutdown(w, grace_ms);
    uv_timer_start(&w->timer, on_grace_over, grace_ms, 0);
}

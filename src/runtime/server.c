/* server.c: joins the subsystems of agentix-server; see server.h. Loop thread only. */
#include "runtime/server_internal.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "codec/sio.h"
#include "codec/ws.h"
#include "loop/listener.h"
#include "loop/loop.h"

#include <fcntl.h>
#include <stdio.h>

enum { DRAIN_LOOK_MS = 20 }; /* how often a draining server checks whether its calls have ended */

uint64_t agx_server_now(const struct agx_server *s)
{
    return uv_now(agx_loop_uv(s->loop));
}

/* --- Engine.IO sessions are peers --- */

static void on_session(void *user, struct agx_eio_session *session, const struct agx_exchange *x)
{
    struct agx_server *s = user;

    agx_eio_session_set_user(
        session, agx_sio_conn_new(s, session, agx_server_has_token(s, &x->head), x->net));
}

static void on_message(void *user, struct agx_eio_session *session, const struct agx_eio_packet *p)
{
    struct agx_server *s = user;

    agx_spin_touch(s->spin);
    agx_sio_conn_message(agx_eio_session_user(session), p);
}

static void on_session_drained(void *user, struct agx_eio_session *session)
{
    (void)user;
    agx_sio_conn_drained(agx_eio_session_user(session));
}

static void on_session_close(void *user, struct agx_eio_session *session, const char *reason)
{
    (void)user;
    AGX_LOG(AGX_LOG_DEBUG, "client.gone", AGX_F_STR("why", reason));
    agx_sio_conn_gone(agx_eio_session_user(session));
}

static const struct agx_eio_server_ops eio_ops = {
    .open = on_session,
    .message = on_message,
    .drained = on_session_drained,
    .close = on_session_close,
};

/* --- the router's output --- */

static void on_emit(void *user, void *conn, enum agx_remote_event ev, const struct agx_str *parts,
                    size_t n_parts)
{
    (void)user;
    agx_sio_conn_emit(conn, ev, parts, n_parts);
}

static size_t on_queued(void *user, void *conn)
{
    (void)user;
    return agx_eio_session_queued(((struct agx_sio_conn *)conn)->session);
}

static struct agx_buf *on_lane(void *user, enum agx_remote_lane lane)
{
    return agx_worker_out(((struct agx_server *)user)->worker, lane);
}

static const struct agx_router_io router_io = { on_emit, on_queued, on_lane };

/* --- the worker --- */

static void resume_peers(struct agx_server *s)
{
    AGX_LIST_FOR_EACH (struct agx_sio_conn, p, &s->peers, node) {
        if (!p->paused || p->closing)
            continue;
        p->paused = false;
        agx_eio_session_resume(p->session);
    }
}

static int on_frame(void *user, struct agx_str frame, struct agx_error **err)
{
    struct agx_server *s = user;

    agx_spin_touch(s->spin);
    return agx_router_frame(s->router, frame, err);
}

/* Often only its output shows why it could not start, so add its last line. */
static void on_worker_gone(void *user, struct agx_str type, const char *message, int returncode)
{
    struct agx_server *s = user;
    struct agx_str said;
    char text[1000];

    agx_capture_read(s->captures[0]);
    agx_capture_read(s->captures[1]);
    said = agx_wlog_peek_last(s->wlog, s->worker_log_from);
    s->worker_log_from = agx_wlog_next(s->wlog);
    if (agx_str_eq(type, AGX_STR("WorkerUnavailable")) && said.len > 0) {
        (void)snprintf(text, sizeof(text), "%s: %.*s", message, AGX_STR_ARG(said));
        message = text;
    }
    agx_router_worker_gone(s->router, type, message, returncode);
    resume_peers(s);
}

static void on_worker_ready(void *user, struct agx_str name)
{
    struct agx_server *s = user;

    AGX_LOG(AGX_LOG_INFO, "worker.ready", AGX_F_TEXT("name", name),
            AGX_F_INT("pid", agx_worker_pid(s->worker)));
}

static void on_worker_drained(void *user)
{
    resume_peers(user);
}

static const struct agx_worker_ops worker_ops = {
    .frame = on_frame,
    .gone = on_worker_gone,
    .ready = on_worker_ready,
    .drained = on_worker_drained,
};

static void on_output(struct agx_server *s, enum agx_wlog_stream stream, struct agx_str line)
{
    agx_wlog_append(s->wlog, stream, line, (uint64_t)(agx_clock_wall_ns() / 1000000));
    AGX_LIST_FOR_EACH (struct agx_sio_conn, p, &s->peers, node)
        agx_sio_conn_pump_log(p);
}

static void on_stdout(void *user, struct agx_str line)
{
    on_output(user, AGX_WLOG_STDOUT, line);
}

static void on_stderr(void *user, struct agx_str line)
{
    on_output(user, AGX_WLOG_STDERR, line);
}

/* --- deadlines --- */

static void close_unproven(struct agx_server *s, uint64_t now_ms, uint64_t *next_ms)
{
    AGX_LIST_FOR_EACH (struct agx_sio_conn, p, &s->peers, node) {
        if (p->proven || p->closing)
            continue;
        if (p->prove_by_ms <= now_ms)
            agx_sio_conn_close(p, AGX_WS_POLICY, "no token in time");
        else
            *next_ms = AGX_MIN(*next_ms, p->prove_by_ms);
    }
}

static void on_tick(uv_timer_t *t)
{
    agx_server_plan_tick(container_of(t, struct agx_server, tick));
}

void agx_server_plan_tick(struct agx_server *s)
{
    uint64_t now = agx_server_now(s), next = agx_router_tick(s->router, now);

    if (s->n_unproven > 0)
        close_unproven(s, now, &next);
    if (s->state >= SERVER_STOPPING || next == UINT64_MAX)
        uv_timer_stop(&s->tick);
    else
        (void)uv_timer_start(&s->tick, on_tick, next > now ? next - now : 0, 0);
}

/* --- start --- */

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    struct agx_server *s = user;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    if (agx_http_server_accept(s->http, &fd, agx_server_access_from(s, fd, peer),
                               agx_server_access_net(peer), &err) < 0)
        AGX_LOG(AGX_LOG_WARN, "client.refused", AGX_F_ERR(err));
    agx_closep(&fd);
}

/* For a start with port 0. Written atomically, because others may already poll for it. */
static int write_port(const struct agx_server *s, struct agx_error **err)
{
    const char *path = s->config->port_file, *slash = strrchr(path, '/');
    _cleanup_free_ char *dir =
        agx_str_dup(slash ? agx_str_bytes(path, (size_t)(slash - path) + 1) : AGX_STR("."));
    _cleanup_close_ int dir_fd = dir ? open(dir, O_DIRECTORY | O_PATH | O_CLOEXEC) : -1;
    char text[16];
    int n = snprintf(text, sizeof(text), "%u\n",
                     (unsigned)agx_addr_port(agx_listener_peek_addr(s->listeners[0])));

    if (dir_fd < 0)
        return agx_error_errno(err, errno, "open the directory of '%s'", path);
    return agx_path_write_file(dir_fd, slash ? slash + 1 : path, agx_str_bytes(text, (size_t)n),
                               0644, err);
}

static int open_listeners(struct agx_server *s, struct agx_error **err)
{
    const struct agx_server_config *config = s->config;
    int r = 0;

    if (config->host)
        r = agx_listener_open_tcp(s->loop, config->host, config->port, &s->listeners[0], err);
    if (r == 0 && config->socket_path)
        r = agx_listener_open_unix(s->loop, config->socket_path, &s->listeners[1], err);
    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(s->listeners); i++) {
        char text[160];

        if (!s->listeners[i])
            continue;
        r = agx_listener_start(s->listeners[i], on_accept, s, err);
        if (r == 0)
            AGX_LOG(AGX_LOG_INFO, "server.listening",
                    AGX_F_STR("address", agx_addr_format(agx_listener_peek_addr(s->listeners[i]),
                                                         text, sizeof(text))));
    }
    if (r == 0 && config->port_file && s->listeners[0])
        r = write_port(s, err);
    return r;
}

static int open_worker(struct agx_server *s, struct agx_error **err)
{
    struct agx_worker_config config = AGX_WORKER_CONFIG_INIT;
    int r = agx_capture_open(s->loop, on_stdout, s, &s->captures[0], err);

    if (r == 0)
        r = agx_capture_open(s->loop, on_stderr, s, &s->captures[1], err);
    if (r < 0)
        return r;
    config.argv = s->config->worker_argv;
    config.env = s->config->worker_env;
    config.stdout_fd = agx_capture_fd(s->captures[0]);
    config.stderr_fd = agx_capture_fd(s->captures[1]);
    config.max_frame = s->config->max_message + AGX_FRAME_EXTRA;
    s->worker = agx_worker_open(s->loop, s->conns, &config, &worker_ops, s);
    return 0;
}

static int open_parts(struct agx_server *s, struct agx_error **err)
{
    struct agx_router_config router = AGX_ROUTER_CONFIG_INIT;
    struct agx_conn_config conn = AGX_CONN_CONFIG_INIT;
    struct agx_http_server_config http = AGX_HTTP_SERVER_CONFIG_INIT;
    struct agx_eio_server_config eio = AGX_EIO_SERVER_CONFIG_INIT;
    int r;

    router.max_message = eio.message_max = http.body_max = s->config->max_message;
    router.max_calls = s->config->max_calls;
    router.resume_ms = s->config->resume_ms;
    s->router = agx_router_new(&router, &router_io, s);
    s->spin = agx_spin_open(s->loop, s->config->spin_us);
    r = agx_wlog_open(&s->config->log, &s->wlog, err);
    if (r == 0)
        r = agx_conn_group_open(s->loop, &conn, &s->conns, err);
    if (r == 0)
        r = agx_eio_server_open(s->loop, &eio, &eio_ops, s, &s->eio, err);
    if (r == 0)
        r = agx_http_server_open(s->conns, &http, &agx_server_http_ops, s, &s->http, err);
    if (r == 0)
        r = agx_server_access_open(s, err);
    if (r == 0)
        r = open_worker(s, err);
    if (r == 0)
        r = open_listeners(s, err);
    return r;
}

static void make_headers(struct agx_server *s)
{
    for (int ev = 0; ev < AGX_EV_COUNT; ev++) {
        s->headers[ev] = (struct agx_buf)AGX_BUF_INIT(256);
        if (agx_sio_encode_binary_event(&s->headers[ev],
                                        agx_remote_event_name((enum agx_remote_event)ev)) < 0)
            abort();
    }
}

int agx_server_open(struct agx_loop *l, const struct agx_server_config *config,
                    struct agx_server **ret_server, struct agx_error **err)
{
    struct agx_server *s = agx_new(struct agx_server);
    int r;

    s->loop = l;
    s->config = config;
    s->owner_fd = -1;
    make_headers(s);
    (void)uv_timer_init(agx_loop_uv(l), &s->tick);
    (void)uv_timer_init(agx_loop_uv(l), &s->drain);
    r = open_parts(s, err);
    if (r < 0) {
        agx_server_stop(s, true, NULL, NULL);
        return r;
    }
    *ret_server = s;
    return 0;
}

/* --- stop --- */

static void on_last_closed(uv_handle_t *h)
{
    struct agx_server *s = container_of((uv_timer_t *)h, struct agx_server, drain);

    if (s->stopped)
        s->stopped(s->stopped_user);
    for (int ev = 0; ev < AGX_EV_COUNT; ev++)
        agx_buf_done(&s->headers[ev]);
    free(s);
}

static void on_tick_closed(uv_handle_t *h)
{
    struct agx_server *s = container_of((uv_timer_t *)h, struct agx_server, tick);

    uv_close((uv_handle_t *)&s->drain, on_last_closed);
}

/* Requires that no callback can follow. */
static void free_parts(struct agx_server *s)
{
    s->router = agx_router_free(s->router);
    s->spin = agx_spin_close(s->spin);
    s->wlog = agx_wlog_close(s->wlog);
    agx_closep(&s->owner_fd);
    uv_close((uv_handle_t *)&s->tick, on_tick_closed);
}

void agx_server_conn_gone(struct agx_server *s)
{
    if (s->state == SERVER_CLOSED && agx_list_is_empty(&s->peers))
        free_parts(s);
    else
        agx_server_plan_tick(s);
}

/* Closes sessions and connections, which report their end. */
static void on_worker_stopped(void *user)
{
    struct agx_server *s = user;

    s->worker = NULL;
    s->captures[0] = agx_capture_close(s->captures[0]);
    s->captures[1] = agx_capture_close(s->captures[1]);
    s->http = agx_http_server_close(s->http);
    s->eio = agx_eio_server_close(s->eio);
    s->conns = agx_conn_group_close(s->conns);
    s->state = SERVER_CLOSED;
    if (agx_list_is_empty(&s->peers))
        free_parts(s);
}

static void stop_now(struct agx_server *s)
{
    s->state = SERVER_STOPPING;
    uv_timer_stop(&s->drain);
    uv_timer_stop(&s->tick);
    if (s->router)
        agx_router_end_all(s->router, AGX_STR("ServerShutdown"), "the server was told to stop");
    AGX_LIST_FOR_EACH (struct agx_sio_conn, p, &s->peers, node)
        agx_sio_conn_close(p, AGX_WS_RESTART, "the server stops");
    if (s->worker)
        agx_worker_stop(s->worker, AGX_WORKER_GRACE_MS, on_worker_stopped, s);
    else
        on_worker_stopped(s);
}

static void on_drain(uv_timer_t *t)
{
    struct agx_server *s = container_of(t, struct agx_server, drain);

    if (agx_router_running(s->router) == 0 || agx_server_now(s) >= s->drain_until_ms)
        stop_now(s);
}

void agx_server_stop(struct agx_server *s, bool at_once, void (*stopped)(void *user), void *user)
{
    if (s->state == SERVER_OPEN) {
        s->stopped = stopped;
        s->stopped_user = user;
        for (size_t i = 0; i < AGX_ARRAY_LEN(s->listeners); i++)
            s->listeners[i] = agx_listener_close(s->listeners[i]);
        s->state = SERVER_DRAINING;
        if (s->router)
            agx_router_drain(s->router);
        s->drain_until_ms = agx_server_now(s) + s->config->grace_ms;
        (void)uv_timer_start(&s->drain, on_drain, 0, DRAIN_LOOK_MS);
    }
    if (at_once && s->state == SERVER_DRAINING)
        stop_now(s);
}

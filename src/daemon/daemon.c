/*
 * daemon.c: the parts, their order, and the end.
 *
 * Closing is asynchronous and goes part by part: close_next() closes the topmost part that is open,
 * and is called again when that is gone. A start that failed in the middle ends the same way, so
 * there is one order and one path through it.
 */
#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "daemon/dirs.h"
#include "daemon/instance.h"
#include "daemon/logfile.h"
#include "loop/listener.h"
#include "loop/signals.h"
#include "rpc/health.h"
#include "rpc/reflection.h"
#include "wire/api.h"
#include "base/banned.h"

/* Descriptors for everything but connections: the store, logs of commands, the backend. */
#define FILES_RESERVED 512

struct daemon {
    const struct agx_daemon_options *o;
    struct agx_instance *instance, *agbox_instance;
    struct agx_loop *loop;
    struct agx_logfile *logfile;
    struct agx_rpc_server *rpc;
    struct agx_rpc_health *health;
    struct agx_rpc_reflection *reflection;
    struct agx_signals *signals;
    uv_signal_t hangup;
    bool hangup_open;
    bool stopping;
};

/* ---- the end ---- */

static volatile sig_atomic_t limit_status; /* what to exit with when the end takes too long */

/* Whatever hangs now, a disk or a client: the store is whole at any moment, and sandboxes are none
 * of our children. */
static void on_limit(int signo)
{
    (void)signo;
    _exit(limit_status);
}

static void limit_the_end(uint64_t ms, int status)
{
    const struct itimerval when = { .it_value = { .tv_sec = (time_t)(ms / 1000),
                                                  .tv_usec = (suseconds_t)(ms % 1000) * 1000 } };

    limit_status = status;
    (void)signal(SIGALRM, on_limit);
    (void)setitimer(ITIMER_REAL, &when, NULL);
}

static void close_next(struct daemon *d);

static void on_rpc_stopped(void *user, struct agx_error *error)
{
    struct daemon *d = user;

    agx_error_free(error);
    d->rpc = NULL;
    d->health = agx_rpc_health_free(d->health);
    d->reflection = agx_rpc_reflection_free(d->reflection);
    close_next(d);
}

static void close_rest(struct daemon *d)
{
    sigset_t all;

    /* Whoever sends another signal now would kill a program that is about to exit. */
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    d->signals = agx_signals_close(d->signals);
    if (d->hangup_open)
        uv_close((uv_handle_t *)&d->hangup, NULL);
    d->hangup_open = false;
    d->logfile = agx_logfile_close(d->logfile);
}

/* Closes the topmost part; the last one ends the loop, for no handle is left. */
static void close_next(struct daemon *d)
{
    if (d->rpc)
        agx_rpc_server_stop(d->rpc, d->o->config->shutdown_grace_ms, on_rpc_stopped, d);
    else
        close_rest(d);
}

static void tell_manager(const struct daemon *d, const char *state)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    if (agx_systemd_notify(d->o->systemd, state, &err) < 0)
        AGX_LOG(AGX_LOG_WARN, "daemon.notify_failed", AGX_F_ERR(err), AGX_F_BOOL("ignored", true));
}

static void on_shutdown(void *user, int signo, unsigned count)
{
    struct daemon *d = user;

    if (count > 1 || d->stopping)
        _exit(128 + signo);
    d->stopping = true;
    limit_the_end(d->o->config->shutdown_limit_ms, EXIT_SUCCESS);
    AGX_LOG(AGX_LOG_INFO, "daemon.stopping", AGX_F_STR("msg", "shutting down"),
            AGX_F_INT("signal", signo));
    tell_manager(d, "STOPPING=1");
    if (agx_rpc_health_set(d->health, AGX_STR(""), false, NULL) < 0)
        AGX_LOG(AGX_LOG_WARN, "daemon.health_failed", AGX_F_BOOL("ignored", true));
    close_next(d);
}

/* ---- the start ---- */

/* As many files as we may have; the connections that fit into them. */
static size_t raise_files(size_t conns_max)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return conns_max;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur < 2 * FILES_RESERVED)
        return AGX_MIN(conns_max, files.rlim_cur / 2);
    return AGX_MIN(conns_max, files.rlim_cur - FILES_RESERVED);
}

/* The one thing that comes before the lock is the directory that it is in. */
static int take_locks(struct daemon *d, struct agx_error **err)
{
    const struct agx_places_agbox *agbox = d->o->agbox;
    const struct agx_places *p = d->o->places;
    /* With users of the list others must be able to reach the socket. */
    mode_t mode = d->o->config->allow_uids.len > 0 ? 0711 : 0700;
    int r = p->run_dir_ours ? agx_dirs_own(p->run_dir, mode, err) : agx_dirs_any(p->run_dir, err);

    if (r == 0)
        r = agx_instance_open(p->lock, 0600, &d->instance, err);
    if (r < 0 || !agbox)
        return r;
    r = agx_dirs_own(agbox->run_dir, 0755, err);
    return r < 0 ? r : agx_instance_open(agbox->lock, 0644, &d->agbox_instance, err);
}

static int open_log(struct daemon *d, struct agx_error **err)
{
    const struct agx_config *c = d->o->config;
    const struct agx_logfile_config file = { .path = d->o->places->log_file,
                                             .max_bytes = c->log_file_max,
                                             .keep = c->log_keep,
                                             .check_ms = c->log_check_ms };

    return d->o->log_to_file ? agx_logfile_open(d->loop, &file, &c->log, &d->logfile, err) : 0;
}

static void on_hangup(uv_signal_t *h, int signo)
{
    struct daemon *d = container_of(h, struct daemon, hangup);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    (void)signo;
    if (d->logfile && agx_logfile_reopen(d->logfile, &err) < 0)
        AGX_LOG(AGX_LOG_WARN, "log.reopen_failed", AGX_F_ERR(err), AGX_F_BOOL("ignored", true));
    AGX_LOG(AGX_LOG_INFO, "log.reopened", AGX_F_BOOL("file", d->logfile && !err));
}

static int open_signals(struct daemon *d, struct agx_error **err)
{
    int r = agx_signals_open(d->loop, on_shutdown, d, &d->signals, err);

    if (r < 0)
        return r;
    (void)uv_signal_init(agx_loop_uv(d->loop), &d->hangup);
    d->hangup_open = true;
    r = uv_signal_start(&d->hangup, on_hangup, SIGHUP);
    uv_unref((uv_handle_t *)&d->hangup);
    return r < 0 ? agx_error_set(err, AGX_INTERNAL, "watch SIGHUP: %s", uv_strerror(r)) : 0;
}

/* The callers that we answer: our own user, root, and who is in the list. */
static bool admit(void *user, const struct agx_rpc_peer *peer)
{
    const struct agx_config_uids *uids = user;

    if (peer->uid == geteuid() || peer->uid == 0)
        return true;
    for (size_t i = 0; i < uids->len; i++) {
        if (uids->ids[i] == peer->uid)
            return true;
    }
    return false;
}

static int open_server(struct daemon *d, struct agx_error **err)
{
    struct agx_rpc_config c = d->o->config->rpc;
    struct agx_config_uids *uids = (struct agx_config_uids *)&d->o->config->allow_uids;
    int r;

    c.conns_max = raise_files(c.conns_max);
    c.admit = admit;
    c.user = uids;
    r = agx_rpc_server_open(d->loop, &c, &d->rpc, err);
    if (r == 0)
        r = agx_rpc_health_new(d->rpc, &d->health, err);
    if (r == 0)
        r = agx_rpc_reflection_new(d->rpc, &d->reflection, err);
    return r < 0 ? r : agx_rpc_reflection_add(d->reflection, agx_api_descriptor_set(), err);
}

/* ---- sockets ---- */

static int serve(struct daemon *d, struct agx_listener *take_listener, struct agx_error **err)
{
    int r = agx_rpc_server_listen(d->rpc, &take_listener, err);

    agx_listener_close(take_listener);
    return r;
}

static int serve_path(struct daemon *d, const char *path, struct agx_error **err)
{
    struct agx_listener *listener;
    int r = agx_listener_open_unix(d->loop, path, &listener, err);

    if (r < 0)
        return r;
    /* Whoever connects is looked at (admit), so the mode may let others come that far. */
    if (d->o->config->allow_uids.len > 0 && chmod(path, 0666) < 0) {
        r = agx_error_errno(err, errno, "set the mode of '%s'", path);
        agx_listener_close(listener);
        return r;
    }
    return serve(d, listener, err);
}

/* A socket that was handed over: a Unix socket, or nobody could tell who calls. */
static int serve_fd(struct daemon *d, int fd, struct agx_error **err)
{
    struct agx_listener *listener;
    int r = agx_listener_open_fd(d->loop, &fd, &listener, err);

    if (r < 0)
        return agx_error_wrap(err, r, "LISTEN_FDS");
    if (agx_listener_peek_addr(listener)->sa.ss_family != AF_UNIX) {
        agx_listener_close(listener);
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "LISTEN_FDS: descriptor %d is no Unix socket", fd);
    }
    return serve(d, listener, err);
}

static int open_sockets(struct daemon *d, struct agx_error **err)
{
    unsigned n = d->o->systemd->n_fds;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < n; i++)
        r = serve_fd(d, AGX_SYSTEMD_FIRST_FD + (int)i, err);
    if (r == 0 && n == 0)
        r = serve_path(d, d->o->places->socket, err);
    if (r == 0 && d->o->agbox)
        r = serve_path(d, d->o->agbox->socket, err);
    return r;
}

/* ---- all of it ---- */

static void warn_of_config_toml(const struct agx_places_agbox *agbox)
{
    if (agbox && access(agbox->config_file, F_OK) == 0)
        AGX_LOG(AGX_LOG_WARN, "config.toml_ignored", AGX_F_STR("path", agbox->config_file),
                AGX_F_STR("means", "its settings are not used; ours are in config.yaml"));
}

static int open_files(struct daemon *d, struct agx_error **err)
{
    int r = agx_dirs_own(d->o->places->data_dir, 0700, err);

    if (r == 0)
        r = agx_loop_open(&d->loop, err);
    if (r == 0)
        r = open_log(d, err);
    if (r == 0)
        warn_of_config_toml(d->o->agbox);
    return r;
}

static int open_service(struct daemon *d, struct agx_error **err)
{
    int r = open_server(d, err);

    return r < 0 ? r : open_signals(d, err);
}

static int open_edge(struct daemon *d, struct agx_error **err)
{
    int r = open_sockets(d, err);

    return r < 0 ? r : agx_background_ready(d->o->background, err);
}

/* The steps of the start, with what programs that read agboxd's log know as their failure. */
static const struct {
    int (*run)(struct daemon *d, struct agx_error **err);
    const char *failure;
} steps[] = {
    { take_locks, "failed to acquire lock" },
    { open_files, "failed to create service" },
    { open_service, "failed to create service" },
    { open_edge, "server stopped with error" },
};

static int start(struct daemon *d, struct agx_error **err)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(steps); i++) {
        int r = steps[i].run(d, err);

        if (r == 0)
            continue;
        /* Without the file the log is on the starter's stderr, where main() says it in words. */
        if (!d->o->log_to_file || d->logfile)
            AGX_LOG(AGX_LOG_ERROR, "daemon.start_failed", AGX_F_STR("msg", steps[i].failure),
                    AGX_F_ERR(err ? *err : NULL));
        return r;
    }
    AGX_LOG(AGX_LOG_INFO, "daemon.ready", AGX_F_STR("release", AGX_VERSION),
            AGX_F_STR("socket", d->o->places->socket), AGX_F_INT("pid", getpid()));
    tell_manager(d, "READY=1");
    return 0;
}

int agx_daemon_run(const struct agx_daemon_options *o, bool *ret_held, struct agx_error **err)
{
    struct daemon d = { .o = o };
    int r = start(&d, err);

    *ret_held = r == -AGX_ALREADY_EXISTS && !d.loop;

    if (r < 0) {
        limit_the_end(o->config->shutdown_limit_ms, EXIT_FAILURE);
        close_next(&d);
    }
    if (d.loop)
        agx_loop_run(d.loop);
    if (d.loop && agx_loop_close(d.loop, r == 0 ? err : NULL) < 0 && r == 0)
        r = -AGX_INTERNAL;
    d.agbox_instance = agx_instance_close(d.agbox_instance);
    d.instance = agx_instance_close(d.instance);
    return r;
}

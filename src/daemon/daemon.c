/*
 * daemon.c: the process around the subsystems: locks, log, signals, sockets, and the time limit of
 * the shutdown. A start that failed halfway ends on the same path as a shutdown.
 */
#include "daemon/daemon.h"

#include <signal.h>
#include <sys/time.h>

#include "base/banned.h"
#include "daemon/dirs.h"
#include "daemon/instance.h"
#include "daemon/logfile.h"
#include "daemon/sockets.h"
#include "daemon/subsystems.h"
#include "loop/signals.h"

struct daemon {
    const struct agx_daemon_options *o;
    struct agx_instance *instance, *agbox_instance;
    struct agx_rootless rootless;
    struct agx_loop *loop;
    struct agx_logfile *logfile;
    struct agx_subsystems subsystems;
    struct agx_signals *signals;
    uv_signal_t hangup;
    bool hangup_open;
    bool stopping;
};

/* ---- shutdown ---- */

static volatile sig_atomic_t limit_status; /* exit status if the shutdown takes too long */

/* Exiting is safe at any moment, even if a disk or a client hangs: the store is always consistent,
 * and sandboxes are not our children. */
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

/* After the subsystems: closes the last handles, which ends the loop. */
static void close_rest(void *user)
{
    struct daemon *d = user;
    sigset_t all;

    /* Another signal now would kill a program that is about to exit. */
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGALRM);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    d->signals = agx_signals_close(d->signals);
    if (d->hangup_open)
        uv_close((uv_handle_t *)&d->hangup, NULL);
    d->hangup_open = false;
    d->logfile = agx_logfile_close(d->logfile);
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
    if (agx_subsystems_set_serving(&d->subsystems, false, NULL) < 0)
        AGX_LOG(AGX_LOG_WARN, "daemon.health_failed", AGX_F_BOOL("ignored", true));
    agx_subsystems_close(&d->subsystems, close_rest, d);
}

/* ---- start ---- */

/* Before the lock, only its directory is made. */
static int take_locks(struct daemon *d, struct agx_error **err)
{
    const struct agx_file_layout_agbox *agbox = d->o->agbox;
    const struct agx_file_layout *p = d->o->layout;
    /* With allowed users, others must be able to reach the socket. */
    mode_t mode = d->o->config->allow_uids.len > 0 ? 0711 : 0700;
    int r = p->run_dir_ours ? agx_dirs_own(p->run_dir, mode, err) : agx_dirs_any(p->run_dir, err);

    if (r == 0)
        r = agx_instance_open(p->lock, 0600, &d->instance, err);
    if (r < 0 || !agbox)
        return r;
    r = agx_dirs_own(agbox->run_dir, 0755, err);
    return r < 0 ? r : agx_instance_open(agbox->lock, 0644, &d->agbox_instance, err);
}

/*
 * Native backend of an ordinary user: from here on we are root of that user's user namespace.
 * Before any thread exists, and after the lock, so that no other daemon does the same.
 */
static int enter_rootless(struct daemon *d, struct agx_error **err)
{
    const struct agx_rootless_config c = { .init_path = d->o->native->init_path,
                                           .dir = d->o->layout->data_dir };
    int r;

    if (!d->o->native->rootless)
        return 0;
    if (d->o->config->allow_uids.len > 0)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "allow_uids: the native backend of an ordinary user serves only "
                             "that user");
    r = agx_dirs_own(c.dir, 0700, err);
    if (r == 0)
        r = agx_rootless_enter(&d->rootless, &c, err);
    return agx_native_setup_wrap(d->o->native, r, err);
}

static int open_log(struct daemon *d, struct agx_error **err)
{
    const struct agx_config *c = d->o->config;
    const struct agx_logfile_config file = { .path = d->o->layout->log_file,
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

/* Our socket, unless the service manager passed sockets, and agbox's. */
static int open_sockets(struct daemon *d, struct agx_error **err)
{
    bool open_to_all = d->o->config->allow_uids.len > 0;
    unsigned n = d->o->systemd->n_fds;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < n; i++)
        r = agx_sockets_serve_fd(d->loop, d->subsystems.rpc, AGX_SYSTEMD_FIRST_FD + (int)i, err);
    if (r == 0 && n == 0)
        r = agx_sockets_serve_path(d->loop, d->subsystems.rpc, d->o->layout->socket, open_to_all,
                                   err);
    if (r == 0 && d->o->agbox)
        r = agx_sockets_serve_path(d->loop, d->subsystems.rpc, d->o->agbox->socket, open_to_all,
                                   err);
    return r;
}

/* ---- the whole run ---- */

static void warn_of_config_toml(const struct agx_file_layout_agbox *agbox)
{
    if (agbox && access(agbox->config_file, F_OK) == 0)
        AGX_LOG(AGX_LOG_WARN, "config.toml_ignored", AGX_F_STR("path", agbox->config_file),
                AGX_F_STR("means", "its settings are not used; ours are in config.yaml"));
}

static int open_files(struct daemon *d, struct agx_error **err)
{
    int r = agx_dirs_own(d->o->layout->data_dir, 0700, err);

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
    int r = agx_subsystems_open(&d->subsystems, d->loop, d->o, &d->rootless, err);

    if (r == 0)
        r = agx_subsystems_set_serving(&d->subsystems, true, err);
    return r < 0 ? r : open_signals(d, err);
}

static int open_edge(struct daemon *d, struct agx_error **err)
{
    int r = open_sockets(d, err);

    return r < 0 ? r : agx_background_ready(d->o->background, err);
}

/* The start's steps, each with the failure text that programs expect in agboxd's log. */
static const struct {
    int (*run)(struct daemon *d, struct agx_error **err);
    const char *failure;
} steps[] = {
    { take_locks, "failed to acquire lock" },   { enter_rootless, "failed to create service" },
    { open_files, "failed to create service" }, { open_service, "failed to create service" },
    { open_edge, "server stopped with error" },
};

static int daemon_start(struct daemon *d, struct agx_error **err)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(steps); i++) {
        int r = steps[i].run(d, err);

        if (r == 0)
            continue;
        /* Without a log file the log is on the starter's stderr, where main() prints the error. */
        if (!d->o->log_to_file || d->logfile)
            AGX_LOG(AGX_LOG_ERROR, "daemon.start_failed", AGX_F_STR("msg", steps[i].failure),
                    AGX_F_ERR(err ? *err : NULL));
        return r;
    }
    AGX_LOG(AGX_LOG_INFO, "daemon.ready", AGX_F_STR("release", AGX_VERSION),
            AGX_F_STR("socket", d->o->layout->socket), AGX_F_INT("pid", getpid()));
    tell_manager(d, "READY=1");
    return 0;
}

int agx_daemon_run(const struct agx_daemon_options *o, bool *ret_held, struct agx_error **err)
{
    struct daemon d = { .o = o, .rootless = AGX_ROOTLESS_INIT };
    int r = daemon_start(&d, err);

    *ret_held = r == -AGX_ALREADY_EXISTS && !d.loop;

    if (r < 0) {
        limit_the_end(o->config->shutdown_limit_ms, EXIT_FAILURE);
        agx_subsystems_close(&d.subsystems, close_rest, &d);
    }
    if (d.loop)
        agx_loop_run(d.loop);
    if (d.loop && agx_loop_close(d.loop, r == 0 ? err : NULL) < 0 && r == 0) {
        AGX_LOG(AGX_LOG_ERROR, "daemon.left_open", AGX_F_ERR(err ? *err : NULL));
        r = -AGX_INTERNAL;
    }
    agx_rootless_leave(&d.rootless);
    d.agbox_instance = agx_instance_close(d.agbox_instance);
    d.instance = agx_instance_close(d.instance);
    return r;
}

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

#include "daemon/backends.h"
#include "daemon/dirs.h"
#include "daemon/instance.h"
#include "daemon/logfile.h"
#include "daemon/schema.h"
#include "daemon/service.h"
#include "daemon/sockets.h"
#include "loop/signals.h"
#include "rpc/health.h"
#include "rpc/reflection.h"
#include "wire/api.h"
#include "base/banned.h"

/* Descriptors for everything but connections: the store, logs of commands, the backend. */
#define FILES_RESERVED 512

#define PRIVATE_MAX 4            /* paths that are not for sandboxes */
#define AGBOX_HOME "/home/agbox" /* of the user in agents-sandbox's images */

struct daemon {
    const struct agx_daemon_options *o;
    struct agx_instance *instance, *agbox_instance;
    struct agx_loop *loop;
    struct agx_logfile *logfile;
    struct agx_store *store;
    struct agx_backend *backend;
    struct agx_engine *engine;
    const char *private_paths[PRIVATE_MAX]; /* borrowed, for the engine */
    struct agx_service *service;
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

/* `part` is gone; what it had to complain about is for the log. */
static void closed(struct daemon *d, const char *part, struct agx_error *error)
{
    if (error)
        AGX_LOG(AGX_LOG_WARN, "daemon.close_failed", AGX_F_STR("part", part), AGX_F_ERR(error),
                AGX_F_BOOL("ignored", true));
    agx_error_free(error);
    close_next(d);
}

static void on_rpc_stopped(void *user, struct agx_error *error)
{
    struct daemon *d = user;

    d->rpc = NULL;
    d->health = agx_rpc_health_free(d->health);
    d->reflection = agx_rpc_reflection_free(d->reflection);
    closed(d, "server", error);
}

static void on_engine_closed(void *user, struct agx_error *error)
{
    ((struct daemon *)user)->engine = NULL;
    closed(user, "engine", error);
}

static void on_backend_closed(void *user, struct agx_error *error)
{
    ((struct daemon *)user)->backend = NULL;
    closed(user, "backend", error);
}

static void on_store_closed(void *user, struct agx_error *error)
{
    ((struct daemon *)user)->store = NULL;
    closed(user, "store", error);
}

static void on_service_closed(void *user, struct agx_error *error)
{
    ((struct daemon *)user)->service = NULL;
    closed(user, "service", error);
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

/* Closes the topmost part; the last one ends the loop, for no handle is left. The service is closed
 * last, when nobody can ask it or answer it any more. */
static void close_next(struct daemon *d)
{
    if (d->rpc)
        agx_rpc_server_stop(d->rpc, d->o->config->shutdown_grace_ms, on_rpc_stopped, d);
    else if (d->engine)
        agx_engine_close(d->engine, on_engine_closed, d);
    else if (d->backend)
        agx_backend_close(d->backend, on_backend_closed, d);
    else if (d->store)
        agx_store_close(d->store, on_store_closed, d);
    else if (d->service)
        agx_service_close(d->service, on_service_closed, d);
    else
        close_rest(d);
}

/* Of the server as a whole, and of each service by its name. */
static int set_health(struct daemon *d, bool serving, struct agx_error **err)
{
    static const char *const names[] = { "", "agbox.v1.SandboxService",
                                         "agentix.v1.ControlService" };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(names); i++)
        r = agx_rpc_health_set(d->health, agx_str_from(names[i]), serving, err);
    return r;
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
    if (set_health(d, false, NULL) < 0)
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

/* Opened before any thread exists: it may have to fork. */
static int open_store(struct daemon *d, struct agx_error **err)
{
    struct agx_store_lmdb_config c = d->o->config->store;

    c.dir = d->o->places->store_dir;
    return agx_store_lmdb_open(d->loop, &c, &agx_schema_layout, &d->store, err);
}

/* What no sandbox may be given: our sockets and our data. Returns how many of `out` it filled. */
static size_t list_private(const struct agx_daemon_options *o, const char *out[PRIVATE_MAX])
{
    const struct agx_places_agbox *agbox = o->agbox;
    const struct agx_places *p = o->places;
    size_t n = 0;

    out[n++] = p->run_dir_ours ? p->run_dir : p->socket;
    out[n++] = p->data_dir;
    if (agbox) {
        out[n++] = agbox->run_dir;
        out[n++] = agbox->exec_log_dir;
    }
    return n;
}

static int open_engine(struct daemon *d, struct agx_error **err)
{
    struct agx_engine_config c = d->o->config->engine;
    int r;

    c.store = d->store;
    c.backend = d->backend;
    c.log_root = d->o->agbox ? d->o->agbox->exec_log_dir : d->o->places->exec_log_dir;
    c.host.home = d->o->home;
    c.host.sandbox_home = d->o->agbox ? AGBOX_HOME : "/root";
    c.private_paths = d->private_paths;
    c.private_paths_len = list_private(d->o, d->private_paths);
    r = agx_dirs_own(c.log_root, 0700, err);
    return r < 0 ? r : agx_engine_open(d->loop, &c, &d->engine, err);
}

static int open_methods(struct daemon *d, struct agx_error **err)
{
    struct agx_service_config c = AGX_SERVICE_CONFIG_INIT;

    c.loop = d->loop;
    c.engine = d->engine;
    c.store = d->store;
    c.server = d->rpc;
    c.version = AGX_VERSION;
    c.name = d->o->agbox ? "agboxd" : "agentixd";
    c.backend = d->backend->ops->name;
    c.data_dir = d->o->places->data_dir;
    c.compat = d->o->agbox != NULL;
    c.subscribers_per_uid = d->o->config->subscribers_per_uid;
    return agx_service_open(&c, &d->service, err);
}

static int open_server(struct daemon *d, struct agx_error **err)
{
    struct agx_rpc_config c = d->o->config->rpc;
    struct agx_config_uids *uids = (struct agx_config_uids *)&d->o->config->allow_uids;
    int r;

    c.conns_max = raise_files(c.conns_max);
    c.admit = agx_sockets_admit;
    c.user = uids;
    r = agx_rpc_server_open(d->loop, &c, &d->rpc, err);
    if (r == 0)
        r = agx_rpc_health_new(d->rpc, &d->health, err);
    if (r == 0)
        r = agx_rpc_reflection_new(d->rpc, &d->reflection, err);
    return r < 0 ? r : agx_rpc_reflection_add(d->reflection, agx_api_descriptor_set(), err);
}

/* Ours, unless others were handed over, and agbox's. */
static int open_sockets(struct daemon *d, struct agx_error **err)
{
    bool open_to_all = d->o->config->allow_uids.len > 0;
    unsigned n = d->o->systemd->n_fds;
    int r = 0;

    for (unsigned i = 0; r == 0 && i < n; i++)
        r = agx_sockets_serve_fd(d->loop, d->rpc, AGX_SYSTEMD_FIRST_FD + (int)i, err);
    if (r == 0 && n == 0)
        r = agx_sockets_serve_path(d->loop, d->rpc, d->o->places->socket, open_to_all, err);
    if (r == 0 && d->o->agbox)
        r = agx_sockets_serve_path(d->loop, d->rpc, d->o->agbox->socket, open_to_all, err);
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
    int r = open_store(d, err);

    if (r == 0)
        r = agx_backends_open(d->loop, d->o->config->backend, &d->backend, err);
    if (r == 0)
        r = open_engine(d, err);
    if (r == 0)
        r = open_server(d, err);
    if (r == 0)
        r = open_methods(d, err);
    if (r == 0)
        r = set_health(d, true, err);
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

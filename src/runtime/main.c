/* main.c: agentix-server: start, signals, end. */
#include "base/banned.h"
#include "base/log.h"
#include "loop/loop.h"
#include "loop/signals.h"
#include "loop/timeslice.h"
#include "runtime/options.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

enum { KEPT_MEMORY = 16 << 20 };

struct program {
    struct agx_loop *loop;
    struct agx_server *server;
    struct agx_signals *signals;
};

static void on_stopped(void *user)
{
    struct program *p = user;
    sigset_t all;

    p->server = NULL;
    /* Another signal now would kill a program that is about to exit with 0. */
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_BLOCK, &all, NULL);
    p->signals = agx_signals_close(p->signals);
}

static void on_shutdown(void *user, int signo, unsigned count)
{
    struct program *p = user;

    AGX_LOG(AGX_LOG_INFO, "server.stopping", AGX_F_INT("signal", signo));
    agx_server_stop(p->server, count > 1, on_stopped, p);
}

static int main_run(struct agx_server_options *o, struct agx_error **err)
{
    struct agx_worker_command cmd;
    struct program p = { 0 };
    int r = agx_worker_command_init(&cmd, &o->worker, environ, err);

    agx_timeslice_shorten();
    /* Keep the memory of large messages for the next one: a new mmap costs more than copying
     * them. */
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    o->server.worker_argv = (const char *const *)cmd.argv;
    o->server.worker_env = (const char *const *)cmd.env;
    if (r == 0)
        r = agx_loop_open(&p.loop, err);
    /* Before we listen: whoever can reach us may already send SIGTERM. */
    if (r == 0)
        r = agx_signals_open(p.loop, on_shutdown, &p, &p.signals, err);
    if (r == 0)
        r = agx_server_open(p.loop, &o->server, &p.server, err);
    if (r < 0)
        p.signals = agx_signals_close(p.signals);
    if (p.loop)
        agx_loop_run(p.loop);
    if (p.loop && agx_loop_close(p.loop, r == 0 ? err : NULL) < 0 && r == 0)
        r = -AGX_INTERNAL;
    agx_worker_command_done(&cmd);
    return r;
}

int main(int argc, char **argv)
{
    struct agx_server_options o;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[1024];
    int r;

    /* First of all: the worker's code has our user id, and must not trace us or read our memory. */
    if (prctl(PR_SET_DUMPABLE, 0) < 0) {
        (void)fprintf(stderr, "agentix-server: cannot become non-dumpable\n");
        return EXIT_FAILURE;
    }
    r = agx_server_options_read(&o, argc, argv, &err);
    if (r > 0)
        return r - 1;
    agx_log_setup(&o.log);
    if (r == 0)
        r = agx_server_options_settle(&o, &err);
    if (r < 0) {
        (void)fprintf(stderr, "agentix-server: %s\n", agx_error_format(err, text, sizeof(text)));
        return AGX_EXIT_USAGE;
    }
    r = main_run(&o, &err);
    if (r < 0)
        (void)fprintf(stderr, "agentix-server: %s\n", agx_error_format(err, text, sizeof(text)));
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* daemon_life.c: `agentix daemon start` and `stop`. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/ctl.h"
#include "cli/daemon_commands.h"
#include "cli/launch.h"
#include "cli/progress.h"
#include "cli/show.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/banned.h"

enum { NAME_MAX_BYTES = 64, TICK_MS = 100 };

static int daemon_life_start(struct agx_ctl *ctl, const struct agx_cli *cli,
                             const struct agx_args *a, struct agx_error **err)
{
    int pid = 0, r = agx_ctl_connect(ctl, cli->env, err);

    if (r == -AGX_UNAVAILABLE) {
        *err = agx_error_free(*err);
        return agx_ctl_launch(ctl, a->rest, a->rest_len, err);
    }
    if (r == 0)
        r = agx_ctl_pid(ctl, &pid, err);
    if (r == 0)
        fprintf(stderr, "agentix: a daemon is already running (pid %d)\n", pid);
    return r;
}

int agx_daemon_start(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    struct agx_args a;
    int status = agx_args_read(&a, cli, argc, argv, NULL, 0);

    if (status != AGX_EXIT_GOING)
        return status;
    if (a.words_len > 0)
        return agx_cli_mistake(cli, "unexpected argument '%s'", a.words[0]);
    status = daemon_life_start(&ctl, cli, &a, &err) < 0 ? agx_cli_fail(err) : AGX_EXIT_OK;
    agx_ctl_close(&ctl);
    return status;
}

/* The listener may have passed the socket to the daemon (a service manager does): that process is
 * not ours to stop. */
static int check_name(int pid, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf name = AGX_BUF_INIT(NAME_MAX_BYTES);
    char path[64];
    struct agx_str is;
    int r;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    r = agx_fd_read_file(AT_FDCWD, path, &name, err);
    if (r < 0)
        return agx_error_wrap(err, r, "identify process %d, which listens", pid);
    is = agx_buf_peek(&name);
    is.len = agx_str_find(is, '\n');
    if (agx_str_eq(is, AGX_STR("agentixd")) || agx_str_eq(is, AGX_STR("agboxd")))
        return 0;
    return agx_error_set(
        err, AGX_FAILED_PRECONDITION,
        "process %d ('%.*s') holds the daemon's socket; stop the daemon there, with "
        "systemd by `systemctl stop agentixd.socket agentixd.service`",
        pid, AGX_STR_ARG(is));
}

static int wait_for_end(int pidfd, int pid, struct agx_progress *p, struct agx_error **err)
{
    struct pollfd fd = { .fd = pidfd, .events = POLLIN };
    uint64_t due = agx_clock_ms() + AGX_CLI_STOP_MS;

    while (poll(&fd, 1, TICK_MS) <= 0) {
        agx_progress_tick(p);
        if (agx_clock_ms() >= due)
            return agx_error_set(
                err, AGX_DEADLINE_EXCEEDED,
                "the daemon (pid %d) does not stop; `agentix daemon "
                "logs` may say why, and `kill -9 %d` loses nothing that it accepted",
                pid, pid);
    }
    return 0;
}

static int end_process(int pid, struct agx_error **err)
{
    _cleanup_close_ int pidfd = pidfd_open(pid, 0);
    char seconds[AGX_SHOW_SIZE];
    struct agx_progress p;
    int r;

    if (pidfd < 0 && errno == ESRCH)
        return 0;
    if (pidfd < 0)
        return agx_error_errno(err, errno, "watch the daemon (pid %d)", pid);
    r = check_name(pid, err);
    if (r < 0)
        return r;
    if (pidfd_send_signal(pidfd, SIGTERM, NULL, 0) < 0)
        return agx_error_errno(err, errno, "stop the daemon (pid %d)", pid);
    agx_progress_begin(&p, "Waiting for the daemon to stop...");
    r = wait_for_end(pidfd, pid, &p, err);
    agx_progress_end(&p);
    if (r == 0)
        fprintf(stderr, "Daemon stopped in %s; sandboxes keep running.\n",
                agx_show_seconds(agx_progress_ns(&p), seconds));
    return r;
}

int agx_daemon_stop(const struct agx_cli *cli, int argc, char **argv)
{
    struct agx_error *err = NULL;
    struct agx_ctl ctl = { 0 };
    static const struct agx_args_want want = { .min = 0, .max = 0 };
    struct agx_args a;
    int pid = 0, r, status = agx_args_take(&a, cli, argc, argv, &want);

    if (status != AGX_EXIT_GOING)
        return status;
    r = agx_ctl_connect(&ctl, cli->env, &err);
    if (r == -AGX_UNAVAILABLE) {
        fprintf(stderr, "agentix: no daemon is running at '%s'\n", ctl.path);
        err = agx_error_free(err);
        agx_ctl_close(&ctl);
        return AGX_EXIT_OK;
    }
    if (r == 0)
        r = agx_ctl_pid(&ctl, &pid, &err);
    agx_ctl_close(&ctl); /* or it would wait for us */
    if (r == 0)
        r = end_process(pid, &err);
    return r < 0 ? agx_cli_fail(err) : AGX_EXIT_OK;
}

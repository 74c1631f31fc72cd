/*
 * nsset_server.c: a process for each namespace set: it makes the two namespaces, sends their
 * descriptors and writes network settings. One parent stays and forks these processes, because a
 * fork costs a fifth of a start.
 */
#include "init/nsset_server.h"

#include "base/fd.h"
#include "init/report.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { EXIT_FAILED = 125 }; /* like agx_report_fail() */

/*
 * In the set's namespaces, as root of the user namespace: the host's settings belong to the host's
 * root, which we no longer are, and /proc/sys/net is that of our network namespace.
 */
static void write_setting(int report_fd, const char *setting)
{
    const char *equals = strchr(setting, '=');
    _cleanup_close_ int fd = -1;
    char path[PATH_MAX];
    size_t len;

    errno = EINVAL;
    if (strncmp(setting, "net/", 4) != 0 || !equals || equals - setting > NAME_MAX)
        agx_report_fail(report_fd, AGX_STAGE_SETTING, setting);
    (void)snprintf(path, sizeof(path), "/proc/sys/%.*s", (int)(equals - setting), setting);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    len = strlen(equals + 1);
    if (fd < 0 || write(fd, equals + 1, len) != (ssize_t)len)
        agx_report_fail(report_fd, AGX_STAGE_SETTING, setting);
}

/* Sends the namespaces as descriptors, and a socket that configures the network from outside: its
 * rights depend on its opener, which is this process, and on its user. */
static void hand_over(int report_fd)
{
    const struct agx_plan_report made = { .kind = AGX_PLAN_MADE, .pid = (uint32_t)getpid() };
    const int fds[] = {
        open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC),
        open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC),
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE),
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(fds); i++) {
        if (fds[i] < 0)
            agx_report_fail(report_fd, AGX_STAGE_NSSET, "descriptors");
    }
    if (!agx_report_send(report_fd, &made, fds, AGX_ARRAY_LEN(fds)))
        agx_report_fail(report_fd, AGX_STAGE_NSSET, "report");
}

/* Until now we had all powers in the new namespaces, but still the daemon's user ids, which own
 * files of the host. */
static void leave_host_ids(int report_fd)
{
    if (setresgid(0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresuid(0, 0, 0) < 0)
        agx_report_fail(report_fd, AGX_STAGE_IDENTITY, NULL);
}

static _Noreturn void make_nsset(int report_fd, char *const *settings)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        agx_report_fail(report_fd, AGX_STAGE_NSSET, NULL);
    hand_over(report_fd);
    agx_report_await_go(report_fd);
    leave_host_ids(report_fd);
    for (; *settings; settings++)
        write_setting(report_fd, *settings);
    _exit(0);
}

/* False: it has reported why. */
static bool ended_well(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

_Noreturn void agx_nsset_serve(int report_fd, char *const *settings)
{
    const struct agx_plan_report ready = { .kind = AGX_PLAN_READY };
    pid_t pid;

    do {
        agx_report_await_go(report_fd);
        pid = fork();
        if (pid < 0)
            agx_report_fail(report_fd, AGX_STAGE_NSSET, NULL);
        if (pid == 0)
            make_nsset(report_fd, settings);
    } while (ended_well(pid) && agx_report_send(report_fd, &ready, NULL, 0));
    _exit(EXIT_FAILED);
}

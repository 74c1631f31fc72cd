/*
 * stuck.c: processes that cannot be killed, for tests of code that waits for them.
 *
 *     stuck hold PID RELEASE        keeps the namespace of this PID 1 alive after it was killed
 *     stuck init REPORT RELEASE     replaces `agentix-init --plan`: reports on this descriptor that
 *                                   it cloned a PID 1, which is held in the same way
 *
 * PID 1 of a namespace ends only when all other processes in it are reaped. A process whose parent
 * is outside and does not reap it therefore keeps PID 1. This program is such a parent, until the
 * file RELEASE exists.
 */
#include "base/fdpass.h"
#include "codec/initproto_plan.h"

#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

static _Noreturn void sleep_for_ever(void)
{
    for (;;)
        (void)pause();
}

/* Starts a child of ours in the namespace of that process. */
static void hold(int pidfd)
{
    pid_t pid;

    if (setns(pidfd, CLONE_NEWPID) < 0)
        fail("setns");
    pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        sleep_for_ever();
}

static void await(const char *release)
{
    while (access(release, F_OK) < 0)
        (void)usleep(10000);
    while (waitpid(-1, NULL, __WALL) > 0)
        ;
}

static void hold_one(pid_t pid, const char *release)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0)
        fail("pidfd_open");
    hold(pidfd);
    (void)puts("held");
    (void)fflush(stdout);
    await(release);
}

static void tell(int report, int pidfd, pid_t pid)
{
    const struct agx_plan_report r = { .kind = AGX_PLAN_CLONED, .pid = (uint32_t)pid };
    uint8_t buf[AGX_PLAN_REPORT_MAX];
    size_t n = agx_plan_report_encode(&r, buf, sizeof(buf));

    if (agx_fdpass_send(report, buf, n, &pidfd, 1, 0) < 0)
        fail("sendmsg");
}

/* The file RELEASE.set reports that the process is held. */
static void note(const char *release)
{
    char path[512];
    FILE *f;

    (void)snprintf(path, sizeof(path), "%s.set", release);
    f = fopen(path, "we");
    if (!f)
        fail(path);
    (void)fclose(f);
}

/* The spawned process is killed; the processes that it started continue. */
static void be_init(int report, const char *release)
{
    int pidfd = -1;
    struct clone_args args = { .flags = CLONE_NEWPID | CLONE_PIDFD,
                               .pidfd = (uint64_t)(uintptr_t)&pidfd,
                               .exit_signal = SIGCHLD };
    long pid;

    if (fork() > 0)
        sleep_for_ever();
    (void)setsid();
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid < 0)
        fail("clone3");
    if (pid == 0)
        sleep_for_ever();
    hold(pidfd);
    tell(report, pidfd, (pid_t)pid);
    note(release);
    await(release);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        hold_one((pid_t)strtoul(argv[2], NULL, 10), argv[3]);
    else if (argc == 4 && strcmp(argv[1], "init") == 0)
        be_init((int)strtoul(argv[2], NULL, 10), argv[3]);
    else
        return 2;
    return 0;
}

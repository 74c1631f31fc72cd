/*
 * probe_init.c: ways to PID 1, on which everything in the sandbox depends, and to processes
 * outside. The argument is a process id, "1" for PID 1.
 */
#include "tests/security/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool traces(const char *pid)
{
    return probe_say(ptrace(PTRACE_SEIZE, (pid_t)atoi(pid), NULL, NULL) == 0, "ptrace");
}

static bool takes_fd(const char *pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);

    for (int fd = 0; fd < 8; fd++) {
        if (syscall(SYS_pidfd_getfd, pidfd, fd, 0) >= 0)
            return probe_say(true, "pidfd_getfd");
    }
    return probe_say(false, "pidfd_getfd");
}

static bool reads_memory(const char *pid)
{
    char byte;
    struct iovec here = { &byte, 1 }, there = { (void *)0x400000, 1 };
    long r = process_vm_readv((pid_t)atoi(pid), &here, 1, &there, 1, 0);

    /* That nothing is mapped there is more than we should learn. */
    return probe_say(r == 1 || errno == EFAULT, "process_vm_readv");
}

static bool reads_of(const char *pid, const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    return probe_reads(path);
}

static bool reads_environ(const char *pid)
{
    return reads_of(pid, "environ");
}

static bool reads_maps(const char *pid)
{
    return reads_of(pid, "maps");
}

static bool opens_mem(const char *pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%s/mem", pid);
    return probe_opens_to_write(path);
}

/* What it has open, not only how much. */
static bool reads_fds(const char *pid)
{
    char path[64], target[256];

    for (int fd = 0; fd < 8; fd++) {
        (void)snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, fd);
        if (readlink(path, target, sizeof(target)) > 0)
            return probe_say(true, path);
    }
    return probe_say(false, path);
}

static bool reads_exe(const char *pid)
{
    char path[64], target[256];

    (void)snprintf(path, sizeof(path), "/proc/%s/exe", pid);
    return probe_say(readlink(path, target, sizeof(target)) > 0, path);
}

/* Programs of the host that run here are files of the host. That one is busy can change. */
static bool overwrites_exe(const char *pid)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%s/exe", pid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return probe_say(fd >= 0 || errno == ETXTBSY, path);
}

/* Sets a limit to its present value, because without guards this is PID 1 of the machine. The
 * kernel would take a lower value from the same caller. */
static bool sets_limits(const char *pid)
{
    struct rlimit limit;
    bool gets = prlimit((pid_t)atoi(pid), RLIMIT_NOFILE, NULL, &limit) == 0;

    return probe_say(gets && prlimit((pid_t)atoi(pid), RLIMIT_NOFILE, &limit, NULL) == 0,
                     "prlimit");
}

/* By its number outside, which a process of the sandbox can learn or guess. */
static bool signals(const char *pid)
{
    return probe_say(kill((pid_t)atoi(pid), 0) == 0, "kill of a process outside");
}

const struct probe probes_init[] = {
    { "ptrace", traces },         { "pidfd-getfd", takes_fd }, { "vm-read", reads_memory },
    { "environ", reads_environ }, { "maps", reads_maps },      { "mem", opens_mem },
    { "fds", reads_fds },         { "exe", reads_exe },        { "exe-write", overwrites_exe },
    { "prlimit", sets_limits },   { "signal", signals },       { NULL, NULL },
};

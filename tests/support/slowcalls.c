/*
 * slowcalls.c: a library for LD_PRELOAD that makes threads sleep around their system calls.
 *
 * Between two calls of one process, other processes may act. On a quiet machine this window is
 * microseconds long, so a test with a race passes thousands of times. With this library some calls
 * of each kind below take milliseconds longer, before or after, so that every window is long once
 * in a while. The calls themselves do not change: a test that fails here would also fail without
 * this library, but rarely. `tools/jitter --slow` loads it.
 *
 * AGX_SLOW_EVERY: one call in this many sleeps (default 20). AGX_SLOW_US: the longest sleep in
 * microseconds (default 20,000).
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERY = 20, MAX_US = 20000 };

static _Thread_local uint64_t dice;

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    unsigned long long found = text ? strtoull(text, NULL, 10) : 0;

    return found > 0 ? found : otherwise;
}

static uint64_t roll(void)
{
    if (dice == 0) {
        struct timespec now;

        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        dice = (uint64_t)now.tv_nsec << 32 | (uint64_t)syscall(SYS_gettid) << 1 | 1;
        dice *= 0x9e3779b97f4a7c15u; /* odd times odd: never 0 */
    }
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice >> 8;
}

/* Does not change errno, because it runs after calls as well as before them. */
static void perhaps_sleep(void)
{
    static uint64_t every, max_us;
    struct timespec span = { 0 };
    int saved = errno;

    if (every == 0) { /* all threads read the same value, so the order does not matter */
        max_us = setting("AGX_SLOW_US", MAX_US);
        every = setting("AGX_SLOW_EVERY", EVERY);
    }
    if (roll() % every == 0) {
        span.tv_nsec = (long)(roll() % max_us) * 1000;
        (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &span, NULL);
    }
    errno = saved;
}

/* Defines `name` as the original function with a sleep before it, after it, or none. */
#define SLOW(type, name, params, args)                                                             \
    type name params;                                                                              \
    type name params                                                                               \
    {                                                                                              \
        static __typeof__(name) *real;                                                             \
        type result;                                                                               \
                                                                                                   \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        perhaps_sleep();                                                                           \
        result = real args;                                                                        \
        perhaps_sleep();                                                                           \
        return result;                                                                             \
    }

SLOW(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n))
SLOW(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
SLOW(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n))
SLOW(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
SLOW(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at))
SLOW(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
SLOW(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags))
SLOW(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
SLOW(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
SLOW(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
SLOW(ssize_t, sendto,
     (int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t len),
     (fd, from, n, flags, to, len))
SLOW(ssize_t, recvfrom,
     (int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *len),
     (fd, to, n, flags, from, len))
SLOW(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
SLOW(int, listen, (int fd, int n), (fd, n))
SLOW(int, accept4, (int fd, struct sockaddr *from, socklen_t *len, int flags),
     (fd, from, len, flags))
SLOW(int, shutdown, (int fd, int how), (fd, how))
SLOW(int, close, (int fd), (fd))
SLOW(int, kill, (pid_t pid, int number), (pid, number))
SLOW(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags))
SLOW(int, waitid, (idtype_t kind, id_t id, siginfo_t *info, int flags), (kind, id, info, flags))
SLOW(int, epoll_wait, (int fd, struct epoll_event *to, int n, int ms), (fd, to, n, ms))
SLOW(int, epoll_pwait, (int fd, struct epoll_event *to, int n, int ms, const sigset_t *mask),
     (fd, to, n, ms, mask))
SLOW(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
SLOW(int, rename, (const char *from, const char *to), (from, to))
SLOW(int, renameat, (int from_dir, const char *from, int to_dir, const char *to),
     (from_dir, from, to_dir, to))
SLOW(int, renameat2, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
     (from_dir, from, to_dir, to, flags))
SLOW(int, unlink, (const char *path), (path))
SLOW(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
SLOW(int, mkdir, (const char *path, mode_t mode), (path, mode))
SLOW(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode))
SLOW(int, fsync, (int fd), (fd))
SLOW(int, fdatasync, (int fd), (fd))

/* suid.c: the thread that receives calls, and passes each to its own process. */
#include "init/suid.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/banned.h"

enum {
    STACK = 128 << 10,
    CALLS_MAX = 32,      /* at a time; more wait in the kernel */
    TOLD_SIZE = 4 << 10, /* a later kernel may send more than we know of */
};

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1ul << 5)
#endif

#define BIT(cap) (UINT64_C(1) << (cap))

/* To read the caller's path and the links of its directory in /proc, and to take its identity. */
#define OWN_CAPS                                                                                   \
    (BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |               \
     BIT(CAP_DAC_OVERRIDE))

struct call {
    int pidfd; /* of its process; -1: none */
    uint64_t id;
};

static struct {
    uint64_t mounts[SUID_MOUNTS_MAX];
    size_t n_mounts;
    uint64_t caps;
    int fault; /* why the thread could not start */
    sem_t begun, go;
    int listener_fd, proc_fd;
    struct call calls[CALLS_MAX];
} suid;

/* ---- mounts ---- */

static bool mount_id(int fd, uint64_t *ret)
{
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0 ||
        !(st.stx_mask & STATX_MNT_ID))
        return false;
    *ret = st.stx_mnt_id;
    return true;
}

void agx_suid_allow(int mount_fd)
{
    if (suid.n_mounts < SUID_MOUNTS_MAX && mount_id(mount_fd, &suid.mounts[suid.n_mounts]))
        suid.n_mounts++;
}

/* No mount is added or removed once code of the sandbox runs, so mount ids stay valid. */
bool agx_suid_is_allowed(int fd)
{
    uint64_t id;

    if (!mount_id(fd, &id))
        return false;
    for (size_t i = 0; i < suid.n_mounts; i++) {
        if (suid.mounts[i] == id)
            return true;
    }
    return false;
}

/* ---- calls ---- */

/* A fork with a pidfd and without an exit signal: only we wait for it, not PID 1's loop. */
static pid_t fork_quietly(int *ret_pidfd)
{
    struct clone_args a = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)ret_pidfd };

    return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

static void suid_take(struct call *c)
{
    union {
        struct seccomp_notif told;
        char room[TOLD_SIZE];
    } in;
    pid_t pid;

    memset(&in, 0, sizeof(in));
    /* The caller may have been killed meanwhile. */
    if (ioctl(suid.listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
        return;
    c->id = in.told.id;
    pid = fork_quietly(&c->pidfd);
    if (pid == 0)
        agx_suid_answer(&in.told, suid.listener_fd, suid.proc_fd);
    if (pid < 0) {
        c->pidfd = -1;
        agx_suid_refuse(suid.listener_fd, c->id, ENOMEM);
    }
}

/* A process that was killed before it answered: its caller gets an error; otherwise this has no
 * effect. */
static void suid_end(struct call *c)
{
    siginfo_t info;

    (void)waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | __WCLONE);
    agx_closep(&c->pidfd);
    c->pidfd = -1;
    agx_suid_refuse(suid.listener_fd, c->id, EPERM);
}

static void suid_turn(void)
{
    struct pollfd p[CALLS_MAX + 1];
    struct call *idle = NULL;

    for (size_t i = 0; i < CALLS_MAX; i++) {
        p[i] = (struct pollfd){ .fd = suid.calls[i].pidfd, .events = POLLIN };
        if (suid.calls[i].pidfd < 0)
            idle = &suid.calls[i];
    }
    p[CALLS_MAX] = (struct pollfd){ .fd = idle ? suid.listener_fd : -1, .events = POLLIN };
    if (poll(p, AGX_ARRAY_LEN(p), -1) < 0)
        return;
    for (size_t i = 0; i < CALLS_MAX; i++) {
        if (p[i].revents)
            suid_end(&suid.calls[i]);
    }
    if (p[CALLS_MAX].revents)
        suid_take(idle);
}

/* ---- the thread ---- */

static bool keep_caps(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { 0 }, had[2];

    if (syscall(SYS_capget, &head, had) < 0)
        return false;
    for (int i = 0; i < 2; i++)
        data[i].permitted = data[i].effective =
            had[i].permitted & (uint32_t)((suid.caps | OWN_CAPS) >> (32 * i));
    return syscall(SYS_capset, &head, data) == 0;
}

static void await(sem_t *s)
{
    while (sem_wait(s) < 0)
        continue;
}

/* Signals to this process are handled by its first thread. */
static void *suid_serve(void *unused)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    suid.fault = keep_caps() ? 0 : errno;
    (void)sem_post(&suid.begun);
    await(&suid.go);
    for (;;)
        suid_turn();
    return unused;
}

bool agx_suid_start(uint64_t caps)
{
    pthread_attr_t attr;
    pthread_t thread;
    int r;

    suid.caps = caps;
    for (size_t i = 0; i < CALLS_MAX; i++)
        suid.calls[i].pidfd = -1;
    (void)sem_init(&suid.begun, 0, 0);
    (void)sem_init(&suid.go, 0, 0);
    r = pthread_attr_init(&attr);
    if (r == 0) {
        (void)pthread_attr_setstacksize(&attr, STACK);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        r = pthread_create(&thread, &attr, suid_serve, NULL);
        (void)pthread_attr_destroy(&attr);
    }
    if (r == 0) {
        await(&suid.begun);
        r = suid.fault;
    }
    errno = r;
    return r == 0;
}

/* After its notification a call is interrupted only when its caller is killed: otherwise it would
 * be made twice. */
int agx_suid_install(void)
{
    struct sock_filter code[SUID_FILTER_MAX];
    const struct sock_fprog prog = {
        .len = (unsigned short)agx_suid_filter(SECCOMP_RET_USER_NOTIF, code), .filter = code
    };

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
                        &prog);
}

bool agx_suid_serve(int listener_fd)
{
    int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

    /* Not at a number that the control channel will get. */
    suid.proc_fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, AGX_INIT_CONTROL_FD + 1);
    suid.listener_fd = listener_fd;
    agx_closep(&fd);
    (void)sem_post(&suid.go);
    return suid.proc_fd >= 0;
}

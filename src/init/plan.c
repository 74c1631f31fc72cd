/* plan.c: the way from the host into the namespaces of a sandbox. */
#include "init/plan.h"

#include "base/fd.h"
#include "init/suid.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { LOG_MODE = 0600 };

static struct agx_planned planned;

/* Reports of PID 1 must come after the one about its clone. */
static void await_clone_told(const struct agx_planned *p)
{
    char none;

    if (p->cloned_fd >= 0)
        (void)!read(p->cloned_fd, &none, 1);
}

_Noreturn void agx_plan_fail(const struct agx_planned *p, enum agx_plan_stage stage,
                             const char *what)
{
    int fault = errno;

    await_clone_told(p);
    errno = fault;
    agx_report_fail(p->report_fd, stage, what);
}

/* The plan's size cannot change, and it stays mapped: the main process's words are there. */
static bool read_plan(int fd, struct agx_plan *ret)
{
    struct stat st;
    void *at;

    if (fstat(fd, &st) < 0 || st.st_size <= 0 || (size_t)st.st_size > AGX_INIT_PACKET_MAX ||
        !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
        return false;
    at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    return at != MAP_FAILED &&
           agx_plan_decode(agx_str_bytes(at, (size_t)st.st_size), ret, NULL) == 0;
}

/* Writes "0", which moves this process: one that moves only itself does not have to wait in the
 * kernel. We are still root of the host here, who owns these files. */
static void enter_cgroups(const struct agx_planned *p)
{
    struct agx_init_list fds = p->plan.tasks_fds;
    uint32_t fd;

    while (agx_plan_number_next(&fds, &fd)) {
        if (write((int)fd, "0", 1) != 1)
            agx_plan_fail(p, AGX_STAGE_CGROUP, NULL);
    }
}

/* As root of the host, who may raise limits that nobody inside could. */
static void set_limits(const struct agx_planned *p)
{
    struct agx_init_list list = p->plan.rlimits;
    struct agx_init_rlimit x;
    char text[16];
    int fd, n;

    while (agx_init_rlimit_next(&list, &x)) {
        const struct rlimit limit = { .rlim_cur = x.soft, .rlim_max = x.hard };

        (void)snprintf(text, sizeof(text), "%u", x.resource);
        if (setrlimit((__rlimit_resource_t)x.resource, &limit) < 0)
            agx_plan_fail(p, AGX_STAGE_LIMITS, text);
    }
    n = snprintf(text, sizeof(text), "%d", (int32_t)p->plan.oom_score_adj);
    fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        agx_plan_fail(p, AGX_STAGE_LIMITS, "oom_score_adj");
    (void)close(fd);
}

/*
 * Copies a mount, detached so that it is not visible half made. As root of the host: the path is
 * the host's, and only host root may map ids. The flags set here cannot be removed inside, because
 * the copy comes from a user namespace above.
 */
static int take_mount_at(const struct agx_planned *p, int at, const char *path, uint32_t flags,
                         uint64_t attrs)
{
    const unsigned deep = flags & AGX_PLAN_RECURSIVE ? AT_RECURSIVE : 0;
    struct mount_attr a = {
        .attr_set = attrs | (flags & AGX_PLAN_READ_ONLY ? MOUNT_ATTR_RDONLY : 0),
        .propagation = MS_PRIVATE,
    };
    int fd = at == AT_FDCWD
                 ? open_tree(at, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep)
                 : open_tree(at, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);

    if (fd < 0)
        agx_plan_fail(p, AGX_STAGE_SOURCE, path);
    if (flags & AGX_PLAN_IDMAP) {
        a.attr_set |= MOUNT_ATTR_IDMAP;
        a.userns_fd = p->plan.user_fd;
    }
    if (mount_setattr(fd, "", AT_EMPTY_PATH | deep, &a, sizeof(a)) < 0)
        agx_plan_fail(p, flags & AGX_PLAN_IDMAP ? AGX_STAGE_IDMAP : AGX_STAGE_SOURCE, path);
    return fd;
}

static int take_mount(const struct agx_planned *p, const char *path, uint32_t flags, uint64_t attrs)
{
    return take_mount_at(p, AT_FDCWD, path, flags, attrs);
}

/* With a descriptor, the path is only for messages: it may lead elsewhere by now. */
static int take_source(const struct agx_planned *p, const struct agx_plan_mount *m)
{
    const uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int fd;

    if (m->fd == AGX_PLAN_NO_FD)
        return take_mount(p, m->source.ptr, m->flags, attrs);
    fd = take_mount_at(p, (int)m->fd, m->source.ptr, m->flags, attrs);
    (void)close((int)m->fd);
    return fd;
}

static void take_sources(struct agx_planned *p)
{
    const uint32_t idmap = p->plan.flags & AGX_PLAN_SHIFTED ? 0 : AGX_PLAN_IDMAP;
    struct agx_init_list layers = p->plan.layers, mounts = p->plan.mounts;
    struct agx_plan_mount m;
    const char *path;
    size_t n = 0;

    while ((path = agx_init_list_next(&layers)))
        p->layers[n++] = take_mount(p, path, AGX_PLAN_READ_ONLY | idmap, 0);
    p->writable = take_mount(p, p->plan.writable.ptr, 0, 0);
    /* A volatile overlay leaves a mark, so that it is not mounted again after a crash of the host:
     * here the daemon decides that. */
    (void)unlinkat(p->writable, "work/work/incompat/volatile/dirty", 0);
    (void)unlinkat(p->writable, "work/work/incompat/volatile", AT_REMOVEDIR);
    p->devices = take_mount(p, p->plan.devices.ptr, AGX_PLAN_READ_ONLY | AGX_PLAN_RECURSIVE,
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    n = 0;
    while (agx_plan_mount_next(&mounts, &m))
        p->mounts[n++] = take_source(p, &m);
}

/* "main.log" in the directory, and its index; those of the last start are kept beside. */
static int open_log(const struct agx_planned *p, int dir, const char *name)
{
    char last[32];
    int fd;

    (void)snprintf(last, sizeof(last), "%s.1", name);
    if (renameat(dir, name, dir, last) < 0 && errno != ENOENT)
        agx_plan_fail(p, AGX_STAGE_SOURCE, name);
    fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, LOG_MODE);
    if (fd < 0)
        agx_plan_fail(p, AGX_STAGE_SOURCE, name);
    return fd;
}

/* As root of the host, who owns them: no path inside leads to them. */
static void open_logs(struct agx_planned *p)
{
    const char *path = p->plan.log_dir.ptr;
    int dir;

    p->log_fds[0] = p->log_fds[1] = -1;
    if (p->plan.log_dir.len == 0)
        return;
    dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        agx_plan_fail(p, AGX_STAGE_SOURCE, path);
    p->log_fds[0] = open_log(p, dir, AGX_PLAN_LOG);
    p->log_fds[1] = open_log(p, dir, AGX_PLAN_LOG_INDEX);
    (void)close(dir);
}

/*
 * From here on we have no power over the host: all capabilities are in the sandbox's user
 * namespace. The user id is still host root, who owns the host's files, until PID 1 takes its own.
 */
static void enter_nsset(const struct agx_planned *p)
{
    if (setns((int)p->plan.user_fd, CLONE_NEWUSER) < 0 ||
        setns((int)p->plan.net_fd, CLONE_NEWNET) < 0)
        agx_plan_fail(p, AGX_STAGE_NSSET, NULL);
}

/*
 * PID 1 is the daemon's child, not ours, and outlives us. Libc keeps its thread's number at an
 * address that the kernel reports and then fills in. Where it does not report it, libc has a wrong
 * number, which only matters to abort().
 */
static pid_t clone_pid1(const struct agx_planned *p, int *ret_pidfd)
{
    pid_t *tid = NULL;
    struct clone_args a = {
        .flags =
            CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_PARENT | CLONE_PIDFD,
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
    };

    if (prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) == 0 && tid) {
        a.flags |= CLONE_CHILD_SETTID;
        a.child_tid = (uint64_t)(uintptr_t)tid;
    }
    if (p->plan.cgroup_fd != AGX_PLAN_NO_FD) {
        a.flags |= CLONE_INTO_CGROUP;
        a.cgroup = p->plan.cgroup_fd;
    }
    return (pid_t)syscall(SYS_clone3, &a, sizeof(a));
}

/* Returns in PID 1. */
static void become_pid1(struct agx_planned *p)
{
    struct agx_plan_report cloned = { .kind = AGX_PLAN_CLONED };
    int told[2], pidfd = -1;
    pid_t pid;

    if (pipe2(told, O_CLOEXEC) < 0)
        agx_plan_fail(p, AGX_STAGE_CLONE, NULL);
    pid = clone_pid1(p, &pidfd);
    if (pid < 0)
        agx_plan_fail(p, AGX_STAGE_CLONE, NULL);
    if (pid == 0) {
        p->cloned_fd = told[0];
        (void)close(told[1]);
        return;
    }
    cloned.pid = (uint32_t)pid;
    _exit(agx_report_send(p->report_fd, &cloned, &pidfd, 1) ? 0 : 1);
}

/* No descriptor of the host stays open except the logs: the first three become the sandbox's own
 * /dev/null. */
static void leave_descriptors(struct agx_planned *p)
{
    int *const kept[] = { &p->report_fd, &p->log_fds[0], &p->log_fds[1], &p->suid_fd };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), at = AGX_INIT_CONTROL_FD;
    bool done = null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0;

    /* Duplicates them in this order; at most a gap remains before each. */
    for (size_t i = 0; done && i < AGX_ARRAY_LEN(kept); i++) {
        if (*kept[i] < 0)
            continue;
        at = *kept[i] = fcntl(*kept[i], F_DUPFD_CLOEXEC, at + 1);
        done = at >= 0;
    }
    if (!done)
        agx_plan_fail(p, AGX_STAGE_CONTROL, "descriptors");
    at = AGX_INIT_CONTROL_FD;
    for (size_t i = 0; i < AGX_ARRAY_LEN(kept); i++) {
        if (*kept[i] > at)
            (void)syscall(SYS_close_range, at, *kept[i] - 1, 0);
        at = AGX_MAX(at, *kept[i] + 1);
    }
    (void)syscall(SYS_close_range, at, ~0u, 0);
    p->cloned_fd = -1;
}

const struct agx_planned *agx_plan_run(int plan_fd)
{
    struct agx_planned *p = &planned;

    p->cloned_fd = -1;
    p->report_fd = -1;
    p->suid_fd = -1;
    errno = EINVAL;
    if (!read_plan(plan_fd, &p->plan)) {
        dprintf(2, "agentix-init: no plan\n");
        _exit(125);
    }
    p->report_fd = (int)p->plan.report_fd;
    enter_cgroups(p);
    take_sources(p);
    open_logs(p);
    set_limits(p);
    enter_nsset(p);
    become_pid1(p);
    agx_plan_make_root(p);
    agx_plan_hide(p);
    if (p->plan.flags & AGX_PLAN_LIST_USER)
        agx_plan_list_user(p);
    agx_plan_mount(p);
    agx_plan_give_up_power(p);
    await_clone_told(p);
    if (!(p->plan.flags & AGX_PLAN_AT_ONCE)) {
        const struct agx_plan_report ready = { .kind = AGX_PLAN_READY };

        (void)agx_report_send(p->report_fd, &ready, NULL, 0);
        agx_report_await_go(p->report_fd);
    }
    leave_descriptors(p);
    if (p->suid_fd >= 0 && !agx_suid_serve(p->suid_fd))
        agx_plan_fail(p, AGX_STAGE_CONTROL, "/proc");
    return p;
}

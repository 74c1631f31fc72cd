/*
 * suid_caller.c: reads the caller's request and identity.
 *
 * Everything is read through one directory of /proc that was opened while the caller waited for the
 * call, and therefore is that caller's, even if its pid is reused. What other threads of the caller
 * change meanwhile is read once, before or after the change.
 */
#include "init/suid.h"

#include "base/fd.h"
#include "base/str.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/banned.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

enum {
    PAGE = 4096, /* or a multiple of it */
    STATUS_MAX = 1 << 20,
};

/* The number behind blanks, as the kernel prints it; false: none. */
static bool take_number(const char **at, unsigned base, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    const char *from, *digit;

    *at += strspn(*at, "\t ");
    from = *at;
    *ret = 0;
    for (; **at && (digit = strchr(digits, **at)) && digit < digits + base; (*at)++)
        *ret = *ret * base + (uint64_t)(digit - digits);
    return *at > from;
}

/* ---- what ---- */

bool agx_suid_waits(const struct agx_suid_call *c)
{
    return ioctl(c->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &c->told->id) == 0;
}

/* Page by page: the string may end right before an unmapped one. */
static int read_path(struct agx_suid_call *c, uint64_t at)
{
    size_t got = 0;

    while (got < sizeof(c->path)) {
        const size_t n = AGX_MIN(PAGE - (size_t)((at + got) % PAGE), sizeof(c->path) - got);
        const struct iovec to = { c->path + got, n };
        union {
            uint64_t number;
            void *at;
        } from = { .number = at + got };

        if (process_vm_readv((pid_t)c->told->pid, &to, 1, &(struct iovec){ from.at, n }, 1, 0) !=
            (ssize_t)n)
            return -EFAULT;
        if (memchr(c->path + got, '\0', n))
            return 0;
        got += n;
    }
    return -ENAMETOOLONG;
}

/* The file of the caller's descriptor `n`. */
static int open_fd(const struct agx_suid_call *c, int n)
{
    char name[32];
    int fd;

    (void)snprintf(name, sizeof(name), "fd/%d", n);
    fd = n < 0 ? -1 : openat(c->task_fd, name, O_PATH | O_CLOEXEC);
    return fd < 0 ? -EBADF : fd;
}

/* An O_PATH descriptor only works in calls that name files by path. */
static bool is_path_only(const struct agx_suid_call *c, int n)
{
    _cleanup_close_ int fd = -1;
    char name[32], text[256];
    const char *at;
    uint64_t flags;
    ssize_t len;

    (void)snprintf(name, sizeof(name), "fdinfo/%d", n);
    fd = openat(c->task_fd, name, O_RDONLY | O_CLOEXEC);
    len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[AGX_MAX(len, 0)] = '\0';
    at = strstr(text, "flags:");
    if (!at)
        return true;
    at += strlen("flags:");
    return !take_number(&at, 8, &flags) || (flags & O_PATH);
}

/* "/proc/self/fd/N", by which programs use a descriptor in calls that do not take one. In our own
 * /proc/self it would be one of ours. */
static int take_own_fd(struct agx_suid_call *c)
{
    static const char *const heads[] = { "/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/" };
    struct agx_str path = agx_str_from(c->path);
    uint64_t n;

    for (size_t i = 0; i < AGX_ARRAY_LEN(heads); i++) {
        const struct agx_str head = agx_str_from(heads[i]);

        if (agx_str_starts(path, head) &&
            agx_parse_u64(agx_str_skip(path, head.len), INT32_MAX, &n)) {
            int fd = open_fd(c, (int)n);

            c->own_fd = fd < 0 ? -1 : fd;
        }
    }
    return 0;
}

/* Where a relative path begins; not used for an absolute one. */
static int take_base(struct agx_suid_call *c, int dir)
{
    if (c->path[0] == '/')
        return 0;
    c->base_fd = dir == AT_FDCWD ? openat(c->task_fd, "cwd", O_PATH | O_CLOEXEC) : open_fd(c, dir);
    if (c->base_fd == -1)
        return -errno;
    return AGX_MIN(c->base_fd, 0);
}

static int take_path(struct agx_suid_call *c, int dir, uint64_t path)
{
    int r = read_path(c, path);

    if (r == 0)
        r = take_base(c, dir);
    return r < 0 ? r : take_own_fd(c);
}

static int take_fchmod(struct agx_suid_call *c)
{
    const int n = (int)c->told->data.args[0];

    c->mode = (mode_t)c->told->data.args[1];
    c->own_fd = open_fd(c, n);
    if (c->own_fd >= 0 && is_path_only(c, n))
        return -EBADF;
    return AGX_MIN(c->own_fd, 0);
}

static int take_arguments(struct agx_suid_call *c)
{
    const uint64_t *a = (const uint64_t *)c->told->data.args;

    switch (c->told->data.nr) {
#ifdef SYS_chmod
    case SYS_creat:
        c->flags = O_CREAT | O_WRONLY | O_TRUNC;
        c->mode = (mode_t)a[1];
        return take_path(c, AT_FDCWD, a[0]);
    case SYS_chmod:
        c->mode = (mode_t)a[1];
        return take_path(c, AT_FDCWD, a[0]);
    case SYS_mknod:
        c->mode = (mode_t)a[1];
        c->dev = (dev_t)(uint32_t)a[2];
        return take_path(c, AT_FDCWD, a[0]);
    case SYS_open:
        c->flags = (int)a[1];
        c->mode = (mode_t)a[2];
        return take_path(c, AT_FDCWD, a[0]);
#endif
    case SYS_fchmod:
        return take_fchmod(c);
    case SYS_fchmodat:
    case SYS_fchmodat2:
        c->flags = c->told->data.nr == SYS_fchmodat2 ? (int)a[3] : 0;
        c->mode = (mode_t)a[2];
        return take_path(c, (int)a[0], a[1]);
    case SYS_mknodat:
        c->mode = (mode_t)a[2];
        c->dev = (dev_t)(uint32_t)a[3];
        return take_path(c, (int)a[0], a[1]);
    case SYS_openat:
        c->flags = (int)a[2];
        c->mode = (mode_t)a[3];
        return take_path(c, (int)a[0], a[1]);
    default:
        return -ENOSYS;
    }
}

int agx_suid_take(struct agx_suid_call *c)
{
    char name[16];
    int r;

    c->root_fd = c->base_fd = c->own_fd = -1;
    (void)snprintf(name, sizeof(name), "%u", c->told->pid);
    c->task_fd = openat(c->proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->task_fd < 0 || !agx_suid_waits(c))
        return -ESRCH;
    c->root_fd = openat(c->task_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (c->root_fd < 0)
        return -EPERM;
    r = take_arguments(c);
    /* The path was read by pid: it is the caller's if that still exists. */
    return agx_suid_waits(c) ? r : -ESRCH;
}

/* ---- as whom ---- */

static struct {
    char text[STATUS_MAX];
    uint32_t groups[SUID_GROUPS_MAX];
    size_t n_groups;
    uint32_t uid, gid; /* those that file access uses */
    mode_t umask;
    uint64_t caps;
} caller;

static bool read_status(const struct agx_suid_call *c)
{
    _cleanup_close_ int fd = openat(c->task_fd, "status", O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0 && got < sizeof(caller.text) - 1) {
        n = read(fd, caller.text + got, sizeof(caller.text) - 1 - got);
        got += (size_t)AGX_MAX(n, 0);
    }
    caller.text[got] = '\0';
    return n == 0;
}

/* The text behind this name at the beginning of a line. */
static const char *find_line(const char *name)
{
    const char *at = strstr(caller.text, name);

    return at ? at + strlen(name) : "";
}

/* The kernel prints the real, effective, saved and file system id, in this order. */
static bool read_fourth(const char *name, uint32_t *ret)
{
    const char *at = find_line(name);
    uint64_t n = 0;

    for (int i = 0; i < 4; i++) {
        if (!take_number(&at, 10, &n))
            return false;
    }
    *ret = (uint32_t)n;
    return true;
}

static bool read_caller(const struct agx_suid_call *c)
{
    const char *at;
    uint64_t n = 0;

    if (!read_status(c) || !read_fourth("\nUid:", &caller.uid) ||
        !read_fourth("\nGid:", &caller.gid))
        return false;
    at = find_line("\nUmask:");
    if (!take_number(&at, 8, &n))
        return false;
    caller.umask = (mode_t)n;
    at = find_line("\nCapEff:");
    if (!take_number(&at, 16, &caller.caps))
        return false;
    for (at = find_line("\nGroups:"); take_number(&at, 10, &n);) {
        if (caller.n_groups == SUID_GROUPS_MAX)
            return false;
        caller.groups[caller.n_groups++] = (uint32_t)n;
    }
    return true;
}

/* All permitted capabilities stay permitted: no process inside has as many, so none can trace
 * us. */
static bool set_caps(uint64_t caps)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &head, data) < 0)
        return false;
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted & (uint32_t)(caps >> (32 * i));
    return syscall(SYS_capset, &head, data) == 0;
}

int agx_suid_become(const struct agx_suid_call *c)
{
    if (!read_caller(c) || !agx_suid_waits(c))
        return -EPERM;
    if (fchdir(c->root_fd) < 0 || chroot(".") < 0)
        return -EPERM;
    (void)umask(caller.umask);
    if (syscall(SYS_setgroups, caller.n_groups, caller.groups) < 0)
        return -EPERM;
    (void)syscall(SYS_setfsgid, caller.gid);
    (void)syscall(SYS_setfsuid, caller.uid);
    /* These calls return the previous id, never an error. */
    if ((uint32_t)syscall(SYS_setfsgid, -1) != caller.gid ||
        (uint32_t)syscall(SYS_setfsuid, -1) != caller.uid || !set_caps(caller.caps))
        return -EPERM;
    return 0;
}

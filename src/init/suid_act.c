/*
 * suid_act.c: carries out the caller's request, where that is allowed.
 *
 * Each object is opened once, checked, and changed by that same descriptor; a new one is created as
 * a name that did not exist in its directory. Links of /proc to files of a process are not
 * followed: they would lead to ours.
 */
#include "init/suid.h"

#include "base/fd.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { LISTENER_FD = 3, PROC_FD, TRIES = 8 };

/* ---- objects ---- */

static int look_up(const struct agx_suid_call *c, const char *path, int flags)
{
    const struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
                                  .resolve = RESOLVE_NO_MAGICLINKS };
    int fd;

    if (path == c->path && c->own_fd >= 0 && !(flags & O_NOFOLLOW))
        return c->own_fd;
    fd = (int)syscall(SYS_openat2, c->base_fd, path, &how, sizeof(how));
    return fd < 0 ? -errno : fd;
}

/* A name by which the file of an O_PATH descriptor can be used. */
static const char *name_of(int fd)
{
    static char name[32];

    (void)snprintf(name, sizeof(name), "self/fd/%d", fd);
    return name;
}

/* The directory of the path's last component, which goes to *ret_name. */
static int open_parent(const struct agx_suid_call *c, const char **ret_name)
{
    const char *slash = strrchr(c->path, '/');
    char parent[SUID_PATH_MAX];
    int fd;

    if (!c->path[0] || (slash && !slash[1]))
        return c->path[0] ? -EISDIR : -ENOENT;
    *ret_name = slash ? slash + 1 : c->path;
    (void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - c->path) + 1 : 1,
                   slash ? c->path : ".");
    fd = look_up(c, parent, O_DIRECTORY);
    if (fd < 0 || agx_suid_is_allowed(fd))
        return fd;
    return -EPERM;
}

/* ---- calls ---- */

static int change_mode(const struct agx_suid_call *c)
{
    int fd = c->own_fd;

    if (c->flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if ((c->flags & AT_EMPTY_PATH) && !c->path[0])
        fd = c->base_fd;
    else if (c->told->data.nr != SYS_fchmod)
        fd = look_up(c, c->path, c->flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0);
    if (fd < 0)
        return fd;
    if (!agx_suid_is_allowed(fd))
        return -EPERM;
    return fchmodat(c->proc_fd, name_of(fd), c->mode & ALLPERMS, 0) < 0 ? -errno : 0;
}

static int make_node(const struct agx_suid_call *c)
{
    const char *name;
    _cleanup_close_ int dir = open_parent(c, &name);

    if (dir < 0)
        return dir == -EISDIR ? -ENOENT : dir;
    return mknodat(dir, name, c->mode, c->dev) < 0 ? -errno : 0;
}

/* An existing file keeps its mode. Does not wait for the other end of a FIFO. */
static int open_old(const struct agx_suid_call *c)
{
    _cleanup_close_ int at = look_up(c, c->path, c->flags & O_NOFOLLOW);
    struct stat st;
    int fd;

    if (at < 0)
        return at;
    if (fstat(at, &st) < 0 || !agx_suid_is_allowed(at))
        return -EPERM;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (S_ISFIFO(st.st_mode) && !(c->flags & O_NONBLOCK))
        return -ENXIO;
    fd = openat(c->proc_fd, name_of(at), (c->flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_new(const struct agx_suid_call *c)
{
    const char *name;
    _cleanup_close_ int dir = open_parent(c, &name);
    int fd;

    if (dir < 0)
        return dir;
    fd = openat(dir, name, c->flags | O_EXCL | O_NOFOLLOW | O_CLOEXEC, c->mode & ALLPERMS);
    return fd < 0 ? -errno : fd;
}

static int open_nameless(const struct agx_suid_call *c)
{
    _cleanup_close_ int dir = look_up(c, c->path, O_DIRECTORY);
    int fd;

    if (dir < 0)
        return dir;
    if (!agx_suid_is_allowed(dir))
        return -EPERM;
    fd = openat(dir, ".", c->flags | O_CLOEXEC, c->mode & ALLPERMS);
    return fd < 0 ? -errno : fd;
}

/* A file may appear or disappear between the two lookups. A dangling link is not created through:
 * that would follow it a second time. */
static int open_file(const struct agx_suid_call *c)
{
    int r = -ENOENT;

    if (c->flags & O_PATH)
        return -EINVAL;
    if ((c->flags & O_TMPFILE) == O_TMPFILE)
        return open_nameless(c);
    if (c->flags & O_DIRECTORY)
        return -EINVAL;
    if (c->flags & O_EXCL)
        return open_new(c);
    for (int i = 0; i < TRIES; i++) {
        r = open_old(c);
        if (r != -ENOENT)
            return r;
        r = open_new(c);
        if (r != -EEXIST)
            return r;
    }
    return -ENOENT;
}

/* ---- the answer ---- */

static void suid_act_answer(int listener_fd, uint64_t id, int fault)
{
    struct seccomp_notif_resp r = { .id = id, .error = -fault };

    (void)ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &r);
}

void agx_suid_refuse(int listener_fd, uint64_t id, int fault)
{
    suid_act_answer(listener_fd, id, fault);
}

/* Adds the descriptor to the caller and makes the call return its number, in one step. */
static void hand_over(const struct agx_suid_call *c, int fd)
{
    struct seccomp_notif_addfd a = {
        .id = c->told->id,
        .flags = SECCOMP_ADDFD_FLAG_SEND,
        .srcfd = (uint32_t)fd,
        .newfd_flags = (uint32_t)(c->flags & O_CLOEXEC),
    };

    if (ioctl(c->listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &a) < 0)
        suid_act_answer(c->listener_fd, c->told->id, errno);
}

static void suid_act_act(const struct agx_suid_call *c)
{
    bool opens = false;
    int r;

    switch (c->told->data.nr) {
#ifdef SYS_chmod
    case SYS_open:
    case SYS_creat:
#endif
    case SYS_openat:
        opens = true;
        r = open_file(c);
        break;
#ifdef SYS_chmod
    case SYS_mknod:
#endif
    case SYS_mknodat:
        r = make_node(c);
        break;
    default:
        r = change_mode(c);
    }
    if (r >= 0 && opens)
        hand_over(c, r);
    else
        suid_act_answer(c->listener_fd, c->told->id, -r);
}

/* No other descriptor of PID 1 is open here: no path leads to it. */
static bool keep_descriptors(int listener_fd, int proc_fd)
{
    int listener = fcntl(listener_fd, F_DUPFD_CLOEXEC, PROC_FD + 1),
        proc = fcntl(proc_fd, F_DUPFD_CLOEXEC, PROC_FD + 1);

    return listener >= 0 && proc >= 0 && dup2(listener, LISTENER_FD) >= 0 &&
           dup2(proc, PROC_FD) >= 0 && syscall(SYS_close_range, PROC_FD + 1, ~0u, 0) == 0;
}

_Noreturn void agx_suid_answer(const struct seccomp_notif *told, int listener_fd, int proc_fd)
{
    static struct agx_suid_call c;
    int r;

    c.told = told;
    c.listener_fd = LISTENER_FD;
    c.proc_fd = PROC_FD;
    if (!keep_descriptors(listener_fd, proc_fd))
        _exit(1);
    r = agx_suid_take(&c);
    if (r == 0)
        r = agx_suid_become(&c);
    if (r == 0)
        suid_act_act(&c);
    else
        suid_act_answer(c.listener_fd, told->id, -r);
    _exit(0);
}

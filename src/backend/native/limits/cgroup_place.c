/*
 * cgroup_place.c: the parent directory of all our groups.
 *
 * It is made as high as we may write: for root at the root of the hierarchy, for an ordinary user
 * in the highest group above us that systemd gave to the user. It is not made below the daemon's
 * own group, although that would work at first: version 2 allows no processes in a group whose
 * children have controllers, so systemd could not restart the daemon's service while sandboxes run.
 *
 * The same rule holds for the group in which it is made, unless that is the real root: when this
 * process is alone there, it moves into a leaf beside; we do not move other processes.
 */
#include "backend/native/limits/cgroup_internal.h"
#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { PROCS_MAX = 64 << 10, GROUP_MODE = 0755 };

int agx_cgroup_write(int dirfd, const char *file, const char *value)
{
    _cleanup_close_ int fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
    size_t len = strlen(value);

    if (fd < 0)
        return -1;
    /* One write is one value; these files accept all of it or nothing. */
    return write(fd, value, len) == (ssize_t)len ? 0 : -1;
}

static bool may_write(int dirfd, int version)
{
    if (faccessat(dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return false;
    return version == 1 || (faccessat(dirfd, "cgroup.procs", W_OK, AT_EACCESS) == 0 &&
                            faccessat(dirfd, "cgroup.subtree_control", W_OK, AT_EACCESS) == 0);
}

/* Walks from the mount point towards our own group, to the first directory that we may write. */
static int open_highest(const struct agx_cgroup_mount *m, int version, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(m->own[0] ? m->own + 1 : NULL), part;
    _cleanup_close_ int at = open(m->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[NAME_MAX + 1];

    if (at < 0)
        return agx_error_errno(err, errno, "open '%s'", m->point);
    while (!may_write(at, version)) {
        int next = -1;

        if (rest.ptr && agx_str_split(&rest, '/', &part) && part.len > 0 && part.len <= NAME_MAX) {
            (void)snprintf(name, sizeof(name), "%.*s", AGX_STR_ARG(part));
            next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        }
        if (next < 0)
            return agx_error_set(err, AGX_FAILED_PRECONDITION,
                                 "control groups below '%s' may not be written: run as root, or "
                                 "under systemd, which gives users a part of their own",
                                 m->point);
        (void)close(at);
        at = next;
    }
    return AGX_TAKE_FD(at);
}

/* -1 with errno set. `io` is enabled where possible: not every kernel has it. */
static int turn_on(int dirfd)
{
    if (agx_cgroup_write(dirfd, "cgroup.subtree_control", "+cpu +memory +pids") < 0)
        return -1;
    if (agx_cgroup_write(dirfd, "cgroup.subtree_control", "+io") < 0)
        errno = 0;
    return 0;
}

static bool alone_in(int dirfd)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(PROCS_MAX);
    char own[24];

    (void)snprintf(own, sizeof(own), "%d\n", (int)getpid());
    return agx_fd_read_file(dirfd, "cgroup.procs", &text, NULL) >= 0 &&
           agx_str_eq(agx_buf_peek(&text), agx_str_from(own));
}

int agx_cgroup_make_dir(int above, const char *name, bool may_exist)
{
    _cleanup_close_ int fd = -1;

    if (mkdirat(above, name, GROUP_MODE) < 0 && !(may_exist && errno == EEXIST))
        return -1;
    fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fchmod(fd, GROUP_MODE) < 0)
        return -1;
    return AGX_TAKE_FD(fd);
}

static int move_into_leaf(int dirfd, const char *name)
{
    char leaf[NAME_MAX + 1];
    _cleanup_close_ int fd = -1;

    (void)snprintf(leaf, sizeof(leaf), "%s-daemon", name);
    fd = agx_cgroup_make_dir(dirfd, leaf, true);
    return fd < 0 ? -1 : agx_cgroup_write(fd, "cgroup.procs", "0");
}

static int turn_on_above(int dirfd, const char *point, const char *name, struct agx_error **err)
{
    if (turn_on(dirfd) == 0)
        return 0;
    if (errno == EBUSY && alone_in(dirfd) && move_into_leaf(dirfd, name) == 0 &&
        turn_on(dirfd) == 0)
        return 0;
    if (errno == EBUSY)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "control groups below '%s': other processes are in the group that "
                             "ours would be made in; start the daemon as a service of its own",
                             point);
    return agx_error_errno(err, errno, "turn on cpu, memory and pids below '%s'", point);
}

int agx_cgroup_place(const struct agx_cgroup_mount *m, int version, const char *name,
                     struct agx_error **err)
{
    _cleanup_close_ int above = open_highest(m, version, err);
    _cleanup_close_ int fd = -1;
    int r;

    if (above < 0)
        return above;
    if (version == 2) {
        r = turn_on_above(above, m->point, name, err);
        if (r < 0)
            return r;
    }
    fd = agx_cgroup_make_dir(above, name, true);
    if (fd < 0)
        return agx_error_errno(err, errno, "make the control group '%s' below '%s'", name,
                               m->point);
    if (version == 2 && turn_on(fd) < 0)
        return agx_error_errno(err, errno, "turn on cpu, memory and pids in '%s'", name);
    return AGX_TAKE_FD(fd);
}

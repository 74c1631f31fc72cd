/*
 * plan_mount.c: which kernel files are hidden from a sandbox, and which host files are mounted.
 *
 * In PID 1, as root of the sandbox, in its own root: no path leads out of it, whatever links the
 * image has. Links of /proc to descriptors are not followed: ours are still open.
 */
#include "init/plan.h"

#include "init/suid.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum { DIR_MODE = 0755, FILE_MODE = 0644 };

/* A missing file needs no protection. */
static bool is_missing(void)
{
    return errno == ENOENT || errno == ENOTDIR;
}

static void freeze(const struct agx_planned *p, const char *path)
{
    struct mount_attr a = { .attr_set = MOUNT_ATTR_RDONLY };

    if (mount(path, path, NULL, MS_BIND, NULL) < 0) {
        if (!is_missing())
            agx_plan_fail(p, AGX_STAGE_MASK, path);
        return;
    }
    if (mount_setattr(AT_FDCWD, path, 0, &a, sizeof(a)) < 0)
        agx_plan_fail(p, AGX_STAGE_MASK, path);
}

/*
 * /dev/shm is an empty, unwritable directory when nothing is mounted there. The file type is
 * checked first: if the kernel has to undo a mount, it waits for every process that may have seen
 * it, for milliseconds.
 */
static void mask(const struct agx_planned *p, const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0) {
        if (!is_missing())
            agx_plan_fail(p, AGX_STAGE_MASK, path);
        return;
    }
    if (mount(S_ISDIR(st.st_mode) ? "/dev/shm" : "/dev/null", path, NULL, MS_BIND, NULL) < 0)
        agx_plan_fail(p, AGX_STAGE_MASK, path);
}

void agx_plan_hide(const struct agx_planned *p)
{
    static const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    struct agx_init_list frozen = p->plan.frozen, masked = p->plan.masked;
    const char *path;
    char size[48];

    while ((path = agx_init_list_next(&frozen)))
        freeze(p, path);
    while ((path = agx_init_list_next(&masked)))
        mask(p, path);
    (void)snprintf(size, sizeof(size), "mode=1777,size=%llu",
                   (unsigned long long)p->plan.shm_bytes);
    if (mount("shm", "/dev/shm", "tmpfs", plain, size) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/dev/shm");
    if (mount("mqueue", "/dev/mqueue", "mqueue", plain, NULL) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/dev/mqueue");
}

static int open_inside(const char *path)
{
    const struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                  .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* The directory of a path, and the path's last component. */
static int open_parent(const char *path, const char **ret_name)
{
    char parent[PATH_MAX];

    *ret_name = strrchr(path, '/') + 1;
    (void)snprintf(parent, sizeof(parent), "%.*s", (int)(*ret_name - path), path);
    return open_inside(parent);
}

/* Makes the last component of a path whose directory exists. */
static bool make_one(const char *path, bool dir)
{
    const char *name;
    int in = open_parent(path, &name), made;

    if (in < 0)
        return false;
    if (dir)
        made = mkdirat(in, name, DIR_MODE);
    else
        made = openat(in, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_WRONLY, FILE_MODE);
    (void)close(in);
    if (!dir && made >= 0)
        (void)close(made);
    return made >= 0;
}

/* The target of a mount; makes missing directories. -1 and errno. */
static int open_target(const char *target, bool dir)
{
    char path[PATH_MAX];
    size_t len = strlen(target);
    int fd = open_inside(target);

    if (fd >= 0 || errno != ENOENT || len >= sizeof(path))
        return fd;
    memcpy(path, target, len + 1);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        fd = open_inside(path);
        if (fd < 0 && (errno != ENOENT || !make_one(path, dir || i < len)))
            return -1;
        (void)close(fd);
        if (i < len)
            path[i] = '/';
    }
    return open_inside(path);
}

/*
 * In some images /etc/resolv.conf is a symlink into /run, which is empty. This removes such a link,
 * so that open_target() makes a file in its place and nothing where the link leads. If this fails,
 * open_target() fails too.
 */
static void remove_dead_link(const char *target)
{
    const char *name;
    struct stat st;
    int fd = open_inside(target);

    if (fd < 0 && (fd = open_parent(target, &name)) >= 0 &&
        fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
        (void)unlinkat(fd, name, 0);
    if (fd >= 0)
        (void)close(fd);
}

static void mount_one(const struct agx_planned *p, int fd, const char *target, uint32_t flags)
{
    struct stat from, at;
    int to = -1;

    if (flags & AGX_PLAN_OVER_LINK)
        remove_dead_link(target);
    if (fstat(fd, &from) == 0)
        to = open_target(target, S_ISDIR(from.st_mode));
    if (to < 0 || fstat(to, &at) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, target);
    errno = S_ISDIR(from.st_mode) ? ENOTDIR : EISDIR; /* the kernel's own error says less */
    if (S_ISDIR(from.st_mode) != S_ISDIR(at.st_mode))
        agx_plan_fail(p, AGX_STAGE_MOUNT, target);
    if (move_mount(fd, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, target);
    if (!(flags & AGX_PLAN_NO_SUID))
        agx_suid_allow(fd);
    (void)close(to);
    (void)close(fd);
}

/* The sandbox's own file system: no other user has its files. */
static void allow_own_suid(void)
{
    static const char *const own[] = { "/", "/dev/shm" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(own); i++) {
        int fd = open(own[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
            continue;
        agx_suid_allow(fd);
        (void)close(fd);
    }
}

void agx_plan_mount(const struct agx_planned *p)
{
    struct agx_init_list mounts = p->plan.mounts;
    struct agx_plan_mount m;

    (void)umask(022);
    allow_own_suid();
    for (size_t i = 0; agx_plan_mount_next(&mounts, &m); i++)
        mount_one(p, p->mounts[i], m.target.ptr, m.flags);
}

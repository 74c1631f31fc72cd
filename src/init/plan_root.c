/*
 * plan_root.c: PID 1 makes its root, an overlay over the layers with /proc, /sys and /dev, and
 * leaves the host's.
 *
 * All of it runs in PID 1's own mount namespace, as root of the sandbox, with all capabilities in
 * the sandbox's user namespace and none outside. Paths in the overlay's options are relative,
 * because /proc/self/mountinfo shows them and must reveal nothing of the host.
 */
#include "init/plan.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

/* Every host has it; its content is not visible from here any more. */
#define STAGE "/tmp"

enum { OPTIONS_MAX = 4096, DIR_MODE = 0755 }; /* the kernel takes a page of options */

/* Until now we had the ids of the host's root. */
static void take_identity(const struct agx_planned *p)
{
    (void)setsid();
    if (setresgid(0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresuid(0, 0, 0) < 0)
        agx_plan_fail(p, AGX_STAGE_IDENTITY, NULL);
    (void)umask(0);
    /* Now, not in the clone: the namespace's root is the cgroup that we are in, and only now are we
     * in it. */
    if (unshare(CLONE_NEWCGROUP) < 0)
        agx_plan_fail(p, AGX_STAGE_CLONE, "cgroup namespace");
}

static void attach(const struct agx_planned *p, int fd, const char *name)
{
    if (mkdir(name, DIR_MODE) < 0 ||
        move_mount(fd, "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        agx_plan_fail(p, AGX_STAGE_STAGE, name);
    (void)close(fd);
}

/* A directory for the overlay's layers: the kernel only accepts attached mounts. */
static void make_stage(const struct agx_planned *p)
{
    char name[16];

    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
        mount("stage", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0 || chdir(STAGE) < 0 ||
        mkdir("root", DIR_MODE) < 0 || mkdir("none", DIR_MODE) < 0)
        agx_plan_fail(p, AGX_STAGE_STAGE, STAGE);
    for (uint32_t i = 0; i < p->plan.layers.count; i++) {
        (void)snprintf(name, sizeof(name), "%u", i);
        attach(p, p->layers[i], name);
    }
    attach(p, p->writable, "rw");
}

/* Our marks are in user.*: inside a user namespace trusted.* is not readable. */
static void mount_overlay(const struct agx_planned *p)
{
    char options[OPTIONS_MAX] = "lowerdir=";
    size_t at = strlen(options);

    for (uint32_t i = 0; i < p->plan.layers.count; i++)
        at += (size_t)snprintf(options + at, sizeof(options) - at, i ? ":%u" : "%u", i);
    (void)snprintf(
        options + at, sizeof(options) - at, "%s,upperdir=rw/upper,workdir=rw/work,userxattr%s",
        p->plan.layers.count ? "" : "none", p->plan.flags & AGX_PLAN_VOLATILE ? ",volatile" : "");
    if (mount("overlay", "root", "overlay", 0, options) < 0 || chdir("root") < 0)
        agx_plan_fail(p, AGX_STAGE_OVERLAY, "/");
}

/* A directory at the top of the image; makes a missing one. A link would lead elsewhere. Returns
 * the name to mount on, relative to the image's root. */
static const char *need_dir(const struct agx_planned *p, const char *path)
{
    struct stat st;

    if ((mkdir(path + 1, DIR_MODE) < 0 && errno != EEXIST) || lstat(path + 1, &st) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, path);
    errno = ENOTDIR;
    if (!S_ISDIR(st.st_mode))
        agx_plan_fail(p, AGX_STAGE_MOUNT, path);
    return path + 1;
}

/* Before we leave the host's root: the kernel allows a new proc and sysfs only to a process that
 * sees one already. */
static void mount_kernel(const struct agx_planned *p)
{
    static const unsigned long plain = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    char pts[80];

    if (mount("proc", need_dir(p, "/proc"), "proc", plain, NULL) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/proc");
    if (mount("sysfs", need_dir(p, "/sys"), "sysfs", plain | MS_RDONLY, NULL) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/sys");
    if ((p->plan.flags & AGX_PLAN_CGROUP2) &&
        mount("cgroup", "sys/fs/cgroup", "cgroup2", plain | MS_RDONLY, NULL) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/sys/fs/cgroup");
    if (move_mount(p->devices, "", AT_FDCWD, need_dir(p, "/dev"), MOVE_MOUNT_F_EMPTY_PATH) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/dev");
    (void)close(p->devices);
    (void)snprintf(pts, sizeof(pts), "newinstance,ptmxmode=0666,mode=0620,gid=5,max=%u",
                   p->plan.ptys);
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, pts) < 0)
        agx_plan_fail(p, AGX_STAGE_MOUNT, "/dev/pts");
}

/* Unmounts the old root and everything in it, also the stage, of whose mounts the overlay has its
 * own copies. After that no path leads to the host. */
static void leave_host(const struct agx_planned *p)
{
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        agx_plan_fail(p, AGX_STAGE_ROOT, NULL);
    if (sethostname(p->plan.hostname.ptr, p->plan.hostname.len) < 0 ||
        setdomainname("(none)", 6) < 0)
        agx_plan_fail(p, AGX_STAGE_HOSTNAME, p->plan.hostname.ptr);
}

void agx_plan_make_root(struct agx_planned *p)
{
    take_identity(p);
    make_stage(p);
    agx_plan_layer(p);
    mount_overlay(p);
    mount_kernel(p);
    leave_host(p);
}

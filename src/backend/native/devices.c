/* devices.c: nodes, links and the mount points for other file systems. */
#include "backend/native/devices.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/banned.h"

#define OPTIONS "mode=755,size=64k" /* `bound`: root of the sandboxes is id 1 (base/idmap.h) */

struct agx_devices {
    char *path;
};

/* What every program may expect; nothing that belongs to the host. */
static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {
    { "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
    { "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const struct {
    const char *name, *target;
} links[] = {
    { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
    { "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
    { "ptmx", "pts/ptmx" },
};

static const char *const dirs[] = { "mqueue", "pts", "shm" };

/* A file as the mount point of the host's node. */
static int bind_node(int dir, const char *path, const char *name, struct agx_error **err)
{
    char from[32], to[PATH_MAX];
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd >= 0)
        (void)close(fd);
    (void)snprintf(from, sizeof(from), "/dev/%s", name);
    (void)snprintf(to, sizeof(to), "%s/%s", path, name);
    if (fd < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0)
        return agx_error_errno(err, errno, "mount '%s' on '%s'", from, to);
    return 0;
}

static int make_node(int dir, const char *path, size_t i, struct agx_error **err)
{
    if (mknodat(dir, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) < 0 ||
        fchmodat(dir, nodes[i].name, 0666, 0) < 0) /* regardless of our umask */
        return agx_error_errno(err, errno, "make device '%s/%s'", path, nodes[i].name);
    return 0;
}

static int devices_fill(int dir, const char *path, bool bound, struct agx_error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(nodes); i++)
        r = bound ? bind_node(dir, path, nodes[i].name, err) : make_node(dir, path, i, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < AGX_ARRAY_LEN(links); i++) {
        if (symlinkat(links[i].target, dir, links[i].name) < 0)
            return agx_error_errno(err, errno, "make link '%s/%s'", path, links[i].name);
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(dirs); i++) {
        if (mkdirat(dir, dirs[i], 0755) < 0 || fchmodat(dir, dirs[i], 0755, 0) < 0)
            return agx_error_errno(err, errno, "make directory '%s/%s'", path, dirs[i]);
    }
    return 0;
}

static int mount_and_fill(const char *path, bool bound, struct agx_error **err)
{
    _cleanup_close_ int dir = -1;

    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make directory '%s'", path);
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        continue;
    if (mount("agentix-dev", path, "tmpfs", MS_NOSUID | MS_NOEXEC,
              bound ? OPTIONS ",uid=1,gid=1" : OPTIONS) < 0)
        return agx_error_errno(err, errno, "mount on '%s'", path);
    dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return agx_error_errno(err, errno, "open '%s'", path);
    return devices_fill(dir, path, bound, err);
}

int agx_devices_open(const char *path, bool bound, struct agx_devices **ret_devices,
                     struct agx_error **err)
{
    struct agx_devices *d = agx_new(struct agx_devices);
    int r = agx_text_set(&d->path, path, err);

    if (r == 0)
        r = mount_and_fill(path, bound, err);
    if (r < 0) {
        (void)agx_devices_close(d);
        return r;
    }
    *ret_devices = d;
    return 0;
}

struct agx_devices *agx_devices_close(struct agx_devices *d)
{
    if (!d)
        return NULL;
    if (d->path) {
        (void)umount2(d->path, MNT_DETACH | UMOUNT_NOFOLLOW);
        (void)rmdir(d->path);
    }
    free(d->path);
    free(d);
    return NULL;
}

const char *agx_devices_path(const struct agx_devices *d)
{
    return d->path;
}

/* disk.c: chooses the implementation that this host supports; the common part of both. */
#include "backend/native/limits/disk.h"

#include "backend/native/limits/disk_internal.h"
#include "base/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/banned.h"

void agx_disk_probe(int dirfd, struct agx_disk *ret)
{
    *ret = (struct agx_disk){ .kind = AGX_DISK_NONE };
    if (agx_disk_quota_works(dirfd))
        ret->kind = AGX_DISK_QUOTA;
    else if (agx_disk_image_works(&ret->mkfs, ret->why, sizeof(ret->why)))
        ret->kind = AGX_DISK_IMAGE;
}

void agx_disk_none(struct agx_disk *ret, const char *why)
{
    *ret = (struct agx_disk){ .kind = AGX_DISK_NONE };
    (void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

int agx_disk_check(const struct agx_disk *d, int64_t bytes, struct agx_error **err)
{
    if (bytes < AGX_DISK_BYTES_MIN)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "at least %" PRId64 " bytes",
                             AGX_DISK_BYTES_MIN);
    if (d->kind == AGX_DISK_NONE)
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "this host cannot limit it: the file system of the data directory has "
                             "no project quotas (mount option prjquota), and %s",
                             d->why);
    return 0;
}

int agx_disk_prepare(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                     int64_t bytes, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    int r = agx_disk_check(d, bytes, err);

    if (r < 0)
        return r;
    if (mkdirat(dirfd, name, 0700) < 0 && errno != EEXIST)
        return agx_error_errno(err, errno, "make '%s'", name);
    if (d->kind == AGX_DISK_IMAGE)
        return agx_disk_image_mount(d->mkfs, dirfd, name, bytes, err);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s'", name);
    return agx_disk_quota_set(fd, project, bytes, err);
}

int agx_disk_settle(int dirfd, const char *name, struct agx_error **err)
{
    char path[64 + NAME_MAX];
    struct stat st;

    /* Without an image we have mounted nothing. */
    (void)snprintf(path, sizeof(path), "%s.img", name);
    if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : agx_error_errno(err, errno, "look at '%s'", path);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dirfd, name);
    /* More than one mount when a daemon was killed in between; EINVAL when there is none. */
    while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
    if (errno != EINVAL && errno != ENOENT)
        return agx_error_errno(err, errno, "unmount '%s'", name);
    return 0;
}

int agx_disk_drop(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  struct agx_error **err)
{
    _cleanup_close_ int fd = -1;

    if (d->kind != AGX_DISK_QUOTA)
        return agx_disk_settle(dirfd, name, err);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : agx_error_errno(err, errno, "open '%s'", name);
    return agx_disk_quota_set(fd, project, 0, err);
}

int agx_disk_used(const struct agx_disk *d, int dirfd, const char *name, uint32_t project,
                  uint64_t *ret_bytes, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;

    if (d->kind != AGX_DISK_QUOTA)
        return agx_disk_image_used(dirfd, name, ret_bytes, err);
    fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s'", name);
    return agx_disk_quota_used(fd, project, ret_bytes, err);
}

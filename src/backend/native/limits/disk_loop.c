/*
 * disk_loop.c: attaches a file to a loop device.
 *
 * A file on two devices would be mounted as two file systems that destroy each other. So a file
 * that still has a device (its sandbox ended a moment ago, and the kernel has not finished) gets
 * that same device: the kernel then mounts the same file system again. A device detaches with its
 * last user; we keep it open until we are done.
 */
#include "backend/native/limits/disk_internal.h"
#include "base/limits.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/banned.h"

static bool is_of(int loop_fd, const struct stat *image)
{
    struct loop_info64 info;

    return ioctl(loop_fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image->st_ino &&
           info.lo_device == image->st_dev;
}

/* The device that has the file: a descriptor, or -1. */
static int find_used(const struct stat *image)
{
    DIR *d = opendir("/sys/block");
    const struct dirent *e;
    int found = -1;

    while (d && found < 0 && (e = readdir(d))) {
        char path[64 + NAME_MAX];

        if (!agx_str_starts(agx_str_from(e->d_name), AGX_STR("loop")))
            continue;
        (void)snprintf(path, sizeof(path), "/sys/block/%s/loop", e->d_name);
        if (access(path, F_OK) < 0) /* has no file at all */
            continue;
        (void)snprintf(path, sizeof(path), "/dev/%s", e->d_name);
        found = open(path, O_RDWR | O_CLOEXEC);
        if (found >= 0 && !is_of(found, image)) {
            (void)close(found);
            found = -1;
        }
    }
    if (d)
        (void)closedir(d);
    return found;
}

/* -1 with errno set; EBUSY when another process was faster. */
static int take_free(int control_fd, int image_fd)
{
    const struct loop_config config = {
        .fd = (uint32_t)image_fd,
        .block_size = 4096, /* ext4's own block size: less work in between */
        .info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
    };
    int number = ioctl(control_fd, LOOP_CTL_GET_FREE);
    char path[32];
    int fd;

    if (number < 0)
        return -1;
    (void)snprintf(path, sizeof(path), "/dev/loop%d", number);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) < 0) {
        int saved = errno;

        (void)close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int agx_disk_loop(int image_fd, struct agx_error **err)
{
    _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    struct stat st;
    int fd;

    if (control < 0)
        return agx_error_errno(err, errno, "open '/dev/loop-control'");
    if (fstat(image_fd, &st) < 0)
        return agx_error_errno(err, errno, "look at the image");
    fd = find_used(&st);
    for (int i = 0; fd < 0 && i < AGX_DISK_LOOP_TRIES; i++) {
        fd = take_free(control, image_fd);
        if (fd < 0 && errno != EBUSY)
            break;
    }
    return fd < 0 ? agx_error_errno(err, errno, "take a loop device") : fd;
}

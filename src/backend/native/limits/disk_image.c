/*
 * disk_image.c: a file that holds an ext4, mounted on a directory.
 *
 * The file is made under a temporary name and renamed when its file system is complete, so an
 * existing one is whole. Only the kernel ever writes to it, so its content can be trusted.
 */
#include "backend/native/limits/disk_internal.h"
#include "base/fd.h"
#include "base/limits.h"
#include "loop/child.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/banned.h"

enum { TEXT_MAX = 64 << 10, NAME_SIZE = NAME_MAX + 1 };

static bool kernel_has_ext4(void)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);

    return agx_fd_read_file(AT_FDCWD, "/proc/filesystems", &text, NULL) >= 0 &&
           memmem(text.data, text.len, "\text4\n", 6) != NULL;
}

bool agx_disk_image_works(const char **ret_mkfs, char *ret_why, size_t size)
{
    static const char *const places[] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4",
                                          "/usr/bin/mkfs.ext4" };
    const char *mkfs = NULL;
    _cleanup_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    for (size_t i = 0; !mkfs && i < AGX_ARRAY_LEN(places); i++) {
        if (access(places[i], X_OK) == 0)
            mkfs = places[i];
    }
    if (control < 0)
        (void)snprintf(ret_why, size, "'/dev/loop-control' cannot be opened (loop devices)");
    else if (!mkfs)
        (void)snprintf(ret_why, size, "there is no mkfs.ext4 (package e2fsprogs)");
    else if (!kernel_has_ext4())
        (void)snprintf(ret_why, size, "the kernel has no ext4");
    else
        *ret_mkfs = mkfs;
    return control >= 0 && mkfs && kernel_has_ext4();
}

/* -- making */

static int run_mkfs(const char *mkfs, int image_fd, struct agx_error **err)
{
    char per_file[24];
    const char *const argv[] = {
        "mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-i", per_file,
        /* Tables and journal need not be written now: the file reads as zeroes. */
        "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0", "/proc/self/fd/3",
        NULL
    };
    const struct agx_child_fd fds[] = { { image_fd, 3 } };
    const struct agx_child_params params = {
        .file = mkfs, .argv = argv, .fds = fds, .n_fds = 1, .group = AGX_CHILD_NEW_GROUP
    };
    int status;
    pid_t pid;
    int r;

    (void)snprintf(per_file, sizeof(per_file), "%d", AGX_DISK_BYTES_PER_FILE);
    r = agx_child_spawn(&params, &pid, err);
    if (r < 0)
        return r;
    do
        r = waitpid(pid, &status, 0);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return agx_error_errno(err, errno, "wait for '%s'", mkfs);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return agx_error_set(err, AGX_INTERNAL, "'%s' failed with status %d", mkfs, status);
    return 0;
}

/* The descriptor of a new image under its final name. */
static int make_image(const char *mkfs, int dirfd, const char *name, int64_t bytes,
                      struct agx_error **err)
{
    char fresh[NAME_SIZE + 8];
    _cleanup_close_ int fd = -1;
    int r;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", name);
    fd = openat(dirfd, fresh, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return agx_error_errno(err, errno, "make '%s'", fresh);
    r = ftruncate(fd, bytes) < 0 ? agx_error_errno(err, errno, "%" PRId64 " bytes", bytes)
                                 : run_mkfs(mkfs, fd, err);
    if (r == 0 && renameat(dirfd, fresh, dirfd, name) < 0)
        r = agx_error_errno(err, errno, "rename '%s' to '%s'", fresh, name);
    if (r < 0) {
        (void)unlinkat(dirfd, fresh, 0);
        return r;
    }
    return AGX_TAKE_FD(fd);
}

static int open_image(const char *mkfs, int dirfd, const char *name, int64_t bytes,
                      struct agx_error **err)
{
    int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    if (errno != ENOENT)
        return agx_error_errno(err, errno, "open '%s'", name);
    return make_image(mkfs, dirfd, name, bytes, err);
}

/* -- mounting */

static int mount_device(int loop_fd, int dirfd, const char *name, struct agx_error **err)
{
    _cleanup_close_ int context = fsopen("ext4", FSOPEN_CLOEXEC);
    _cleanup_close_ int mounted = -1;
    char source[32];

    (void)snprintf(source, sizeof(source), "/proc/self/fd/%d", loop_fd);
    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "source", source, 0) < 0 ||
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return agx_error_errno(err, errno, "mount the image of '%s'", name);
    mounted = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME);
    if (mounted < 0 || move_mount(mounted, "", dirfd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return agx_error_errno(err, errno, "mount the image on '%s'", name);
    return 0;
}

int agx_disk_image_mount(const char *mkfs, int dirfd, const char *name, int64_t bytes,
                         struct agx_error **err)
{
    _cleanup_close_ int image = -1, loop = -1;
    char file[NAME_SIZE];
    int r = agx_disk_settle(dirfd, name, err); /* left by a daemon that was killed */

    if (r < 0)
        return r;
    if (snprintf(file, sizeof(file), "%s.img", name) >= (int)sizeof(file))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is too long", name);
    image = open_image(mkfs, dirfd, file, bytes, err);
    if (image < 0)
        return image;
    loop = agx_disk_loop(image, err);
    return loop < 0 ? loop : mount_device(loop, dirfd, name, err);
}

int agx_disk_image_used(int dirfd, const char *name, uint64_t *ret_bytes, struct agx_error **err)
{
    char file[NAME_SIZE];
    struct stat st;

    (void)snprintf(file, sizeof(file), "%s.img", name);
    if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return agx_error_errno(err, errno, "look at '%s'", file);
    *ret_bytes = (uint64_t)st.st_blocks * 512;
    return 0;
}

#include "daemon/instance.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/lockfile.h"
#include "base/mem.h"

#define PID_TEXT 24

struct agx_instance {
    int fd;
};

static int instance_refuse(const char *path, pid_t holder, struct agx_error **err)
{
    char by[PID_TEXT + 32] = "";

    if (holder > 0)
        (void)snprintf(by, sizeof(by), " by process %ld", (long)holder);
    return agx_error_set(err, AGX_ALREADY_EXISTS, "the lock '%s' is already held%s", path, by);
}

static int take_lock(int fd, const char *path, struct agx_error **err)
{
    pid_t holder = 0;

    if (agx_lockfile_take(fd, &holder) == 0)
        return 0;
    return errno == EWOULDBLOCK ? instance_refuse(path, holder, err)
                                : agx_error_errno(err, errno, "lock '%s'", path);
}

/* The pid is only for people to read, so a full disk must not prevent the start. */
static void write_pid(int fd)
{
    char text[PID_TEXT];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)n, 0);
}

/* Does the path still name this file? A lock on a removed file locks nobody out. */
static bool is_current(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

int agx_instance_open(const char *path, mode_t mode, struct agx_instance **ret_instance,
                      struct agx_error **err)
{
    for (;;) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);
        struct agx_instance *i;
        int r;

        if (fd < 0)
            return agx_error_errno(err, errno, "open the lock '%s'", path);
        r = take_lock(fd, path, err);
        if (r < 0)
            return r;
        if (!is_current(fd, path))
            continue;
        (void)fchmod(fd, mode); /* open() applied the umask */
        write_pid(fd);
        i = agx_new(struct agx_instance);
        i->fd = AGX_TAKE_FD(fd);
        *ret_instance = i;
        return 0;
    }
}

struct agx_instance *agx_instance_close(struct agx_instance *i)
{
    if (!i)
        return NULL;
    (void)close(i->fd);
    free(i);
    return NULL;
}

#include "daemon/instance.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"

#define PID_TEXT 24

struct agx_instance {
    int fd;
};

/* The holder's pid, or 0 when it has not written it yet. */
static pid_t read_holder(int fd)
{
    char text[PID_TEXT];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    struct agx_str digits = { text, n > 0 ? (size_t)n : 0 };
    uint64_t pid;

    digits.len = agx_str_find(digits, '\n');
    return agx_parse_u64(digits, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

static int instance_refuse(const char *path, pid_t holder, struct agx_error **err)
{
    char by[PID_TEXT + 32] = "";

    if (holder > 0)
        (void)snprintf(by, sizeof(by), " by process %ld", (long)holder);
    return agx_error_set(err, AGX_ALREADY_EXISTS, "the lock '%s' is already held%s", path, by);
}

/* A child that the holder forked inherits the lock until it executes its program. When the holder
 * was killed meanwhile, the lock is released some milliseconds later. */
static bool is_dead(pid_t holder)
{
    return holder > 0 && kill(holder, 0) < 0 && errno == ESRCH;
}

static int try_lock(int fd, const char *path, struct agx_error **err)
{
    for (unsigned waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0;) {
        pid_t holder;

        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return agx_error_errno(err, errno, "lock '%s'", path);
        holder = read_holder(fd);
        if (!is_dead(holder) || waited_ms >= AGX_INSTANCE_WAIT_MS)
            return instance_refuse(path, holder, err);
        (void)usleep(AGX_INSTANCE_PAUSE_MS * 1000);
        waited_ms += AGX_INSTANCE_PAUSE_MS;
    }
    return 0;
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
        r = try_lock(fd, path, err);
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

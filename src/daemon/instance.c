#include "daemon/instance.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/banned.h"

#define PID_TEXT 24

struct agx_instance {
    int fd;
};

/* " by process 123", or nothing when the holder has not written it yet. */
static void describe_holder(int fd, char *out, size_t size)
{
    char text[PID_TEXT];
    ssize_t n = pread(fd, text, sizeof(text), 0);
    struct agx_str digits = { text, n > 0 ? (size_t)n : 0 };
    uint64_t pid;

    digits.len = agx_str_find(digits, '\n');
    if (agx_parse_u64(digits, INT32_MAX, &pid))
        (void)snprintf(out, size, " by process %llu", (unsigned long long)pid);
    else
        out[0] = '\0';
}

static int try_lock(int fd, const char *path, struct agx_error **err)
{
    char holder[PID_TEXT + 32];

    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return agx_error_errno(err, errno, "lock '%s'", path);
        describe_holder(fd, holder, sizeof(holder));
        return agx_error_set(err, AGX_ALREADY_EXISTS, "the lock '%s' is already held%s", path,
                             holder);
    }
    return 0;
}

/* For people only, so a full disk is no reason not to start. */
static void write_pid(int fd)
{
    char text[PID_TEXT];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)n, 0);
}

/* Is it still the file of that name? One that somebody removed meanwhile locks nobody out. */
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
        (void)fchmod(fd, mode); /* the umask is for other files */
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

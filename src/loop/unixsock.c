/*
 * unixsock.c: makes and removes the path of a Unix listening socket.
 *
 * Three things can go wrong with such a path:
 *  (1) others connect before its mode is set. The mode of a socket's file is that of the unbound
 *      socket less the umask, so we set it before bind().
 *  (2) a dead process left its socket. A refused connect() shows that no process listens.
 *  (3) two processes find the same dead socket: the slower one would remove the live socket of the
 *      faster one. So each locks (flock) the directory while it checks, removes and binds.
 */
#include "loop/unixsock.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/banned.h"

/* The lock is held during a few system calls, so some seconds are long, also on a busy machine. But
 * any user may lock a public directory for ever, so we do not wait longer. */
#define LOCK_TRIES 500
#define LOCK_PAUSE_MS 10

struct agx_unixsock {
    dev_t dev;
    ino_t ino;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

/* Returns the descriptor that holds the lock on the directory of `path`, or a negative errno. */
static int lock_directory(const char *path, int tries)
{
    char copy[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    _cleanup_close_ int fd = -1;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };

        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (--tries <= 0)
            return -EBUSY;
        (void)nanosleep(&pause, NULL);
    }
    return AGX_TAKE_FD(fd);
}

/* Removes a dead process's socket at the address; refuses anything else. */
static int remove_stale(const struct sockaddr_un *sa, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;

    if (lstat(sa->sun_path, &st) < 0)
        return agx_error_errno(err, errno, "stat '%s'", sa->sun_path);
    if (!S_ISSOCK(st.st_mode))
        return agx_error_set(err, AGX_ALREADY_EXISTS, "'%s' exists and is not a socket",
                             sa->sun_path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return agx_error_errno(err, errno, "open a socket");
    if (connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN)
        return agx_error_set(err, AGX_ALREADY_EXISTS, "another process listens at '%s'",
                             sa->sun_path);
    if (errno != ECONNREFUSED)
        return agx_error_errno(err, errno, "check for a listener at '%s'", sa->sun_path);
    if (unlink(sa->sun_path) < 0)
        return agx_error_errno(err, errno, "remove the stale socket '%s'", sa->sun_path);
    return 0;
}

static int bind_private(const struct sockaddr_un *sa, int *ret_fd, struct agx_error **err)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "open a socket");
    if (fchmod(fd, 0600) < 0)
        return agx_error_errno(err, errno, "set the mode of '%s'", sa->sun_path);
    if (bind(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0) {
        if (errno != EADDRINUSE)
            return agx_error_errno(err, errno, "bind '%s'", sa->sun_path);
        r = remove_stale(sa, err);
        if (r < 0)
            return r;
        if (bind(fd, (const struct sockaddr *)sa, sizeof(*sa)) < 0)
            return agx_error_errno(err, errno, "bind '%s'", sa->sun_path);
    }
    *ret_fd = AGX_TAKE_FD(fd);
    return 0;
}

int agx_unixsock_listen(const char *path, int *ret_fd, struct agx_unixsock **ret_sock,
                        struct agx_error **err)
{
    _cleanup_close_ int lock = -1, fd = -1;
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct agx_unixsock *s;
    struct stat st;
    int r;

    if (strlen(path) == 0 || strlen(path) >= sizeof(sa.sun_path))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "socket path '%s' has %zu bytes, but 1 to %zu are allowed", path,
                             strlen(path), sizeof(sa.sun_path) - 1);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    lock = lock_directory(path, LOCK_TRIES);
    if (lock < 0)
        return agx_error_errno(err, -lock, "lock the directory of '%s'", path);
    r = bind_private(&sa, &fd, err);
    if (r < 0)
        return r;
    if (lstat(path, &st) < 0)
        return agx_error_errno(err, errno, "stat '%s'", path);
    s = calloc(1, sizeof(*s));
    if (!s || listen(fd, SOMAXCONN) < 0) {
        r = agx_error_errno(err, s ? errno : ENOMEM, "listen at '%s'", path);
        (void)unlink(path);
        free(s);
        return r;
    }
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    (void)snprintf(s->path, sizeof(s->path), "%s", path);
    *ret_fd = AGX_TAKE_FD(fd);
    *ret_sock = s;
    return 0;
}

struct agx_unixsock *agx_unixsock_free(struct agx_unixsock *s)
{
    _cleanup_close_ int lock = -1;
    struct stat st;

    if (!s)
        return NULL;
    /* If the lock is taken the path stays: the next start replaces a stale socket. */
    lock = lock_directory(s->path, 1);
    if (lock >= 0 && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
        (void)unlink(s->path);
    free(s);
    return NULL;
}

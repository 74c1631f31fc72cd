/* fd.c: whole transfers over descriptors. */
#include "base/fd.h"

#include "base/banned.h"

#include <errno.h>
#include <fcntl.h>

/* The size of one read: the default capacity of a pipe. */
enum { CHUNK = 65536 };

int agx_fd_write_all(int fd, struct agx_str bytes, struct agx_error **err)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return agx_error_errno(err, errno, "write %zu bytes", bytes.len);
        bytes = agx_str_skip(bytes, (size_t)n);
    }
    return 0;
}

static ssize_t read_some(int fd, void *to, size_t n)
{
    ssize_t got;

    do
        got = read(fd, to, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Reads once into the remaining room. Returns the bytes read, 0 at end of file, or negative. */
static ssize_t read_step(int fd, struct agx_buf *out, struct agx_error **err)
{
    size_t room = AGX_MIN(out->max - out->len, (size_t)CHUNK);
    uint8_t probe;
    ssize_t n;

    if (agx_buf_reserve(out, room) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "out of memory after %zu bytes",
                             out->len);
    /* A full buffer is correct only at end of file: probe with one more byte. */
    n = room > 0 ? read_some(fd, out->data + out->len, room) : read_some(fd, &probe, 1);
    if (n < 0)
        return agx_error_errno(err, errno, "read");
    if (n > 0 && room == 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "longer than %zu bytes", out->max);
    out->len += (size_t)n;
    return n;
}

int agx_fd_read_all(int fd, struct agx_buf *out, struct agx_error **err)
{
    size_t start = out->len;
    ssize_t n;

    do
        n = read_step(fd, out, err);
    while (n > 0);
    if (n < 0)
        out->len = start;
    return (int)n;
}

int agx_fd_read_file(int dirfd, const char *path, struct agx_buf *out, struct agx_error **err)
{
    _cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "open '%s'", path);
    r = agx_fd_read_all(fd, out, err);
    return r < 0 ? agx_error_wrap(err, r, "read file '%s'", path) : 0;
}

int agx_fd_set_nonblock(int fd, bool on, struct agx_error **err)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) < 0)
        return agx_error_errno(err, errno, "make descriptor %d %sblocking", fd, on ? "non-" : "");
    return 0;
}

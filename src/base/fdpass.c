/*
 * fdpass.c: see fdpass.h.
 *
 * Invariant: each descriptor that the kernel installed is in the caller's array or closed. There
 * can be one more than was asked for: control messages are padded, and the kernel fills the
 * padding.
 */
#include "base/fdpass.h"

#include "base/macros.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(AGX_FDPASS_MAX * sizeof(int))];
};

ssize_t agx_fdpass_send(int sock, const void *bytes, size_t len, const int *fds, size_t n_fds,
                        int flags)
{
    union control control = { .bytes = { 0 } };
    struct iovec iov = { (void *)bytes, len };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (n_fds > AGX_FDPASS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (n_fds > 0) {
        control.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(n_fds * sizeof(int)) };
        memcpy(CMSG_DATA(&control.align), fds, n_fds * sizeof(int));
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
    }
    return sendmsg(sock, &m, flags | MSG_NOSIGNAL);
}

static void fdpass_take(struct agx_fdpass *in, const struct cmsghdr *c, bool keep)
{
    const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < n; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
        if (keep && in->n < in->max) {
            in->fds[in->n++] = fd;
        } else {
            (void)close(fd);
            in->lost = true;
        }
    }
}

ssize_t agx_fdpass_receive(int sock, void *buf, size_t len, int flags, struct agx_fdpass *in)
{
    union control control = { .bytes = { 0 } };
    struct iovec iov = { buf, len };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };
    ssize_t n;

    assert(in->max <= AGX_FDPASS_MAX);
    m.msg_controllen = CMSG_SPACE(in->max * sizeof(int));
    in->n = 0;
    in->lost = in->cut = false;
    n = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return n;
    in->lost = (m.msg_flags & MSG_CTRUNC) != 0;
    in->cut = (m.msg_flags & MSG_TRUNC) != 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            fdpass_take(in, c, n > 0);
    }
    return n;
}

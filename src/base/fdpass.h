/*
 * fdpass.h: descriptors that go through a Unix socket beside bytes (SCM_RIGHTS).
 *
 * Only system calls: fit for a process that has no library, and for a child after fork(). Both
 * functions return what sendmsg(2) and recvmsg(2) do, with errno; an interrupted call is the
 * caller's to repeat.
 */
#ifndef AGX_BASE_FDPASS_H
#define AGX_BASE_FDPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Beside one message. No message of ours has as many. */
#define AGX_FDPASS_MAX 16

/* What came beside the bytes. */
struct agx_fdpass {
    int *fds;   /* the caller's array ... */
    size_t max; /* ... for so many, at most AGX_FDPASS_MAX */
    size_t n;   /* came: the caller's to close, and close-on-exec */
    bool lost;  /* there were more than `max`, or than this process may have: those are closed */
    bool cut;   /* the packet was longer than the caller's buffer */
};

/* The descriptors stay the caller's. Never raises SIGPIPE. More than AGX_FDPASS_MAX: EINVAL. */
ssize_t agx_fdpass_send(int sock, const void *bytes, size_t len, const int *fds, size_t n_fds,
                        int flags);

/* The caller sets `fds` and `max`. Nothing is kept beside an empty packet, so that the caller may
 * take 0 for the end of the connection. */
ssize_t agx_fdpass_receive(int sock, void *buf, size_t len, int flags, struct agx_fdpass *in);

#endif

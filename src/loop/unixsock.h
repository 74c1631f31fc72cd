/* unixsock.h: the path of a Unix listening socket: created safely, removed only if still ours. */
#ifndef AGX_LOOP_UNIXSOCK_H
#define AGX_LOOP_UNIXSOCK_H

#include "base/error.h"

struct agx_unixsock;

/*
 * Binds and listens at `path` with mode 0600. Replaces a stale socket, refuses a live one; two
 * processes that try the same path at once do not take it from each other. The caller owns *ret_fd
 * (non-blocking, close-on-exec) and *ret_sock, which represents the path.
 */
int agx_unixsock_listen(const char *path, int *ret_fd, struct agx_unixsock **ret_sock,
                        struct agx_error **err) AGX_MUST_CHECK;

/* Removes the path if it is still ours. Call it before closing the descriptor. */
struct agx_unixsock *agx_unixsock_free(struct agx_unixsock *s);

static inline void agx_unixsock_freep(struct agx_unixsock **s)
{
    *s = agx_unixsock_free(*s);
}

#endif

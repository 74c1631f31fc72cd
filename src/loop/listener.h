/*
 * listener.h: listening sockets, Unix and TCP, that hand out raw connections.
 *
 * Open one (bound and listening: clients may connect from then on), start it with the callback that
 * takes its connections, close it. Opening may block for a moment (a name to resolve, another
 * process that opens the same path): it belongs into a program's start.
 */
#ifndef AGX_LOOP_LISTENER_H
#define AGX_LOOP_LISTENER_H

#include "base/error.h"
#include "loop/addr.h"

struct agx_loop;
struct agx_listener;

/* Loop thread. The callee owns `fd`: non-blocking, close-on-exec, and for TCP without Nagle's
 * delay. `peer` is borrowed for the call. Closing the listener in here is allowed. */
typedef void (*agx_accept_fn)(void *user, int fd, const struct agx_addr *peer);

/*
 * A Unix socket at `path`, for its owner only (mode 0600 from its first moment). The socket of a
 * process that is gone is replaced; -AGX_ALREADY_EXISTS when somebody listens there, or when it is
 * not a socket; -AGX_INVALID_ARGUMENT for a path longer than a socket address holds.
 */
int agx_listener_open_unix(struct agx_loop *l, const char *path, struct agx_listener **ret_listener,
                           struct agx_error **err) AGX_MUST_CHECK;

/* A TCP socket at the first address that `host` stands for; port 0 takes any free one. */
int agx_listener_open_tcp(struct agx_loop *l, const char *host, uint16_t port,
                          struct agx_listener **ret_listener,
                          struct agx_error **err) AGX_MUST_CHECK;

/* A listening stream socket that somebody else opened (socket activation). Takes *take_fd on
 * success and sets it to -1; -AGX_INVALID_ARGUMENT when it is none. Its path is never removed. */
int agx_listener_open_fd(struct agx_loop *l, int *take_fd, struct agx_listener **ret_listener,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Starts accepting; once. While descriptors are used up it waits and tries again. */
int agx_listener_start(struct agx_listener *ln, agx_accept_fn on_accept, void *user,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Where it listens, with the port that was given. Borrowed; valid until it is closed. */
const struct agx_addr *agx_listener_peek_addr(const struct agx_listener *ln);

/* Before it is closed: takes who has connected to a path of ours and was not yet accepted, so that
 * nobody who found us is turned away. The path is gone then. */
void agx_listener_take_waiting(struct agx_listener *ln);

/* No callback follows. Removes the path of a Unix socket if it is still ours. Returns NULL and
 * accepts it. */
struct agx_listener *agx_listener_close(struct agx_listener *ln);

#endif

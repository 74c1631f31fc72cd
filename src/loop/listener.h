/*
 * listener.h: listening sockets, Unix and TCP, that deliver raw connections.
 *
 * Open one (bound and listening: clients may connect from then on), start it with the callback for
 * its connections, close it. Opening may block for a moment (to resolve a name, or for another
 * process that opens the same path), so do it at a program's start.
 */
#ifndef AGX_LOOP_LISTENER_H
#define AGX_LOOP_LISTENER_H

#include "base/error.h"
#include "loop/addr.h"

struct agx_loop;
struct agx_listener;

/* Loop thread. The callee owns `fd`: non-blocking, close-on-exec, for TCP with TCP_NODELAY. `peer`
 * is borrowed for the call. May close the listener. */
typedef void (*agx_accept_fn)(void *user, int fd, const struct agx_addr *peer);

/*
 * A Unix socket at `path`, with mode 0600 from its first moment. Replaces the socket of a dead
 * process. -AGX_ALREADY_EXISTS when a process listens there or the path is not a socket;
 * -AGX_INVALID_ARGUMENT for a path longer than a socket address allows.
 */
int agx_listener_open_unix(struct agx_loop *l, const char *path, struct agx_listener **ret_listener,
                           struct agx_error **err) AGX_MUST_CHECK;

/* A TCP socket at the first address of `host`; port 0 takes any free port. */
int agx_listener_open_tcp(struct agx_loop *l, const char *host, uint16_t port,
                          struct agx_listener **ret_listener,
                          struct agx_error **err) AGX_MUST_CHECK;

/* A listening stream socket that another program opened (socket activation). Takes *take_fd on
 * success and sets it to -1; -AGX_INVALID_ARGUMENT for other descriptors. Never removes its path.
 */
int agx_listener_open_fd(struct agx_loop *l, int *take_fd, struct agx_listener **ret_listener,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Starts accepting; once. When descriptors run out it waits and retries. */
int agx_listener_start(struct agx_listener *ln, agx_accept_fn on_accept, void *user,
                       struct agx_error **err) AGX_MUST_CHECK;

/* Where it listens, with the actual port. Borrowed; valid until it is closed. */
const struct agx_addr *agx_listener_peek_addr(const struct agx_listener *ln);

/* Before the close: accepts the connections that wait at a path of ours, so that no client that
 * found us is turned away. Removes the path. */
void agx_listener_take_waiting(struct agx_listener *ln);

/* No callback follows. Removes the path of a Unix socket if it is still ours. Returns NULL and
 * accepts it. */
struct agx_listener *agx_listener_close(struct agx_listener *ln);

#endif

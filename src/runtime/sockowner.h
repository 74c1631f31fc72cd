/*
 * sockowner.h: which user of this machine is at the other end of a TCP connection.
 *
 * Unlike a Unix socket, TCP has no peer credentials. But if the other end is a socket of this
 * network namespace, the kernel's socket diagnosis (sock_diag) knows the user who created it. One
 * request and its answer, both immediate: it does not block.
 */
#ifndef AGX_RUNTIME_SOCKOWNER_H
#define AGX_RUNTIME_SOCKOWNER_H

#include "base/error.h"

#include <sys/types.h>

/* Opens the query socket, for any number of queries. */
int agx_sockowner_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/*
 * The user of the other end of `fd`, a connected TCP socket, as an id of our user namespace.
 * -AGX_NOT_FOUND when the user has no id here, and when the other end is in another network
 * namespace, on another machine, or already closed.
 */
int agx_sockowner_find(int ask_fd, int fd, uid_t *ret_uid, struct agx_error **err) AGX_MUST_CHECK;

#endif

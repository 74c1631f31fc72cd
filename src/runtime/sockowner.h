/*
 * sockowner.h: which user of this machine is at the other end of a TCP connection.
 *
 * Unlike a Unix socket TCP does not tell. But where the other end is a socket of this network
 * namespace, the kernel's socket diagnosis (sock_diag) knows the user who made it. One request and
 * its answer, both at once: nothing waits.
 */
#ifndef AGX_RUNTIME_SOCKOWNER_H
#define AGX_RUNTIME_SOCKOWNER_H

#include "base/error.h"

#include <sys/types.h>

/* A socket to ask by, for any number of questions. */
int agx_sockowner_open(int *ret_fd, struct agx_error **err) AGX_MUST_CHECK;

/*
 * The user of the other end of `fd`, a connected TCP socket, as our user namespace numbers him.
 * -AGX_NOT_FOUND when it has no number for him, and when the other end is in another network
 * namespace or on another machine, or is closed already: nobody answers for it then.
 */
int agx_sockowner_find(int ask_fd, int fd, uid_t *ret_uid, struct agx_error **err) AGX_MUST_CHECK;

#endif

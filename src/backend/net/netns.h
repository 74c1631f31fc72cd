/*
 * netns.h: runs code in another network namespace, such as opening a socket there.
 *
 * A thread that enters another namespace may be unable to return: our own can be the host's, over
 * which an ordinary user's daemon has no power. So a new thread enters it, does the work and ends.
 */
#ifndef AGX_BACKEND_NET_NETNS_H
#define AGX_BACKEND_NET_NETNS_H

#include "base/error.h"

/* Calls `work` in the namespace `net_fd` and waits for it; 0: our own, without a thread. On an
 * error `work` was not called. */
int agx_netns_run(int net_fd, void (*work)(void *arg), void *arg,
                  struct agx_error **err) AGX_MUST_CHECK;

/* As socket(), in the namespace `net_fd`; 0: our own. A descriptor, or an error. */
int agx_netns_socket(int net_fd, int domain, int type, int protocol,
                     struct agx_error **err) AGX_MUST_CHECK;

#endif

/* sockets.h: where the daemon listens, and who may call. */
#ifndef AGX_DAEMON_SOCKETS_H
#define AGX_DAEMON_SOCKETS_H

#include "base/error.h"
#include "daemon/config.h"

#include <stdbool.h>

struct agx_loop;

/* Raises the limit of open files, and returns how many of `conns_max` fit into it. */
size_t agx_sockets_fit(size_t conns_max);

/* For struct agx_grpc_config: `user` is a struct agx_config_uids. Admits our own user, root, and
 * the users in the list. */
bool agx_sockets_admit(void *user, const struct agx_grpc_peer *peer);

/*
 * Serves a Unix socket at `path`, with mode 0600, or 0666 if `open_to_all`: then only
 * agx_sockets_admit() decides who may call.
 */
int agx_sockets_serve_path(struct agx_loop *l, struct agx_grpc_server *s, const char *path,
                           bool open_to_all, struct agx_error **err) AGX_MUST_CHECK;

/* Serves a listening Unix socket that we were passed; its path and mode stay as they are. */
int agx_sockets_serve_fd(struct agx_loop *l, struct agx_grpc_server *s, int fd,
                         struct agx_error **err) AGX_MUST_CHECK;

#endif

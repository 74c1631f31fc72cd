#include "daemon/sockets.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "loop/listener.h"

/* Descriptors reserved for the store, command logs and the backend. */
#define FILES_RESERVED 512

size_t agx_sockets_fit(size_t conns_max)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return conns_max;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)getrlimit(RLIMIT_NOFILE, &files);
    }
    if (files.rlim_cur < 2 * FILES_RESERVED)
        return AGX_MIN(conns_max, files.rlim_cur / 2);
    return AGX_MIN(conns_max, files.rlim_cur - FILES_RESERVED);
}

bool agx_sockets_admit(void *user, const struct agx_grpc_peer *peer)
{
    const struct agx_config_uids *uids = user;

    if (peer->uid == geteuid() || peer->uid == 0)
        return true;
    for (size_t i = 0; i < uids->len; i++) {
        if (uids->ids[i] == peer->uid)
            return true;
    }
    return false;
}

static int sockets_serve(struct agx_grpc_server *s, struct agx_listener *take_listener,
                         struct agx_error **err)
{
    int r = agx_grpc_server_listen(s, &take_listener, err);

    agx_listener_close(take_listener);
    return r;
}

int agx_sockets_serve_path(struct agx_loop *l, struct agx_grpc_server *s, const char *path,
                           bool open_to_all, struct agx_error **err)
{
    struct agx_listener *listener;
    int r = agx_listener_open_unix(l, path, &listener, err);

    if (r < 0)
        return r;
    if (open_to_all && chmod(path, 0666) < 0) {
        r = agx_error_errno(err, errno, "set the mode of '%s'", path);
        agx_listener_close(listener);
        return r;
    }
    return sockets_serve(s, listener, err);
}

int agx_sockets_serve_fd(struct agx_loop *l, struct agx_grpc_server *s, int fd,
                         struct agx_error **err)
{
    struct agx_listener *listener;
    int number = fd, r = agx_listener_open_fd(l, &fd, &listener, err);

    if (r < 0)
        return agx_error_wrap(err, r, "LISTEN_FDS");
    /* Over TCP the caller's user id is unknown. */
    if (agx_listener_peek_addr(listener)->sa.ss_family != AF_UNIX) {
        agx_listener_close(listener);
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "LISTEN_FDS: descriptor %d is not a Unix socket", number);
    }
    return sockets_serve(s, listener, err);
}

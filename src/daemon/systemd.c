#include "daemon/systemd.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/banned.h"
#include "base/str.h"

#define FDS_MAX 16 /* our unit passes one or two sockets */

/* How many descriptors the variables pass to this process. LISTEN_PID names the receiver, because
 * children inherit the environment. */
static int count_fds(unsigned *ret_n, struct agx_error **err)
{
    const char *fds = getenv("LISTEN_FDS"), *owner = getenv("LISTEN_PID");
    uint64_t n, pid;

    *ret_n = 0;
    if (!fds || !owner)
        return 0;
    if (!agx_parse_u64(agx_str_from(owner), INT32_MAX, &pid))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "LISTEN_PID is '%s', which is not a pid",
                             owner);
    if (pid != (uint64_t)getpid())
        return 0;
    if (!agx_parse_u64(agx_str_from(fds), FDS_MAX, &n))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "LISTEN_FDS is '%s', which is not a number up to %d", fds, FDS_MAX);
    *ret_n = (unsigned)n;
    return 0;
}

int agx_systemd_init(struct agx_systemd *s, struct agx_error **err)
{
    const char *notify = getenv("NOTIFY_SOCKET");
    int r;

    *s = (struct agx_systemd){ 0 };
    r = count_fds(&s->n_fds, err);
    if (r < 0)
        return r;
    if (notify && *notify) {
        s->notify_socket = agx_str_dup(agx_str_from(notify));
        if (!s->notify_socket)
            return agx_error_errno(err, ENOMEM, "keep NOTIFY_SOCKET");
    }
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    (void)unsetenv("NOTIFY_SOCKET");
    return 0;
}

void agx_systemd_done(struct agx_systemd *s)
{
    if (!s)
        return;
    free(s->notify_socket);
    *s = (struct agx_systemd){ 0 };
}

int agx_systemd_notify(const struct agx_systemd *s, const char *state, struct agx_error **err)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    const char *path = s->notify_socket;
    _cleanup_close_ int fd = -1;
    socklen_t len;

    if (!path)
        return 0;
    if (strlen(path) >= sizeof(sa.sun_path) || (path[0] != '/' && path[0] != '@'))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "NOTIFY_SOCKET is '%s', which is not a socket address", path);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    if (path[0] == '@') /* an abstract name: a leading NUL stands for the '@' */
        sa.sun_path[0] = '\0';
    len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&sa, len) < 0)
        return agx_error_errno(err, errno, "tell '%s' at '%s'", state, path);
    return 0;
}

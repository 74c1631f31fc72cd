/*
 * listener.c: accepts connections from a listening socket.
 *
 *   OPEN --start--> ACCEPTING --no descriptor left--> PAUSED --timer--> ACCEPTING
 *
 * It can be closed in each state. Loop thread only. Invariants:
 *  (1) a level-triggered poll on a socket whose accept() keeps failing would spin, so every failure
 *      that is not specific to one connection pauses.
 *  (2) the path is removed before the descriptor is closed: while we listen, nothing replaces it,
 *      and its inode number cannot be reused.
 *  (3) memory is released in the last close callback; `closing` records that close was called, also
 *      for the accept loop whose callback called it.
 */
#include "loop/listener.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/log.h"
#include "loop/loop.h"
#include "loop/unixsock.h"
#include "loop/uverr.h"

#include <assert.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/un.h>

#include "base/banned.h"

struct agx_listener {
    struct agx_loop *loop;
    int fd;
    struct agx_addr addr;
    struct agx_unixsock *path; /* the path to remove at close; NULL for TCP and adopted sockets */
    uv_poll_t poll;
    uv_timer_t retry;
    unsigned n_open; /* of the two handles */
    bool closing;
    agx_accept_fn on_accept;
    void *user;
};

static void on_readable(uv_poll_t *poll, int status, int events);

static void resume(uv_timer_t *retry)
{
    struct agx_listener *ln = container_of(retry, struct agx_listener, retry);

    (void)uv_poll_start(&ln->poll, UV_READABLE, on_readable);
}

static void pause_accepting(struct agx_listener *ln, int sys_errno)
{
    AGX_LOG(AGX_LOG_DEBUG, "listener.paused", AGX_F_INT("errno", sys_errno));
    (void)uv_poll_stop(&ln->poll);
    (void)uv_timer_start(&ln->retry, resume, AGX_ACCEPT_RETRY_MS, 0);
}

/* Failures of the connection being accepted; the next one may succeed. */
static bool is_connections_own(int sys_errno)
{
    switch (sys_errno) {
    case EINTR:
    case ECONNABORTED:
    case EPERM: /* a firewall rule */
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
        return true;
    default:
        return false;
    }
}

/* False: no connection is waiting. */
static bool accept_some(struct agx_listener *ln)
{
    for (int i = 0; i < AGX_ACCEPT_BATCH && !ln->closing; i++) {
        struct agx_addr peer = { .len = sizeof(peer.sa) };
        int fd =
            accept4(ln->fd, (struct sockaddr *)&peer.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            ln->on_accept(ln->user, fd, &peer);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return false;
        } else if (!is_connections_own(errno)) {
            pause_accepting(ln, errno);
            return false;
        }
    }
    return !ln->closing;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status; /* accept4() gives a precise result */
    (void)events;
    (void)accept_some(container_of(poll, struct agx_listener, poll));
}

/* Takes the listening socket *take_fd and its path, if any. */
static int listener_new(struct agx_loop *l, int *take_fd, struct agx_unixsock **take_path,
                        struct agx_listener **ret_listener, struct agx_error **err)
{
    struct agx_listener *ln = calloc(1, sizeof(*ln));
    int r;

    agx_loop_assert(l);
    if (!ln)
        return agx_error_errno(err, ENOMEM, "listen");
    ln->loop = l;
    ln->addr.len = sizeof(ln->addr.sa);
    if (getsockname(*take_fd, (struct sockaddr *)&ln->addr.sa, &ln->addr.len) < 0) {
        r = agx_error_errno(err, errno, "read the address of a listening socket");
        free(ln);
        return r;
    }
    r = uv_poll_init(agx_loop_uv(l), &ln->poll, *take_fd);
    if (r < 0) {
        free(ln);
        return agx_uverr_set(err, r, "watch a listening socket");
    }
    (void)uv_timer_init(agx_loop_uv(l), &ln->retry);
    ln->n_open = 2;
    ln->fd = AGX_TAKE_FD(*take_fd);
    if (take_path)
        ln->path = AGX_TAKE_PTR(*take_path);
    *ret_listener = ln;
    return 0;
}

int agx_listener_open_unix(struct agx_loop *l, const char *path, struct agx_listener **ret_listener,
                           struct agx_error **err)
{
    _cleanup_close_ int fd = -1; /* released last: invariant 2 */
    _cleanup_(agx_unixsock_freep) struct agx_unixsock *us = NULL;
    int r = agx_unixsock_listen(path, &fd, &us, err);

    return r < 0 ? r : listener_new(l, &fd, &us, ret_listener, err);
}

static int listen_at(const struct addrinfo *ai, int *ret_fd)
{
    _cleanup_close_ int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 || /* connections inherit */
        bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0)
        return -errno;
    *ret_fd = AGX_TAKE_FD(fd);
    return 0;
}

int agx_listener_open_tcp(struct agx_loop *l, const char *host, uint16_t port,
                          struct agx_listener **ret_listener, struct agx_error **err)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
    _cleanup_close_ int fd = -1;
    struct addrinfo *found = NULL;
    char service[8];
    int r;

    (void)snprintf(service, sizeof(service), "%u", port);
    r = getaddrinfo(host, service, &hints, &found);
    if (r != 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "listen at '%s:%u': %s", host, port,
                             r == EAI_SYSTEM ? "cannot resolve the host" : gai_strerror(r));
    for (const struct addrinfo *ai = found; ai && fd < 0; ai = ai->ai_next)
        r = listen_at(ai, &fd);
    freeaddrinfo(found);
    if (fd < 0)
        return agx_error_errno(err, -r, "listen at '%s:%u'", host, port);
    return listener_new(l, &fd, NULL, ret_listener, err);
}

static bool is_listening_stream(int fd)
{
    int type = 0, listening = 0;
    socklen_t type_len = sizeof(type), listening_len = sizeof(listening);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_len) == 0 && listening;
}

int agx_listener_open_fd(struct agx_loop *l, int *take_fd, struct agx_listener **ret_listener,
                         struct agx_error **err)
{
    const int on = 1;
    int r;

    if (!is_listening_stream(*take_fd))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "descriptor %d is not a listening stream socket", *take_fd);
    r = agx_fd_set_nonblock(*take_fd, true, err);
    if (r < 0)
        return r;
    if (fcntl(*take_fd, F_SETFD, FD_CLOEXEC) < 0)
        return agx_error_errno(err, errno, "take over the listening descriptor %d", *take_fd);
    (void)setsockopt(*take_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* no-op for Unix */
    return listener_new(l, take_fd, NULL, ret_listener, err);
}

int agx_listener_start(struct agx_listener *ln, agx_accept_fn on_accept, void *user,
                       struct agx_error **err)
{
    int r;

    agx_loop_assert(ln->loop);
    assert(!ln->on_accept && !ln->closing);
    ln->on_accept = on_accept;
    ln->user = user;
    r = uv_poll_start(&ln->poll, UV_READABLE, on_readable);
    return r < 0 ? agx_uverr_set(err, r, "watch a listening socket") : 0;
}

const struct agx_addr *agx_listener_peek_addr(const struct agx_listener *ln)
{
    return &ln->addr;
}

static void handle_closed(struct agx_listener *ln)
{
    if (--ln->n_open == 0)
        free(ln);
}

static void on_poll_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_listener, poll));
}

static void on_retry_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_listener, retry));
}

void agx_listener_take_waiting(struct agx_listener *ln)
{
    agx_loop_assert(ln->loop);
    if (!ln->path) /* a passed socket: its next owner accepts them */
        return;
    agx_unixsock_freep(&ln->path);
    while (accept_some(ln))
        ;
}

struct agx_listener *agx_listener_close(struct agx_listener *ln)
{
    if (!ln)
        return NULL;
    agx_loop_assert(ln->loop);
    assert(!ln->closing);
    ln->closing = true;
    uv_close((uv_handle_t *)&ln->poll, on_poll_closed);
    uv_close((uv_handle_t *)&ln->retry, on_retry_closed);
    agx_unixsock_freep(&ln->path); /* invariant 2 */
    agx_closep(&ln->fd);
    return NULL;
}

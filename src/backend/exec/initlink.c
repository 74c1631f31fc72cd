/*
 * initlink.c: the daemon's end of init's control channel.
 *
 *     TAKING --descriptor--> GREETING --WELCOME--> READY
 *       ^  |                    |                    |
 *       |  +--- deadline: lost -+                    |
 *       +-------- broken, while init lives ----------+        init has ended: lost
 *
 * Invariants:
 *  (1) each socket has its own poll handle, which lives until its close callback: the handle of a
 *      broken connection may still exist when the next connection begins;
 *  (2) the send queue belongs to the current socket and is dropped with it;
 *  (3) after lost() or in CLOSED the only callback to the user is closed();
 *  (4) there is a link for each sandbox, so it has no receive buffer: packets are read to the
 *      stack.
 */
#include "backend/exec/initlink.h"

#include "base/fd.h"
#include "base/fdpass.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "loop/uverr.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/banned.h"

enum link_state { LINK_TAKING, LINK_GREETING, LINK_READY, LINK_LOST, LINK_CLOSED };

/* A queued packet. */
struct packet {
    struct agx_list_node node;
    int fds[AGX_INIT_FDS_MAX + 1];
    size_t n_fds;
    size_t len;
    uint8_t bytes[];
};

struct sock {
    struct pidlink *link; /* NULL: broken */
    uv_poll_t poll;
    int fd;
    int events;
};

struct pidlink {
    struct agx_initlink base;
    struct agx_initlink_config config;
    const struct agx_initlink_ops *ops;
    void *user;
    struct agx_loop *loop;
    enum link_state state;
    uint64_t nonce;
    uint64_t deadline_ms;
    struct sock *sock;
    struct agx_list packets; /* that wait */
    size_t queued;
    unsigned n_open; /* handles, including those of sockets */
    uv_poll_t exit_poll;
    uv_timer_t timer;
    agx_done_fn closed;
    void *closed_user;
};

static void on_timer(uv_timer_t *t);
static void on_sock(uv_poll_t *poll, int status, int events);

static void initlink_released(struct pidlink *k)
{
    if (--k->n_open > 0)
        return;
    agx_closep(&k->config.pidfd);
    if (k->closed)
        k->closed(k->closed_user, NULL);
    free(k);
}

static void packet_free(struct packet *q)
{
    for (size_t i = 0; i < q->n_fds; i++)
        agx_closep(&q->fds[i]);
    free(q);
}

static void on_sock_closed(uv_handle_t *h)
{
    struct sock *s = container_of((uv_poll_t *)h, struct sock, poll);
    struct pidlink *k = h->data;

    agx_closep(&s->fd);
    free(s);
    initlink_released(k);
}

static void drop_sock(struct pidlink *k)
{
    struct packet *q;

    while ((q = AGX_LIST_TAKE(&k->packets, struct packet, node)))
        packet_free(q);
    k->queued = 0;
    if (!k->sock)
        return;
    k->sock->link = NULL;
    uv_close((uv_handle_t *)&k->sock->poll, on_sock_closed);
    k->sock = NULL;
}

static void initlink_lose(struct pidlink *k, struct agx_error *error)
{
    drop_sock(k);
    k->state = LINK_LOST;
    (void)uv_poll_stop(&k->exit_poll);
    (void)uv_timer_stop(&k->timer);
    k->ops->lost(k->user, error);
}

static void lose_code(struct pidlink *k, enum agx_code code, const char *why)
{
    struct agx_error *e = NULL;

    (void)agx_error_set(&e, code, "agentix-init: %s", why);
    initlink_lose(k, e);
}

static void try_later(struct pidlink *k)
{
    drop_sock(k);
    k->state = LINK_TAKING;
    (void)uv_timer_start(&k->timer, on_timer, k->config.retry_ms, 0);
}

/* Init may not have got that far, or another program may still be in its place. */
static bool is_channel(int fd)
{
    int domain = 0, type = 0;
    socklen_t n = sizeof(int);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET;
}

static void poll_for(struct sock *s, int events)
{
    if (events != s->events && uv_poll_start(&s->poll, events, on_sock) == 0)
        s->events = events;
}

/* Takes *fd. */
static bool use_sock(struct pidlink *k, int *fd)
{
    struct sock *s = agx_new(struct sock);

    if (uv_poll_init(agx_loop_uv(k->loop), &s->poll, *fd) < 0) {
        free(s);
        return false;
    }
    s->fd = AGX_TAKE_FD(*fd);
    s->link = k;
    s->poll.data = k;
    k->n_open++;
    k->sock = s;
    poll_for(s, UV_READABLE);
    return true;
}

static void greet(struct pidlink *k)
{
    struct agx_init_msg hello = { .kind = AGX_INIT_HELLO, .nonce = k->nonce };
    uint8_t packet[16];
    size_t n = agx_init_encode(&hello, packet, sizeof(packet));

    k->state = LINK_GREETING;
    if (send(k->sock->fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        try_later(k);
        return;
    }
    /* Without an answer, this was not init's channel after all. */
    (void)uv_timer_start(&k->timer, on_timer, k->config.connect_ms, 0);
}

static void initlink_take(struct pidlink *k)
{
    _cleanup_close_ int fd = (int)syscall(SYS_pidfd_getfd, k->config.pidfd, AGX_INIT_CONTROL_FD, 0);

    if (fd < 0 && (errno == EPERM || errno == ENOSYS)) {
        struct agx_error *e = NULL;

        (void)agx_error_errno(&e, errno, "take the control channel of agentix-init");
        initlink_lose(k, e);
    } else if (!k->config.patient && uv_now(agx_loop_uv(k->loop)) >= k->deadline_ms) {
        lose_code(k, AGX_DEADLINE_EXCEEDED, "no answer on its control channel");
    } else if (fd < 0 || !is_channel(fd) || agx_fd_set_nonblock(fd, true, NULL) < 0 ||
               !use_sock(k, &fd)) {
        try_later(k);
    } else {
        greet(k);
    }
}

static void initlink_begin(struct pidlink *k)
{
    k->deadline_ms = uv_now(agx_loop_uv(k->loop)) + k->config.connect_ms;
    k->state = LINK_TAKING;
    (void)uv_timer_start(&k->timer, on_timer, 0, 0);
}

static void on_timer(uv_timer_t *t)
{
    struct pidlink *k = container_of(t, struct pidlink, timer);

    drop_sock(k);
    initlink_take(k);
}

/* 0: sent, 1: would block, -1: broken. */
static int transmit(const struct sock *s, struct packet *q)
{
    if (agx_fdpass_send(s->fd, q->bytes, q->len, q->fds, q->n_fds, MSG_DONTWAIT) >= 0)
        return 0;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 1 : -1;
}

/* Sends the queue. A send that fails breaks the connection; the poll sees its end. */
static void initlink_flush(struct pidlink *k)
{
    struct packet *q;

    while ((q = AGX_LIST_FIRST(&k->packets, struct packet, node))) {
        if (transmit(k->sock, q) == 1)
            break;
        agx_list_remove(&q->node);
        k->queued -= q->len;
        packet_free(q);
    }
    poll_for(k->sock, agx_list_is_empty(&k->packets) ? UV_READABLE : UV_READABLE | UV_WRITABLE);
}

/* When init ended without reading all of ours, the kernel reports that error first, once: what init
 * sent before comes behind it. */
static ssize_t initlink_receive(const struct sock *s, uint8_t in[AGX_INIT_INLINE_MAX])
{
    ssize_t n = recv(s->fd, in, AGX_INIT_INLINE_MAX, MSG_DONTWAIT);

    if (n < 0 && errno == ECONNRESET)
        n = recv(s->fd, in, AGX_INIT_INLINE_MAX, MSG_DONTWAIT);
    return n;
}

static void on_packet(struct pidlink *k, struct agx_str packet)
{
    struct agx_init_msg m;

    if (agx_init_decode(packet, &m, NULL) < 0)
        return; /* from a newer init: ignored */
    if (k->state == LINK_READY && m.kind != AGX_INIT_WELCOME) {
        k->ops->message(k->user, &m);
    } else if (k->state == LINK_GREETING && m.kind == AGX_INIT_WELCOME && m.nonce == k->nonce) {
        (void)uv_timer_stop(&k->timer);
        k->state = LINK_READY;
        k->ops->ready(k->user);
    }
}

/* Init has ended: its last messages are still to be read. */
static void on_exit_poll(uv_poll_t *poll, int status, int events)
{
    struct pidlink *k = container_of(poll, struct pidlink, exit_poll);
    uint8_t in[AGX_INIT_INLINE_MAX];
    ssize_t n = 1;

    (void)status;
    (void)events;
    while (n > 0 && k->sock && k->state == LINK_READY) {
        n = initlink_receive(k->sock, in);
        if (n > 0)
            on_packet(k, agx_str_bytes(in, (size_t)n));
    }
    if (k->state != LINK_CLOSED)
        lose_code(k, AGX_UNAVAILABLE, "it has ended");
}

static void on_sock(uv_poll_t *poll, int status, int events)
{
    struct sock *s = container_of(poll, struct sock, poll);
    struct pidlink *k = s->link;
    uint8_t in[AGX_INIT_INLINE_MAX];

    /* A callback may close or break the link. The poll reports only the error of a broken socket,
     * so everything in it is read. */
    for (unsigned i = 0; (i < AGX_INITLINK_TURN || status < 0) && k && k->sock == s; i++) {
        ssize_t n = initlink_receive(s, in);

        if (n < 0 && (errno == EAGAIN || errno == EINTR) && status == 0)
            break;
        if (n <= 0) {
            drop_sock(k);
            initlink_begin(k); /* while init lives: the pidfd reports its end */
            return;
        }
        on_packet(k, agx_str_bytes(in, (size_t)n));
    }
    if ((events & UV_WRITABLE) && s->link)
        initlink_flush(s->link);
}

/* A packet that is too large for the socket is sent as an unnamed file. */
static int put_aside(const struct packet *q, struct agx_error **err)
{
    _cleanup_close_ int fd = memfd_create("agentix-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "memory for a packet of %zu bytes", q->len);
    r = agx_fd_write_all(fd, agx_str_bytes(q->bytes, q->len), err);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return agx_error_errno(err, errno, "seal a packet");
    return AGX_TAKE_FD(fd);
}

static struct packet *packet_new(const struct agx_init_msg *m)
{
    size_t n = agx_init_encode(m, NULL, 0);
    struct packet *q = n <= AGX_INIT_PACKET_MAX ? malloc(sizeof(*q) + n) : NULL;

    if (!q)
        return NULL;
    *q = (struct packet){ .len = agx_init_encode(m, q->bytes, n) };
    return q;
}

/* Duplicates the descriptors; first the packet's own, if it is large. */
static int add_fds(struct packet *q, struct agx_str id, const int *fds, size_t n_fds,
                   struct agx_error **err)
{
    const struct agx_init_msg large = { .kind = AGX_INIT_LARGE, .id = id };

    if (q->len > AGX_INIT_INLINE_MAX) {
        int fd = put_aside(q, err);

        if (fd < 0)
            return fd;
        q->fds[q->n_fds++] = fd;
        q->len = agx_init_encode(&large, q->bytes, q->len);
    }
    for (size_t i = 0; i < n_fds; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);

        if (fd < 0)
            return agx_error_errno(err, errno, "duplicate a descriptor for agentix-init");
        q->fds[q->n_fds++] = fd;
    }
    return 0;
}

static struct pidlink *pidlink_of(const struct agx_initlink *base)
{
    return container_of(base, struct pidlink, base);
}

static int pidlink_send(struct agx_initlink *base, const struct agx_init_msg *m, const int *fds,
                        size_t n_fds, struct agx_error **err)
{
    struct pidlink *k = pidlink_of(base);
    struct packet *q;
    int r;

    if (k->state != LINK_READY)
        return agx_error_set(err, AGX_UNAVAILABLE, "agentix-init is not connected");
    q = packet_new(m);
    if (!q)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "a message for agentix-init is larger than %zu bytes",
                             AGX_INIT_PACKET_MAX);
    r = add_fds(q, m->id, fds, n_fds, err);
    if (r == 0 && q->len > k->config.queue_max - k->queued)
        r = agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                          "%zu bytes wait for agentix-init, the limit is %zu", k->queued,
                          k->config.queue_max);
    if (r < 0) {
        packet_free(q);
        return r;
    }
    agx_list_push_back(&k->packets, &q->node);
    k->queued += q->len;
    if (agx_list_first(&k->packets) == &q->node)
        initlink_flush(k);
    return 0;
}

static bool pidlink_is_ready(const struct agx_initlink *base)
{
    return pidlink_of(base)->state == LINK_READY;
}

static void on_poll_closed(uv_handle_t *h)
{
    initlink_released(container_of((uv_poll_t *)h, struct pidlink, exit_poll));
}

static void on_timer_closed(uv_handle_t *h)
{
    initlink_released(container_of((uv_timer_t *)h, struct pidlink, timer));
}

static void pidlink_close(struct agx_initlink *base, agx_done_fn closed, void *user)
{
    struct pidlink *k = pidlink_of(base);

    if (k->state == LINK_CLOSED)
        return;
    drop_sock(k);
    k->state = LINK_CLOSED;
    k->closed = closed;
    k->closed_user = user;
    uv_close((uv_handle_t *)&k->exit_poll, on_poll_closed);
    uv_close((uv_handle_t *)&k->timer, on_timer_closed);
}

static const struct agx_initlink_kind pidlink_kind = {
    .name = "pidfd",
    .carries_logs = true,
    .send = pidlink_send,
    .is_ready = pidlink_is_ready,
    .close = pidlink_close,
};

int agx_initlink_open(struct agx_loop *loop, const struct agx_initlink_config *config,
                      const struct agx_initlink_ops *ops, void *user,
                      struct agx_initlink **ret_link, struct agx_error **err)
{
    _cleanup_close_ int pidfd = fcntl(config->pidfd, F_DUPFD_CLOEXEC, 0);
    struct pidlink *k;
    uint64_t nonce;
    int r;

    if (pidfd < 0)
        return agx_error_errno(err, errno, "open the process of agentix-init");
    r = agx_random_bytes(&nonce, sizeof(nonce), err);
    if (r < 0)
        return r;
    k = agx_new(struct pidlink);
    k->base.kind = &pidlink_kind;
    k->config = *config;
    k->config.pidfd = -1;
    k->ops = ops;
    k->user = user;
    k->loop = loop;
    k->nonce = nonce;
    r = uv_poll_init(agx_loop_uv(loop), &k->exit_poll, pidfd);
    if (r < 0) {
        free(k);
        return agx_uverr_set(err, r, "wait for the end of agentix-init");
    }
    k->config.pidfd = AGX_TAKE_FD(pidfd);
    (void)uv_timer_init(agx_loop_uv(loop), &k->timer);
    k->n_open = 2;
    (void)uv_poll_start(&k->exit_poll, UV_READABLE, on_exit_poll);
    initlink_begin(k);
    *ret_link = &k->base;
    return 0;
}

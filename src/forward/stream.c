/*
 * stream.c: connections, from a client to its target.
 *
 *   CONNECTING --> both lanes open --> one at its end --> both at their end: closed
 *        |               |                   |
 *        +---------------+-------------------+--> reset: the other side too
 *
 * A lane is one direction. Its bytes stay in the receiving socket until the other socket has taken
 * them: they are peeked at and sent, and only as many as were sent are consumed. The end of a lane
 * is passed on, and the other lane continues: half-closed connections work.
 */
#include "forward/forward.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/banned.h"

enum lane { LANE_READS, LANE_WRITES, LANE_ENDED }; /* what it waits for */

struct side {
    struct watch watch;
    struct stream *stream;
};

struct stream {
    struct side sides[2]; /* the client's; the target's */
    enum lane lanes[2];   /* from the side of that index to the other */
    bool connecting, ended;
    struct stream *next;
};

static void set_listening(struct forward *f, bool on)
{
    f->full = !on;
    for (struct route *r = f->routes; r; r = r->next) {
        if (!r->datagrams)
            agx_watch_set(f, &r->watch, on ? EPOLLIN : 0);
    }
}

static void stream_end(struct forward *f, struct stream *s)
{
    agx_watch_end(f, &s->sides[0].watch);
    agx_watch_end(f, &s->sides[1].watch);
    s->ended = true;
    s->next = f->dead;
    f->dead = s;
    f->n_streams--;
    if (f->full)
        set_listening(f, true);
}

/* Both sides see an error. */
static void reset(struct forward *f, struct stream *s)
{
    const struct linger at_once = { .l_onoff = 1 };

    for (int i = 0; i < 2; i++)
        (void)setsockopt(s->sides[i].watch.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    stream_end(f, s);
}

void agx_stream_bury(struct forward *f)
{
    while (f->dead) {
        struct stream *s = f->dead;

        f->dead = s->next;
        free(s);
    }
}

/* Moves one piece of a lane. 1: there may be more; 0: it must wait, or has ended; -1: reset. */
static int stream_move(struct forward *f, struct stream *s, int from)
{
    int source = s->sides[from].watch.fd, sink = s->sides[1 - from].watch.fd;
    ssize_t n = recv(source, f->piece, sizeof(f->piece), MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    if (n < 0) {
        s->lanes[from] = LANE_READS;
        return errno == EINTR;
    }
    if (n == 0) {
        s->lanes[from] = LANE_ENDED;
        (void)shutdown(sink, SHUT_WR);
        return 0;
    }
    n = send(sink, f->piece, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    if (n < 0) {
        s->lanes[from] = LANE_WRITES;
        return errno == EINTR;
    }
    return recv(source, NULL, (size_t)n, MSG_TRUNC | MSG_DONTWAIT) == n ? 1 : -1;
}

static int move_some(struct forward *f, struct stream *s, int from)
{
    int r = 1;

    s->lanes[from] = s->lanes[from] == LANE_ENDED ? LANE_ENDED : LANE_READS;
    for (int i = 0; r == 1 && i < FORWARD_TURN && s->lanes[from] != LANE_ENDED; i++)
        r = stream_move(f, s, from);
    return r;
}

static uint32_t wanted(const struct stream *s, int side)
{
    uint32_t events = 0;

    if (s->lanes[side] == LANE_READS)
        events |= EPOLLIN;
    if (s->lanes[1 - side] == LANE_WRITES)
        events |= EPOLLOUT;
    return events;
}

static void go_on(struct forward *f, struct stream *s)
{
    if (move_some(f, s, 0) < 0 || move_some(f, s, 1) < 0) {
        reset(f, s);
        return;
    }
    if (s->lanes[0] == LANE_ENDED && s->lanes[1] == LANE_ENDED) {
        stream_end(f, s);
        return;
    }
    for (int i = 0; i < 2; i++)
        agx_watch_set(f, &s->sides[i].watch, wanted(s, i));
}

static void on_ready(struct forward *f, struct watch *w, uint32_t events)
{
    struct stream *s = container_of(w, struct side, watch)->stream;
    int fault = 0;
    socklen_t len = sizeof(fault);

    (void)events;
    if (s->connecting) {
        if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0 || fault != 0) {
            reset(f, s);
            return;
        }
        s->connecting = false;
    }
    go_on(f, s);
}

/* Sends without delay: both ends decide themselves what to send together. Keepalive detects a peer
 * that is gone. */
static void tune(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

/* Fails at once, or takes a while. Nothing is read from the client until it is connected. */
static void go_to(struct forward *f, struct stream *s, const struct address *to)
{
    int fd = s->sides[1].watch.fd;

    tune(s->sides[0].watch.fd);
    tune(fd);
    if (connect(fd, (const struct sockaddr *)&to->any, to->len) < 0 && errno != EINPROGRESS) {
        reset(f, s);
        return;
    }
    s->connecting = true;
    agx_watch_set(f, &s->sides[1].watch, EPOLLOUT);
}

static void stream_begin(struct forward *f, int fd, const struct address *to)
{
    struct stream *s = calloc(1, sizeof(*s));
    int other = s ? socket(to->any.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

    if (other < 0) {
        free(s);
        (void)close(fd);
        return;
    }
    for (int i = 0; i < 2; i++)
        s->sides[i] = (struct side){ { .fd = i == 0 ? fd : other, .ready = on_ready }, s };
    f->n_streams++;
    go_to(f, s, to);
}

void agx_stream_accept(struct forward *f, struct watch *w, uint32_t events)
{
    const struct route *r = container_of(w, struct route, watch);

    (void)events;
    for (int i = 0; i < FORWARD_ACCEPTS; i++) {
        int fd;

        if (f->n_streams >= f->max_streams) {
            set_listening(f, false); /* other clients wait in the kernel's queue */
            return;
        }
        fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        stream_begin(f, fd, &r->to);
    }
}

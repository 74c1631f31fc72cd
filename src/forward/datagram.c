/*
 * datagram.c: datagrams. Each sender gets a flow: a socket towards the other side, whose answers
 * are returned to the sender. A flow ends after some idle time; when there are too many, the
 * quietest ends.
 */
#include "forward/forward.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/banned.h"

struct flow {
    struct watch watch;
    struct route *route;
    struct address peer;
    uint64_t used_ms;
    struct flow *older, *newer; /* in order of their last datagram */
    struct flow *next;          /* in its bucket, or in the list of the dead */
};

/* Few peers can send to us at all, so any hash will do. */
static struct flow **bucket_of(struct forward *f, const struct route *r, const struct address *peer)
{
    const unsigned char *bytes = (const unsigned char *)&peer->any;
    uint32_t hash = (uint32_t)(uintptr_t)r;

    for (socklen_t i = 0; i < peer->len; i++)
        hash = hash * 31 + bytes[i];
    return &f->buckets[hash % FORWARD_FLOWS_MAX];
}

static struct flow *datagram_find(struct forward *f, const struct route *r,
                                  const struct address *peer)
{
    struct flow *each = *bucket_of(f, r, peer);

    while (each && (each->route != r || each->peer.len != peer->len ||
                    memcmp(&each->peer.any, &peer->any, peer->len) != 0))
        each = each->next;
    return each;
}

static void take_out(struct forward *f, struct flow *flow)
{
    if (flow->older)
        flow->older->newer = flow->newer;
    else
        f->oldest = flow->newer;
    if (flow->newer)
        flow->newer->older = flow->older;
    else
        f->newest = flow->older;
}

static void put_last(struct forward *f, struct flow *flow)
{
    flow->used_ms = f->now_ms;
    flow->newer = NULL;
    flow->older = f->newest;
    if (f->newest)
        f->newest->newer = flow;
    else
        f->oldest = flow;
    f->newest = flow;
}

static void touch(struct forward *f, struct flow *flow)
{
    take_out(f, flow);
    put_last(f, flow);
}

static void datagram_end(struct forward *f, struct flow *flow)
{
    struct flow **at = bucket_of(f, flow->route, &flow->peer);

    while (*at != flow)
        at = &(*at)->next;
    *at = flow->next;
    take_out(f, flow);
    agx_watch_end(f, &flow->watch);
    flow->next = f->dead_flows;
    f->dead_flows = flow;
    f->n_flows--;
}

void agx_datagram_bury(struct forward *f)
{
    while (f->dead_flows) {
        struct flow *flow = f->dead_flows;

        f->dead_flows = flow->next;
        free(flow);
    }
}

int agx_datagram_expire(struct forward *f)
{
    while (f->oldest && f->now_ms - f->oldest->used_ms >= FORWARD_FLOW_MS)
        datagram_end(f, f->oldest);
    agx_datagram_bury(f);
    if (!f->oldest)
        return -1;
    return (int)(FORWARD_FLOW_MS - (f->now_ms - f->oldest->used_ms));
}

/* An answer. That the port is closed is not reported to the sender: datagrams get lost. */
static void on_answer(struct forward *f, struct watch *w, uint32_t events)
{
    struct flow *flow = container_of(w, struct flow, watch);

    (void)events;
    for (int i = 0; i < FORWARD_TURN; i++) {
        ssize_t n = recv(w->fd, f->piece, sizeof(f->piece), MSG_DONTWAIT);

        if (n < 0)
            return;
        (void)sendto(flow->route->watch.fd, f->piece, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL,
                     (const struct sockaddr *)&flow->peer.any, flow->peer.len);
        touch(f, flow);
    }
}

/* NULL: none can be made now, and the datagram is lost. */
static struct flow *datagram_begin(struct forward *f, struct route *r, const struct address *peer)
{
    struct flow *flow, **at;
    int fd;

    if (f->n_flows == FORWARD_FLOWS_MAX)
        datagram_end(f, f->oldest);
    fd = socket(r->to.any.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    flow = fd >= 0 ? calloc(1, sizeof(*flow)) : NULL;
    if (!flow || connect(fd, (const struct sockaddr *)&r->to.any, r->to.len) < 0) {
        agx_closep(&fd);
        free(flow);
        return NULL;
    }
    flow->watch = (struct watch){ .fd = fd, .ready = on_answer };
    flow->route = r;
    flow->peer = *peer;
    at = bucket_of(f, r, peer);
    flow->next = *at;
    *at = flow;
    put_last(f, flow);
    f->n_flows++;
    agx_watch_set(f, &flow->watch, EPOLLIN);
    return flow;
}

void agx_datagram_arrived(struct forward *f, struct watch *w, uint32_t events)
{
    struct route *r = container_of(w, struct route, watch);

    (void)events;
    for (int i = 0; i < FORWARD_TURN; i++) {
        struct address peer = { .len = sizeof(peer.any) };
        ssize_t n = recvfrom(w->fd, f->piece, sizeof(f->piece), MSG_DONTWAIT,
                             (struct sockaddr *)&peer.any, &peer.len);
        struct flow *flow;

        if (n < 0)
            return;
        flow = datagram_find(f, r, &peer);
        if (!flow)
            flow = datagram_begin(f, r, &peer);
        else
            touch(f, flow);
        if (flow)
            (void)send(flow->watch.fd, f->piece, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

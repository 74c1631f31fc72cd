/*
 * forward.h: what the files of agentix-forward share: one loop over descriptors.
 *
 *   main.c       options, namespaces, rights
 *   poller.c     descriptors, and who is told of them
 *   stream.c     connections
 *   datagram.c   datagrams
 *
 * Bytes are the kernel's: nothing of a connection is ever held here, so that many that are slow
 * cost no more than their descriptors. One thread.
 */
#ifndef AGX_FORWARD_FORWARD_H
#define AGX_FORWARD_FORWARD_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    FORWARD_STREAMS_MAX = 8192, /* connections of one sandbox; two descriptors each */
    FORWARD_FLOWS_MAX = 1024,   /* peers that send datagrams; past it the quietest one goes */
    FORWARD_FLOW_MS = 60000,    /* silence that ends one: most answers to a datagram come at once */
    FORWARD_PIECE = 64 << 10,   /* moved at a time; no datagram is larger */
    FORWARD_TURN = 16,          /* pieces, then others get their turn */
    FORWARD_ACCEPTS = 64,
};

struct forward;
struct stream;
struct flow;

struct watch {
    int fd;
    uint32_t events; /* of epoll; 0: it is not told of, not even of its end */
    void (*ready)(struct forward *f, struct watch *w, uint32_t events);
};

struct address {
    struct sockaddr_storage any;
    socklen_t len;
};

/* A socket that is bound, and where what arrives there goes. */
struct route {
    struct watch watch;
    bool datagrams;
    struct address to;
    struct route *next;
};

struct forward {
    int epoll_fd;
    struct route *routes;
    struct watch sandbox; /* its PID 1: with it we end */

    size_t n_streams, max_streams;
    bool full;           /* nobody is accepted until one ends */
    struct stream *dead; /* freed when the turn is over */

    size_t n_flows;
    struct flow *oldest, *newest; /* by the last datagram */
    struct flow *buckets[FORWARD_FLOWS_MAX];
    struct flow *dead_flows;
    uint64_t now_ms;

    char piece[FORWARD_PIECE];
};

/* poller.c. A failure of epoll is want of memory: it ends the process. */
void agx_watch_set(struct forward *f, struct watch *w, uint32_t events);
/* Closes the descriptor. */
void agx_watch_end(struct forward *f, struct watch *w);
_Noreturn void agx_forward_run(struct forward *f);

/* stream.c: for the watch of a route, and for a connection's. */
void agx_stream_accept(struct forward *f, struct watch *w, uint32_t events);
void agx_stream_bury(struct forward *f);

/* datagram.c */
void agx_datagram_arrived(struct forward *f, struct watch *w, uint32_t events);
void agx_datagram_bury(struct forward *f);
/* Ends those that were silent for long; milliseconds until the next may be, or -1. */
int agx_datagram_expire(struct forward *f);

#endif

/*
 * forward.h: what the files of agentix-forward share: one loop over descriptors.
 *
 *   main.c       options, namespaces, rights
 *   poller.c     descriptors, and their callbacks
 *   stream.c     connections
 *   datagram.c   datagrams
 *
 * Bytes stay in the kernel: a connection has no buffer here, so many slow ones cost no more than
 * their descriptors. One thread.
 */
#ifndef AGX_FORWARD_FORWARD_H
#define AGX_FORWARD_FORWARD_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    FORWARD_STREAMS_MAX = 8192, /* connections of one sandbox; two descriptors each */
    FORWARD_FLOWS_MAX = 1024,   /* peers that send datagrams; beyond it the quietest is dropped */
    FORWARD_FLOW_MS = 60000,    /* idle time of a flow: most answers to a datagram come at once */
    FORWARD_PIECE = 64 << 10,   /* bytes moved at a time; no datagram is larger */
    FORWARD_TURN = 16,          /* pieces, then other work gets its turn */
    FORWARD_ACCEPTS = 64,
};

struct forward;
struct stream;
struct flow;

struct watch {
    int fd;
    uint32_t events; /* of epoll; 0: no events, not even its end */
    void (*ready)(struct forward *f, struct watch *w, uint32_t events);
};

struct address {
    struct sockaddr_storage any;
    socklen_t len;
};

/* A bound socket, and where its traffic goes. */
struct route {
    struct watch watch;
    bool datagrams;
    struct address to;
    struct route *next;
};

struct forward {
    int epoll_fd;
    struct route *routes;
    struct watch sandbox; /* its PID 1: we end with it */

    size_t n_streams, max_streams;
    bool full;           /* no more connections are accepted until one ends */
    struct stream *dead; /* freed after the turn */

    size_t n_flows;
    struct flow *oldest, *newest; /* in order of their last datagram */
    struct flow *buckets[FORWARD_FLOWS_MAX];
    struct flow *dead_flows;
    uint64_t now_ms;

    char piece[FORWARD_PIECE];
};

/* poller.c. epoll fails only for lack of memory: that ends the process. */
void agx_watch_set(struct forward *f, struct watch *w, uint32_t events);
/* Closes the descriptor. */
void agx_watch_end(struct forward *f, struct watch *w);
_Noreturn void agx_forward_run(struct forward *f);

/* stream.c: callbacks for a route's watch, and for a connection's. */
void agx_stream_accept(struct forward *f, struct watch *w, uint32_t events);
void agx_stream_bury(struct forward *f);

/* datagram.c */
void agx_datagram_arrived(struct forward *f, struct watch *w, uint32_t events);
void agx_datagram_bury(struct forward *f);
/* Ends idle flows; returns milliseconds until the next one is due, or -1. */
int agx_datagram_expire(struct forward *f);

#endif

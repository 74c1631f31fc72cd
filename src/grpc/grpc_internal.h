/*
 * grpc_internal.h: shared by the files of the gRPC server.
 *
 *     host   the server's shared state: limits, methods, deadlines, the time
 *     link   one connection's HTTP/2: bytes in, bytes out; no socket, no clock
 *     call   one stream of a link
 *
 * server.c is a host with sockets and a loop; the fuzz target is a host without them.
 */
#ifndef AGX_GRPC_GRPC_INTERNAL_H
#define AGX_GRPC_GRPC_INTERNAL_H

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "codec/grpc_frame.h"
#include "grpc/headers.h"
#include "grpc/ratelimit.h"
#include "grpc/server.h"

#include <nghttp2/nghttp2.h>

struct agx_grpc_link;

struct agx_grpc_entry {
    const struct agx_grpc_method *method;
    void *service;
};

struct agx_grpc_shared {
    struct agx_grpc_config config;
    struct agx_map methods; /* path -> struct agx_grpc_entry, owned */
    struct agx_heap deadlines;
    uint64_t now_ms;
    struct agx_grpc_stats stats;
    /* The link has something to send, or `later` is set; not while it is `busy`. */
    void (*wake)(struct agx_grpc_link *link);
};

int agx_grpc_shared_init(struct agx_grpc_shared *h, const struct agx_grpc_config *config,
                         struct agx_error **err) AGX_MUST_CHECK;
void agx_grpc_shared_done(struct agx_grpc_shared *h);
int agx_grpc_shared_add(struct agx_grpc_shared *h, const struct agx_grpc_method *method,
                        void *service, struct agx_error **err) AGX_MUST_CHECK;
/* Asks the owner whether the peer may use the server. */
bool agx_grpc_shared_admits(const struct agx_grpc_shared *h, const struct agx_grpc_peer *peer);
/* Ends the calls whose deadline has passed. */
void agx_grpc_shared_expire(struct agx_grpc_shared *h);

struct agx_grpc_link {
    struct agx_grpc_shared *host;
    nghttp2_session *session;
    nghttp2_mem mem;
    size_t bytes, h2_bytes; /* memory of the calls; memory of nghttp2 */
    struct agx_grpc_peer peer;
    bool admitted;
    bool greeted;  /* the client's first SETTINGS have arrived */
    bool busy;     /* inside nghttp2 or a callback: nothing is sent now */
    bool later;    /* some call has input to deliver, see agx_grpc_link_deliver() */
    bool draining; /* accepts no more calls */
    bool failed;   /* HTTP/2 cannot go on */
    struct agx_grpc_ratelimit resets, controls;
    struct agx_list calls; /* of struct agx_grpc_call: all streams that are open */
    size_t n_calls, n_waiting;
    void *io; /* the host's */
};

int agx_grpc_link_new(struct agx_grpc_shared *h, const struct agx_grpc_peer *peer, bool admitted,
                      void *io, struct agx_grpc_link **ret_link,
                      struct agx_error **err) AGX_MUST_CHECK;
/* Running calls end with AGX_CANCELLED. Returns NULL and accepts it. */
struct agx_grpc_link *agx_grpc_link_free(struct agx_grpc_link *l);

void agx_grpc_link_recv(struct agx_grpc_link *l, struct agx_str bytes);
/* Appends output until `room` bytes are reached. True: there may be more. */
bool agx_grpc_link_send(struct agx_grpc_link *l, struct agx_buf *out, size_t room);
/* After agx_grpc_link_send(): notifies waiting producers that may continue. True: there were some,
 * and there may be more to send. */
bool agx_grpc_link_writable(struct agx_grpc_link *l);
/* Delivers the input of resumed calls. */
void agx_grpc_link_deliver(struct agx_grpc_link *l);
/* True when the connection can be closed once the output of agx_grpc_link_send() is sent. */
bool agx_grpc_link_is_over(const struct agx_grpc_link *l);

void agx_grpc_link_ping(struct agx_grpc_link *l);
/* Asks the client to open no more streams; its answer, or drain(), makes that final. */
void agx_grpc_link_shutdown(struct agx_grpc_link *l);
void agx_grpc_link_drain(struct agx_grpc_link *l);
/* Ends all calls, or the endless ones only, with UNAVAILABLE. */
void agx_grpc_link_end_calls(struct agx_grpc_link *l, bool endless_only);

struct agx_grpc_call {
    struct agx_grpc_link *link;
    struct agx_list_node node; /* in link->calls */
    int32_t stream;
    const struct agx_grpc_entry *entry;
    const struct agx_grpc_call_ops *ops; /* NULL: nobody watches */
    void *user;
    bool started;      /* the handler was called */
    bool finished;     /* by us: only queued messages and the trailers remain */
    bool responded;    /* the response's headers are submitted */
    bool deferred;     /* nghttp2 waits for nghttp2_session_resume_data() */
    bool waiting;      /* `writable` is due */
    bool paused;       /* input is kept in `in` */
    bool remote_ended; /* the client's END_STREAM has arrived */
    bool half_closed;  /* and the handler knows */
    bool is_post, is_grpc;
    bool malformed;            /* the headers break HTTP/2's rules */
    unsigned pseudo;           /* bits of the received pseudo-headers */
    struct agx_error *refused; /* owned: why the handler will not run */
    size_t header_bytes;       /* as HTTP/2 counts them */
    size_t counted;            /* this call's share of link->bytes */
    struct agx_heap_node deadline;
    struct agx_grpc_headers meta;
    struct agx_grpc_decoder decoder;
    struct agx_str request; /* the only message: in decoder.held, or in `in` */
    bool has_request;
    struct agx_buf in;  /* bytes that wait while paused; else the request */
    struct agx_buf out; /* messages to send, from out_at on */
    size_t out_at;
    struct agx_grpc_headers trailers;
};

struct agx_grpc_call *agx_grpc_call_new(struct agx_grpc_link *l, int32_t stream);
void agx_grpc_call_free(struct agx_grpc_call *c);
/* Updates the count of the call's memory. False: the connection holds too much. */
bool agx_grpc_call_count(struct agx_grpc_call *c);
/* Ends it with an error of ours or the client's, and notifies the handler. */
void agx_grpc_call_end(struct agx_grpc_call *c, enum agx_code code, const char *why);
/* The client broke HTTP/2's rules: resets the stream; the handler is notified when that is done. */
void agx_grpc_call_abandon(struct agx_grpc_call *c);
/* nghttp2 closed the stream: notifies a handler that has not ended the call, and frees it. */
void agx_grpc_call_closed(struct agx_grpc_call *c, enum agx_code code);

/* call_in.c: input from the client. */
void agx_grpc_call_header(struct agx_grpc_call *c, struct agx_str name, struct agx_str value);
void agx_grpc_call_request(struct agx_grpc_call *c);
void agx_grpc_call_data(struct agx_grpc_call *c, struct agx_str bytes);
void agx_grpc_call_eof(struct agx_grpc_call *c);
/* Continues with input that waited. */
void agx_grpc_call_deliver(struct agx_grpc_call *c);

/* call_out.c: output to the client. */
void agx_grpc_call_reset(struct agx_grpc_call *c, uint32_t h2_code);
/* Whether `writable` is due. */
void agx_grpc_call_wait(struct agx_grpc_call *c, bool waiting);
/* Submits a plain HTTP status as the response, for requests that are not gRPC. */
void agx_grpc_call_refuse(struct agx_grpc_call *c, const char *http_status);

/* Call after something was submitted. */
void agx_grpc_link_wake(struct agx_grpc_link *l);

#endif

/*
 * server.h: a gRPC server on a loop: HTTP/2 without TLS, prior knowledge, on Unix sockets or TCP.
 *
 *     agx_grpc_server_open(loop, &config, &server, err);
 *     agx_grpc_server_add(server, methods, n, service, err);
 *     agx_grpc_server_listen(server, &listener, err);
 *     ...
 *     agx_grpc_server_stop(server, AGX_GRACE_MS, stopped, user);
 *
 * It knows no services; their handlers (grpc/call.h) run on the loop thread.
 */
#ifndef AGX_GRPC_SERVER_H
#define AGX_GRPC_SERVER_H

#include "base/limits.h"
#include "grpc/call.h"
#include "loop/loop.h"

struct agx_listener;
struct agx_grpc_server;

struct agx_grpc_config {
    size_t message_max;     /* of a received message */
    size_t conn_bytes_max;  /* memory that the calls of one connection may hold; HTTP/2's own
                            * state may be as much again */
    size_t headers_max;     /* of a request */
    size_t stream_high;     /* with more queued, agx_grpc_call_send() asks for a pause */
    size_t conns_max;       /* of admitted peers */
    size_t refused_max;     /* connections of refused peers; more are closed at once */
    uint32_t streams_max;   /* concurrent calls on one connection */
    uint32_t stream_window; /* bytes that a client may send ahead: per call, per connection */
    uint32_t conn_window;
    uint32_t resets_burst, resets_per_s;     /* cancelled calls */
    uint32_t controls_burst, controls_per_s; /* PING, SETTINGS, empty DATA */
    uint64_t handshake_ms;
    uint64_t refused_ms; /* how long a connection of a refused peer lasts at most */
    uint64_t keepalive_ms, keepalive_wait_ms;
    /* Whether this peer may use the server; called once per connection. A refused peer's first call
     * gets PERMISSION_DENIED, then the connection ends. NULL: all may. */
    bool (*admit)(void *user, const struct agx_grpc_peer *peer);
    void *user;
};
#define AGX_GRPC_CONFIG_INIT                                                                       \
    {                                                                                              \
        .message_max = AGX_GRPC_MESSAGE_MAX, .conn_bytes_max = AGX_GRPC_CONN_BYTES_MAX,            \
        .headers_max = AGX_GRPC_HEADERS_MAX, .stream_high = AGX_GRPC_STREAM_HIGH,                  \
        .conns_max = AGX_GRPC_CONNS_MAX, .refused_max = AGX_GRPC_REFUSED_MAX,                      \
        .streams_max = AGX_GRPC_STREAMS_MAX, .stream_window = AGX_GRPC_STREAM_WINDOW,              \
        .conn_window = AGX_GRPC_CONN_WINDOW, .resets_burst = AGX_GRPC_RESETS_BURST,                \
        .resets_per_s = AGX_GRPC_RESETS_PER_S, .controls_burst = AGX_GRPC_CONTROLS_BURST,          \
        .controls_per_s = AGX_GRPC_CONTROLS_PER_S, .handshake_ms = AGX_GRPC_HANDSHAKE_MS,          \
        .refused_ms = AGX_GRPC_REFUSED_MS, .keepalive_ms = AGX_GRPC_KEEPALIVE_MS,                  \
        .keepalive_wait_ms = AGX_GRPC_KEEPALIVE_WAIT_MS                                            \
    }

int agx_grpc_server_open(struct agx_loop *l, const struct agx_grpc_config *config,
                         struct agx_grpc_server **ret_server,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Adds methods, whose handlers get `service`. The table must outlive the server.
 * -AGX_ALREADY_EXISTS when a path is taken. */
int agx_grpc_server_add(struct agx_grpc_server *s, const struct agx_grpc_method *methods, size_t n,
                        void *service, struct agx_error **err) AGX_MUST_CHECK;

/* Serves the connections of an open listener that was not started. Takes it on success. */
int agx_grpc_server_listen(struct agx_grpc_server *s, struct agx_listener **take_listener,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Serves one connection: a non-blocking stream socket. Takes *take_fd on success. */
int agx_grpc_server_adopt(struct agx_grpc_server *s, int *take_fd,
                          struct agx_error **err) AGX_MUST_CHECK;

/*
 * Stops it: no new connections, GOAWAY; endless calls end at once, others may finish within
 * `deadline_ms`, then they end with UNAVAILABLE. Calls `stopped` when the last connection is closed
 * (soon after the deadline, whatever clients do); the server is then freed.
 */
void agx_grpc_server_stop(struct agx_grpc_server *s, uint64_t deadline_ms, agx_done_fn stopped,
                          void *user);

struct agx_grpc_stats {
    size_t conns;   /* of admitted peers */
    size_t refused; /* connections of refused peers */
    size_t calls;
    size_t bytes;     /* memory of all connections: requests, replies, HTTP/2's state */
    uint64_t started; /* total calls */
    uint64_t calmed;  /* total connections ended for abuse */
};
void agx_grpc_server_stats(const struct agx_grpc_server *s, struct agx_grpc_stats *ret);

#endif

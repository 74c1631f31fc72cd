/*
 * server.h: agentix-server: listeners, HTTP, Socket.IO clients, the router and the worker, joined
 * on one loop.
 *
 *     listeners -> http_server -> eio_server -> peer (one for each session) -> router <-> worker
 *
 * Each arrow is a module with callbacks. The server owns them all, opened in this order, and stops
 * them in the reverse order.
 */
#ifndef AGX_RUNTIME_SERVER_H
#define AGX_RUNTIME_SERVER_H

#include "base/error.h"
#include "codec/sha256.h"
#include "runtime/origin.h"
#include "runtime/router.h"
#include "runtime/wlog.h"

struct agx_loop;
struct agx_server;

/* Additional callers without a token; docs/design/runtime-protocol.md, 5, has the default. */
struct agx_server_access {
    bool insecure; /* any Host, any user */
    struct agx_origin origins[AGX_CALLERS_MAX];
    size_t n_origins;
    struct agx_authority hosts[AGX_CALLERS_MAX];
    size_t n_hosts;
};

struct agx_server_config {
    const char *host; /* NULL: no TCP */
    uint16_t port;
    const char *socket_path;               /* NULL: no Unix socket */
    bool has_token;                        /* else none is required */
    uint8_t token_digest[AGX_SHA256_SIZE]; /* of the required token, which is not stored itself */
    struct agx_server_access callers;
    const char *const *worker_argv, *const *worker_env;
    const char *port_file; /* written with the TCP port once it is bound; NULL: none */
    size_t max_message;
    size_t max_calls;
    uint64_t resume_ms;
    uint64_t grace_ms; /* how long running calls may continue after SIGTERM */
    unsigned spin_us;  /* how long to poll for the next message before sleeping; 0: never */
    struct agx_wlog_config log;
};
#define AGX_SERVER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .max_message = AGX_MESSAGE_MAX, .max_calls = AGX_CALLS_MAX, .resume_ms = AGX_RESUME_MS,    \
        .grace_ms = AGX_GRACE_MS, .spin_us = AGX_SPIN_US, .log = AGX_WLOG_CONFIG_INIT              \
    }

/* Binds all sockets and starts the worker. `config` and all it points to must outlive the server.
 */
int agx_server_open(struct agx_loop *l, const struct agx_server_config *config,
                    struct agx_server **ret_server, struct agx_error **err) AGX_MUST_CHECK;

/*
 * Accepts no more connections, lets calls continue for the grace period (none if `at_once`), ends
 * the others with ServerShutdown, stops the worker and calls `stopped`, after which the server is
 * freed. A second call only shortens the first.
 */
void agx_server_stop(struct agx_server *s, bool at_once, void (*stopped)(void *user), void *user);

#endif

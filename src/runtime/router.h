/*
 * router.h: tracks calls and routes their answers. The core of agentix-server, without I/O: events
 * of clients and frames of the worker go in, events and frames come out through `struct
 * agx_router_io`, time is an argument. docs/design/runtime-protocol.md has the rules.
 *
 * A client is one Socket.IO connection to namespace `/`. With protocol 1 it has a session that
 * survives the connection for a while. Loop thread only.
 */
#ifndef AGX_RUNTIME_ROUTER_H
#define AGX_RUNTIME_ROUTER_H

#include "base/buf.h"
#include "base/limits.h"
#include "codec/remote_call.h"

struct agx_router;
struct agx_client;

struct agx_router_config {
    size_t max_message;       /* the largest message from a client or the worker, and to a client */
    size_t legacy_message;    /* the default of a client's largest message */
    size_t max_calls;         /* unfinished or unacknowledged, per client */
    size_t queue_high;        /* queued bytes at which a client without credit gets no more */
    size_t input_max;         /* bidi input that waits for one call of a client without credit */
    size_t unacked_calls_max; /* unacknowledged ended calls, per session */
    size_t unacked_bytes_max; /* their bytes */
    uint64_t resume_ms;       /* how long a session waits for its client */
};
#define AGX_ROUTER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .max_message = AGX_MESSAGE_MAX, .legacy_message = AGX_LEGACY_MESSAGE_MAX,                  \
        .max_calls = AGX_CALLS_MAX, .queue_high = AGX_QUEUE_HIGH, .input_max = AGX_INPUT_MAX,      \
        .unacked_calls_max = AGX_UNACKED_CALLS_MAX, .unacked_bytes_max = AGX_UNACKED_BYTES_MAX,    \
        .resume_ms = AGX_RESUME_MS                                                                 \
    }

/* The router's output. These functions must not call back into the router. */
struct agx_router_io {
    /* One event for the connection: its payload is the parts, joined. Copies them. */
    void (*emit)(void *user, void *conn, enum agx_remote_event ev, const struct agx_str *parts,
                 size_t n_parts);
    /* Bytes that wait for the connection's socket. */
    size_t (*queued)(void *user, void *conn);
    /* Where to append frames for the worker, whether it runs already or not. */
    struct agx_buf *(*lane)(void *user, enum agx_remote_lane lane);
};

/* The content of a client's CONNECT packet. */
struct agx_client_hello {
    bool proto1;
    struct agx_str session; /* the session to resume; empty: none */
    size_t max_message;     /* 0: not given */
};

/* Every function of `io` gets `user`. */
struct agx_router *agx_router_new(const struct agx_router_config *config,
                                  const struct agx_router_io *io, void *user);
/* Frees everything without sending events; accepts NULL. */
struct agx_router *agx_router_free(struct agx_router *rt);

/*
 * Adds a client on `conn`. If it names an existing session, returns that client and sets
 * *ret_resumed; *ret_old_conn is then the connection that the session still had, for the caller to
 * close (else NULL).
 */
struct agx_client *agx_router_connect(struct agx_router *rt, const struct agx_client_hello *hello,
                                      void *conn, bool *ret_resumed, void **ret_old_conn);
/* The session's secret id; NULL for a client without protocol 1. Borrowed. */
const char *agx_client_peek_session(const struct agx_client *c);
/* The connection is closed. A client without a session is freed with it. */
void agx_router_disconnect(struct agx_router *rt, struct agx_client *c, uint64_t now_ms);
/* The client said goodbye: cancels its calls and frees it. */
void agx_router_leave(struct agx_router *rt, struct agx_client *c);
/* Handles one event with its single binary attachment. Ignores unknown events and events of ended
 * calls. */
void agx_router_event(struct agx_router *rt, struct agx_client *c, struct agx_str name,
                      struct agx_str payload, uint64_t now_ms);
/* The connection's queue fell below the mark again. */
void agx_router_drained(struct agx_router *rt, struct agx_client *c);

/* Handles one frame of the worker. Fails on a protocol violation: the worker must be killed. */
int agx_router_frame(struct agx_router *rt, struct agx_str frame, struct agx_error **err);
/*
 * The worker is gone, with everything in its lanes. Every call ends with an error of that type
 * (WorkerExited, WorkerUnavailable) and message; with `returncode` unless it is INT_MIN.
 */
void agx_router_worker_gone(struct agx_router *rt, struct agx_str type, const char *message,
                            int returncode);

/* The server is stopping: refuses new calls with ServerShutdown; running calls continue. */
void agx_router_drain(struct agx_router *rt);
/* Ends every call with that error, at the server's stop. */
void agx_router_end_all(struct agx_router *rt, struct agx_str type, const char *message);

/* Handles expired deadlines. Returns the next one, or UINT64_MAX. */
uint64_t agx_router_tick(struct agx_router *rt, uint64_t now_ms);

/* For /health: calls that the worker still owes an end. */
size_t agx_router_running(const struct agx_router *rt);

#endif

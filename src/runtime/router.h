/*
 * router.h: who called what, and where each answer goes. The heart of agentix-server, without any
 * I/O: events of clients and frames of the worker go in, events and frames come out through `struct
 * agx_router_io`, time is an argument. The rules are those of docs/design/runtime-protocol.md.
 *
 * A client is one Socket.IO connection to namespace `/`. One that speaks protocol 1 has a session
 * that survives the connection for a while. Everything belongs to the loop thread.
 */
#ifndef AGX_RUNTIME_ROUTER_H
#define AGX_RUNTIME_ROUTER_H

#include "base/buf.h"
#include "base/limits.h"
#include "codec/remote_call.h"

struct agx_router;
struct agx_client;

struct agx_router_config {
    size_t max_message; /* what we take from a client and from the worker, and a client from us */
    size_t legacy_message; /* what a client takes that does not say */
    size_t max_calls;      /* unfinished or unacknowledged, for each client */
    size_t
        queue_high; /* bytes queued for a socket past which a client without credit gets no more */
    size_t input_max;      /* bidi input that waits for one call of a client without credit */
    size_t kept_calls_max; /* ended calls whose answer is kept, for each session */
    size_t kept_bytes_max; /* their bytes */
    uint64_t resume_ms;    /* how long a session waits for its client */
};
#define AGX_ROUTER_CONFIG_INIT                                                                     \
    {                                                                                              \
        .max_message = AGX_MESSAGE_MAX, .legacy_message = AGX_LEGACY_MESSAGE_MAX,                  \
        .max_calls = AGX_CALLS_MAX, .queue_high = AGX_QUEUE_HIGH, .input_max = AGX_INPUT_MAX,      \
        .kept_calls_max = AGX_KEPT_CALLS_MAX, .kept_bytes_max = AGX_KEPT_BYTES_MAX,                \
        .resume_ms = AGX_RESUME_MS                                                                 \
    }

/* What the router does to the world. None of these may call back into the router. */
struct agx_router_io {
    /* One event for the connection: its payload is the parts, joined. Copies them. */
    void (*emit)(void *user, void *conn, enum agx_remote_event ev, const struct agx_str *parts,
                 size_t n_parts);
    /* Bytes that wait for the connection's socket. */
    size_t (*queued)(void *user, void *conn);
    /* Where to append frames for the worker, whether it runs already or not. */
    struct agx_buf *(*lane)(void *user, enum agx_remote_lane lane);
};

/* What a client said in its CONNECT packet. */
struct agx_client_hello {
    bool proto1;
    struct agx_str session; /* the one to resume; empty: none */
    size_t max_message;     /* 0: it did not say */
};

/* `user` is handed to every function of `io`. */
struct agx_router *agx_router_new(const struct agx_router_config *config,
                                  const struct agx_router_io *io, void *user);
/* Forgets everything without telling anybody; accepts NULL. */
struct agx_router *agx_router_free(struct agx_router *rt);

/*
 * A client arrived on `conn`. When it names a session that we have, that client is returned and
 * *ret_resumed is true; a connection that the session still had is forgotten, and is *ret_old_conn
 * for the caller to close (else NULL).
 */
struct agx_client *agx_router_connect(struct agx_router *rt, const struct agx_client_hello *hello,
                                      void *conn, bool *ret_resumed, void **ret_old_conn);
/* The session's secret name; NULL for a client without protocol 1. Borrowed. */
const char *agx_client_peek_session(const struct agx_client *c);
/* The connection is gone. Without a session the client is gone with it, and the pointer dead. */
void agx_router_disconnect(struct agx_router *rt, struct agx_client *c, uint64_t now_ms);
/* The client said goodbye: it is gone at once, its calls are cancelled, and the pointer is dead. */
void agx_router_leave(struct agx_router *rt, struct agx_client *c);
/* One event with its one binary attachment. Unknown events and what ended calls still send are
 * ignored. */
void agx_router_event(struct agx_router *rt, struct agx_client *c, struct agx_str name,
                      struct agx_str payload, uint64_t now_ms);
/* The connection's queue went below the mark again. */
void agx_router_drained(struct agx_router *rt, struct agx_client *c);

/* One frame of the worker. Fails where the worker does not keep the protocol: it must be killed. */
int agx_router_frame(struct agx_router *rt, struct agx_str frame, struct agx_error **err);
/*
 * The worker, and with it what was in the lanes, is gone. Every call ends with an error of that
 * type (WorkerExited, WorkerUnavailable) and message; `returncode` goes along unless it is INT_MIN.
 */
void agx_router_worker_gone(struct agx_router *rt, struct agx_str type, const char *message,
                            int returncode);

/* The server will stop: new calls are refused with ServerShutdown, those in progress go on. */
void agx_router_drain(struct agx_router *rt);
/* Ends every call with that error: the server stops. */
void agx_router_end_all(struct agx_router *rt, struct agx_str type, const char *message);

/* Deadlines that have passed are acted upon. The next one, or UINT64_MAX. */
uint64_t agx_router_tick(struct agx_router *rt, uint64_t now_ms);

/* For /health: calls that the worker still owes an end. */
size_t agx_router_running(const struct agx_router *rt);

#endif

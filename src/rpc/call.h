/*
 * call.h: what a gRPC method's handler sees: one call, from its request to its status.
 *
 * A call ends exactly once, and its pointer is dead from then on: either the handler ends it
 * (reply, finish, fail), or `ended` tells that it is over for another reason: the client cancelled
 * it or is gone, its deadline passed, the server stops. Loop thread only. A handler may answer at
 * once or later; one that returns without having answered has called agx_rpc_call_watch().
 */
#ifndef AGX_RPC_CALL_H
#define AGX_RPC_CALL_H

#include "base/error.h"
#include "base/str.h"

#include <sys/types.h>

struct agx_rpc_call;

enum agx_rpc_kind {
    AGX_RPC_UNARY,
    AGX_RPC_SERVER_STREAM,
    AGX_RPC_CLIENT_STREAM,
    AGX_RPC_BIDI,
};

struct agx_rpc_method {
    const char *path; /* "/package.Service/Method"; outlives the server */
    enum agx_rpc_kind kind;
    /* It ends only when its client has had enough (a subscription): a server that stops ends it at
     * once instead of waiting. */
    bool endless;
    /* `request` is the message, whole, borrowed for the call; for client streams and bidi it is
     * empty and messages come by agx_rpc_call_ops. */
    void (*handler)(void *service, struct agx_rpc_call *call, struct agx_str request);
};

/* What a call tells while it goes on; none inside a call of the handler's. NULL where unwanted. */
struct agx_rpc_call_ops {
    /* It is over without our doing: AGX_CANCELLED, AGX_DEADLINE_EXCEEDED, AGX_UNAVAILABLE (the
     * server stops), or what was wrong with the client's messages. Required. */
    void (*ended)(void *user, enum agx_code code);
    /* agx_rpc_call_send() returned 1 before; it takes messages again. */
    void (*writable)(void *user);
    /* Client streams and bidi: the next message, borrowed for the call; the client's end. */
    void (*message)(void *user, struct agx_str message);
    void (*half_closed)(void *user);
};

/* The other end of the connection; for TCP pid is 0 and the ids are -1. */
struct agx_rpc_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

struct agx_rpc_meta {
    struct agx_str key, value; /* a value of a `-bin` key is bytes; they travel as base64 */
};

struct agx_rpc_status {
    enum agx_code code;
    struct agx_str message;
    /* grpc-status-details-bin: a serialized google.rpc.Status that agrees with both; or empty. */
    struct agx_str details;
    const struct agx_rpc_meta *trailers;
    size_t trailer_count;
};

/* From now on `ops` are told, with `user`. */
void agx_rpc_call_watch(struct agx_rpc_call *c, const struct agx_rpc_call_ops *ops, void *user);

/* Sends the only message and ends the call with OK. Unary and client stream. */
void agx_rpc_call_reply(struct agx_rpc_call *c, struct agx_str message);

/*
 * Queues a message of a server stream or bidi. 0: sent or queued. 1: the same, and so much is
 * waiting that there has to be a pause until `writable`. -AGX_RESOURCE_EXHAUSTED: not queued,
 * because there was no pause, or the connection holds its maximum; the call goes on.
 */
int agx_rpc_call_send(struct agx_rpc_call *c, struct agx_str message) AGX_MUST_CHECK;

/* Sends the response's headers without waiting for the first message: a subscriber learns that it
 * is subscribed. */
void agx_rpc_call_begin(struct agx_rpc_call *c);

/*
 * Ends the call after what is queued. With an error and nothing sent before, status and headers
 * travel in one frame. Where message and details are too long for a client's headers
 * (AGX_RPC_TRAILERS_MAX), the details are left out and the message is cut.
 */
void agx_rpc_call_finish(struct agx_rpc_call *c, const struct agx_rpc_status *status);

/* agx_rpc_call_finish() with the code and the text of *take_error. */
void agx_rpc_call_fail(struct agx_rpc_call *c, struct agx_error **take_error);

/* Client streams and bidi: no `message` for now; the client has to wait once its window is used
 * up. May be called inside `message`. */
void agx_rpc_call_pause(struct agx_rpc_call *c);
void agx_rpc_call_resume(struct agx_rpc_call *c);

/* Borrowed until the call ends. */
const struct agx_rpc_peer *agx_rpc_call_peek_peer(const struct agx_rpc_call *c);

/* The first value of a key of the client's metadata as it came (`-bin`: base64), borrowed until
 * the call ends; ptr NULL: there is none. */
struct agx_str agx_rpc_call_peek_meta(const struct agx_rpc_call *c, struct agx_str key);

/* Visits all of it from *at = 0 on; false at the end. */
bool agx_rpc_call_next_meta(const struct agx_rpc_call *c, size_t *at, struct agx_rpc_meta *ret);

/* Bytes that wait to be sent. */
size_t agx_rpc_call_queued(const struct agx_rpc_call *c);

#endif

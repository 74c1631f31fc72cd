/*
 * call.h: a gRPC call as a method's handler sees it, from its request to its status.
 *
 * A call ends exactly once, and its pointer is invalid afterwards: either the handler ends it
 * (reply, finish, fail), or `ended` reports another end: the client cancelled it or is gone, its
 * deadline passed, the server stops. Loop thread only. A handler may answer at once or later; to
 * answer later it must call agx_grpc_call_watch() before it returns.
 */
#ifndef AGX_GRPC_CALL_H
#define AGX_GRPC_CALL_H

#include "base/error.h"
#include "base/str.h"

#include <sys/types.h>

struct agx_grpc_call;

enum agx_grpc_kind {
    AGX_GRPC_UNARY,
    AGX_GRPC_SERVER_STREAM,
    AGX_GRPC_CLIENT_STREAM,
    AGX_GRPC_BIDI,
};

struct agx_grpc_method {
    const char *path; /* "/package.Service/Method"; outlives the server */
    enum agx_grpc_kind kind;
    /* It ends only when the client wants (a subscription): a stopping server ends it at once
     * instead of waiting. */
    bool endless;
    /* `request` is the whole message, borrowed for the call; for client streams and bidi it is
     * empty, and agx_grpc_call_ops delivers the messages. */
    void (*handler)(void *service, struct agx_grpc_call *call, struct agx_str request);
};

/* Callbacks of a running call, never inside a call of the handler's. NULL where unwanted. */
struct agx_grpc_call_ops {
    /* The call ended without our doing: AGX_CANCELLED, AGX_DEADLINE_EXCEEDED, AGX_UNAVAILABLE (the
     * server stops), or the code of a fault in the client's messages. Required. */
    void (*ended)(void *user, enum agx_code code);
    /* After agx_grpc_call_send() returned 1: it accepts messages again. */
    void (*writable)(void *user);
    /* Client streams and bidi: the next message, borrowed for the call; the client's end of stream.
     */
    void (*message)(void *user, struct agx_str message);
    void (*half_closed)(void *user);
};

/* The peer's credentials; for TCP pid is 0 and the ids are -1. */
struct agx_grpc_peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

struct agx_grpc_meta {
    struct agx_str key, value; /* the value of a `-bin` key is bytes, sent as base64 */
};

struct agx_grpc_status {
    enum agx_code code;
    struct agx_str message;
    /* grpc-status-details-bin: a serialized google.rpc.Status with the same code and message; or
     * empty. */
    struct agx_str details;
    const struct agx_grpc_meta *trailers;
    size_t trailer_count;
};

/* Sets the callbacks and their `user`. */
void agx_grpc_call_watch(struct agx_grpc_call *c, const struct agx_grpc_call_ops *ops, void *user);

/* Sends the only message and ends the call with OK. Unary and client stream. */
void agx_grpc_call_reply(struct agx_grpc_call *c, struct agx_str message);

/*
 * Queues a message of a server stream or bidi. 0: sent or queued. 1: the same, but so much is
 * waiting that the caller must pause until `writable`. -AGX_RESOURCE_EXHAUSTED: not queued, because
 * the caller did not pause, or the connection holds its maximum; the call goes on.
 */
int agx_grpc_call_send(struct agx_grpc_call *c, struct agx_str message) AGX_MUST_CHECK;

/* Sends the response's headers before the first message, so that a subscriber learns that it is
 * subscribed. */
void agx_grpc_call_begin(struct agx_grpc_call *c);

/*
 * Ends the call after all queued messages. An error before any message is sent as one frame with
 * status and headers. If message and details exceed a client's limit of trailers
 * (AGX_GRPC_TRAILERS_MAX), the details are left out and the message is cut.
 */
void agx_grpc_call_finish(struct agx_grpc_call *c, const struct agx_grpc_status *status);

/* agx_grpc_call_finish() with the code and the text of *take_error. */
void agx_grpc_call_fail(struct agx_grpc_call *c, struct agx_error **take_error);

/* Client streams and bidi: stops `message` for now; the client has to wait once its window is used
 * up. May be called inside `message`. */
void agx_grpc_call_pause(struct agx_grpc_call *c);
void agx_grpc_call_resume(struct agx_grpc_call *c);

/* Borrowed until the call ends. */
const struct agx_grpc_peer *agx_grpc_call_peek_peer(const struct agx_grpc_call *c);

/* The first value of a key of the client's metadata as received (`-bin`: base64), borrowed until
 * the call ends; ptr NULL: none. */
struct agx_str agx_grpc_call_peek_meta(const struct agx_grpc_call *c, struct agx_str key);

/* Iterates over the metadata, starting with *at = 0; false at the end. */
bool agx_grpc_call_next_meta(const struct agx_grpc_call *c, size_t *at, struct agx_grpc_meta *ret);

/* Bytes that wait to be sent. */
size_t agx_grpc_call_queued(const struct agx_grpc_call *c);

#endif

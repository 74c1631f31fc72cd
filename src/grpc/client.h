/*
 * client.h: a blocking gRPC client: one connection to a Unix socket, calls with one request and one
 * answer or with streams of either.
 *
 *     agx_grpc_client_open("/run/agentix/agentixd.sock", &config, &client, err);
 *     r = agx_grpc_client_call(client, &request, &reply, NULL, err);
 *     agx_grpc_client_close(client);
 *
 * A call that the server ended with an error returns -code, and `err` has the server's message. One
 * thread at a time; a client may have several calls in flight. Nothing here uses a loop: waiting is
 * poll(2).
 */
#ifndef AGX_GRPC_CLIENT_H
#define AGX_GRPC_CLIENT_H

#include "base/buf.h"
#include "base/limits.h"
#include "grpc/call.h"

struct agx_grpc_client;
struct agx_grpc_reply;

struct agx_grpc_client_config {
    size_t message_max;     /* of a received message */
    size_t trailers_max;    /* of received headers and trailers together */
    uint32_t stream_window; /* bytes that the server may send ahead: per call, in total */
    uint32_t conn_window;
};
#define AGX_GRPC_CLIENT_CONFIG_INIT                                                                \
    {                                                                                              \
        .message_max = AGX_GRPC_MESSAGE_MAX, .trailers_max = 4 * AGX_GRPC_TRAILERS_MAX,            \
        .stream_window = AGX_GRPC_STREAM_WINDOW, .conn_window = AGX_GRPC_CONN_WINDOW               \
    }

struct agx_grpc_request {
    const char *path; /* "/package.Service/Method" */
    struct agx_str message;
    uint64_t timeout_ms;              /* 0: none */
    const struct agx_grpc_meta *meta; /* values of `-bin` keys are bytes */
    size_t meta_count;
    bool more; /* a stream of messages: agx_grpc_reply_send() sends them, `message` is ignored */
};

/* -AGX_UNAVAILABLE when no process listens at `path`. */
int agx_grpc_client_open(const char *path, const struct agx_grpc_client_config *config,
                         struct agx_grpc_client **ret_client,
                         struct agx_error **err) AGX_MUST_CHECK;

/* The same with a connected stream socket. Takes *take_fd on success. */
int agx_grpc_client_adopt(int *take_fd, const struct agx_grpc_client_config *config,
                          struct agx_grpc_client **ret_client,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Close its replies first. Returns NULL and accepts it. */
struct agx_grpc_client *agx_grpc_client_close(struct agx_grpc_client *c);

/* One request and one answer, which is appended to `reply`. Blocks. On an error
 * grpc-status-details-bin is appended to `details`, which may be NULL. */
int agx_grpc_client_call(struct agx_grpc_client *c, const struct agx_grpc_request *q,
                         struct agx_buf *reply, struct agx_buf *details,
                         struct agx_error **err) AGX_MUST_CHECK;

/* True if the last call failed because a stopping server had not begun it, and no other call is in
 * flight: it may be repeated over another connection. */
bool agx_grpc_client_refused(const struct agx_grpc_client *c);

/* Sends a request with a stream of answers. Does not block; copies what it needs of `q`. */
int agx_grpc_client_start(struct agx_grpc_client *c, const struct agx_grpc_request *q,
                          struct agx_grpc_reply **ret_reply, struct agx_error **err) AGX_MUST_CHECK;

/*
 * The next message, waiting at most `wait_ms`; -1: without limit. 1: it is *ret_message, borrowed
 * until the next call for this reply. AGX_GRPC_NOTHING_YET: nothing came in that time. 0: the
 * stream ended with OK. Negative: it ended with an error, which further calls repeat; `err` has the
 * server's message. -AGX_DEADLINE_EXCEEDED: the request's timeout has passed.
 */
#define AGX_GRPC_NOTHING_YET 2
int agx_grpc_reply_next(struct agx_grpc_reply *r, int wait_ms, struct agx_str *ret_message,
                        struct agx_error **err) AGX_MUST_CHECK;

/*
 * Queues the next message of a request with `more`; does not block. Unsent bytes are buffered
 * without limit: a caller with much data continues when agx_grpc_reply_unsent() is small, and calls
 * agx_grpc_reply_next() until then. A call that is over discards messages, and its unsent bytes are
 * 0: agx_grpc_reply_next() returns the reason.
 */
int agx_grpc_reply_send(struct agx_grpc_reply *r, struct agx_str message,
                        struct agx_error **err) AGX_MUST_CHECK;
/* Ends the stream of messages. */
void agx_grpc_reply_send_end(struct agx_grpc_reply *r);
/* Bytes of the request that the server's window does not admit yet. */
size_t agx_grpc_reply_unsent(const struct agx_grpc_reply *r);

/* grpc-status-details-bin, decoded; empty: none. Borrowed until the reply is closed. */
struct agx_str agx_grpc_reply_peek_details(const struct agx_grpc_reply *r);

/* Cancels it if it is running. Returns NULL and accepts it. */
struct agx_grpc_reply *agx_grpc_reply_close(struct agx_grpc_reply *r);

/*
 * For the caller's own poll(2): wait for these events at that descriptor, unless a reply is ready,
 * since reading for one reply may receive data of another. Afterwards agx_grpc_reply_next() with
 * wait_ms 0 may have a message.
 */
int agx_grpc_client_fd(const struct agx_grpc_client *c);
short agx_grpc_client_events(const struct agx_grpc_client *c);
bool agx_grpc_reply_ready(const struct agx_grpc_reply *r);

#endif

/*
 * grpc.h: for tests of the gRPC server: a server on a loop, a small service, and an HTTP/2 client
 * at the other end of a socketpair. The test turns both explicitly.
 */
#ifndef AGX_TESTS_GRPC_H
#define AGX_TESTS_GRPC_H

#include "base/buf.h"
#include "grpc/server.h"
#include "tests/support/loop.h"

#include <nghttp2/nghttp2.h>

enum { RPC_HELD_MAX = 2000 };

/* One call as its client sees it. */
struct rpc_request {
    int32_t stream;
    unsigned n_headers;  /* HEADERS frames received */
    struct agx_buf body; /* frames to send, from `at` on */
    size_t at;
    struct agx_buf data; /* frames received */
    char http_status[8], content_type[64], grpc_status[8], grpc_message[600], details[600];
    char custom[100]; /* value of "x-custom" in the trailers */
    uint32_t error;   /* error code that closed the stream */
    bool closed;
    bool open;     /* the body is not complete */
    bool deferred; /* nghttp2 waits for more of the body */
};

struct rpc_client {
    int fd;
    nghttp2_session *session;
    struct agx_buf out; /* bytes that the socket has not accepted yet */
    bool deaf;          /* reads nothing from the socket */
    bool closed;        /* the server closed the connection */
    unsigned n_pings;   /* pings that the server sent */
    bool goaway;
    uint32_t goaway_error;
    int32_t goaway_last;
};

/* A call that its handler holds. */
struct rpc_held {
    struct rpc_fixture *f;
    struct agx_grpc_call *call; /* NULL: the call has ended */
    enum agx_code code;         /* the status that ended() got */
    unsigned n_ended, n_writable, n_messages, n_half_closed;
    bool pause_each;               /* pause() in each message() */
    struct agx_grpc_call *resumes; /* message() resumes this call; may be NULL */
    struct agx_buf got;
};

struct rpc_fixture {
    struct agx_loop *loop;
    struct agx_grpc_server *server;
    struct rpc_client client;
    struct rpc_held *held; /* RPC_HELD_MAX of them */
    size_t n_held;
    unsigned n_stopped;
    struct agx_buf echoed; /* the answer of /t.T/Meta */
};

/*
 * Methods: Echo (unary), Fail (NOT_FOUND with the request as message and details), Meta (unary: the
 * client's metadata as text), Hold (unary, kept), Stream (server stream, kept), Endless (the same,
 * marked as endless), Collect (client stream, kept), Bidi (echoes each message).
 */
void rpc_setup(struct rpc_fixture *f, const struct agx_grpc_config *config);
void rpc_teardown(struct rpc_fixture *f);
void rpc_turn(struct rpc_fixture *f);
/* Calls agx_grpc_server_stop(); f->n_stopped counts when it has stopped. */
void rpc_stop(struct rpc_fixture *f, uint64_t deadline_ms);
void rpc_connect(struct rpc_fixture *f, struct rpc_client *c);
void rpc_client_turn(struct rpc_client *c);
void rpc_client_close(struct rpc_client *c);
/* Sends raw bytes, without nghttp2. */
void rpc_client_raw(struct rpc_fixture *f, struct rpc_client *c, struct agx_str bytes);

/* Starts a call. If `message` is NULL it sends no message and no end (see rpc_write). */
void rpc_start(struct rpc_client *c, struct rpc_request *q, const char *path,
               const struct agx_str *message);
void rpc_start_with(struct rpc_client *c, struct rpc_request *q, const nghttp2_nv *nv, size_t n,
                    const struct agx_str *message);
void rpc_write(struct rpc_client *c, struct rpc_request *q, struct agx_str message);
void rpc_write_end(struct rpc_client *c, struct rpc_request *q);
/* Takes the first message from the received bytes; false: it is not complete yet. */
bool rpc_read(struct rpc_request *q, struct agx_buf *ret_message);
void rpc_request_done(struct rpc_request *q);

#define RPC_UNTIL(f, condition)                                                                    \
    while (!(condition))                                                                           \
    rpc_turn(f)

#define RPC_NV(name_, value_)                                                                      \
    ((nghttp2_nv){ .name = (uint8_t *)(name_),                                                     \
                   .value = (uint8_t *)(value_),                                                   \
                   .namelen = strlen(name_),                                                       \
                   .valuelen = strlen(value_) })

#endif

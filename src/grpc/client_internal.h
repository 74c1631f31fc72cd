/*
 * client_internal.h: shared by the files of the client.
 *
 *     client.c         the connection and its input
 *     client_send.c    requests
 */
#ifndef AGX_GRPC_CLIENT_INTERNAL_H
#define AGX_GRPC_CLIENT_INTERNAL_H

#include "base/list.h"
#include "codec/grpc_frame.h"
#include "grpc/client.h"
#include "grpc/headers.h"

struct agx_grpc_client {
    struct agx_grpc_client_config config;
    int fd;
    nghttp2_session *session;
    struct agx_buf out; /* not yet written to the socket */
    bool lost;
    bool refused;            /* the server has not begun with the call that ended last */
    struct agx_list replies; /* of struct agx_grpc_reply */
};

struct agx_grpc_reply {
    struct agx_grpc_client *client;
    struct agx_list_node node; /* in client->replies */
    int32_t stream;            /* 0: it never began, or is closed */
    struct agx_buf request;    /* what nghttp2 has not taken yet, from request_at on */
    size_t request_at;
    bool more;       /* messages may be added to the request */
    bool deferred;   /* nghttp2 waits for more messages */
    uint64_t due_ms; /* UINT64_MAX: never */
    struct agx_buf in;
    size_t taken; /* consumed bytes of `in` */
    struct agx_grpc_decoder decoder;
    struct agx_grpc_headers headers; /* and trailers */
    bool over;
    enum agx_code code;
    struct agx_buf text, details;
};

/* Submits the request to nghttp2. */
int agx_grpc_reply_submit(struct agx_grpc_reply *r, const struct agx_grpc_request *q,
                          struct agx_error **err) AGX_MUST_CHECK;

/* Writes as much as the socket accepts. */
void agx_grpc_client_write(struct agx_grpc_client *c);

#endif

/*
 * http_server.h: HTTP/1.1 requests on connections, answered at once or later.
 *
 * Requests of one connection are handled one after another, each with its whole body in memory. A
 * request may also switch its connection to another protocol (WebSocket).
 */
#ifndef AGX_RUNTIME_HTTP_SERVER_H
#define AGX_RUNTIME_HTTP_SERVER_H

#include "codec/http1.h"
#include "loop/conn.h"

struct agx_http_server;

struct agx_http_server_config {
    size_t head_max;
    size_t body_max;
    uint64_t head_ms, body_ms, idle_ms; /* see limits.h; 0: no limit */
};
#define AGX_HTTP_SERVER_CONFIG_INIT                                                                \
    {                                                                                              \
        .head_max = AGX_HTTP_HEAD_MAX, .body_max = AGX_MESSAGE_MAX, .head_ms = AGX_HTTP_HEAD_MS,   \
        .body_ms = AGX_HTTP_BODY_MS, .idle_ms = AGX_HTTP_IDLE_MS                                   \
    }

/* A request that waits for its answer. Valid until answered, taken over, or `gone`. */
struct agx_exchange {
    struct agx_http_head head;
    struct agx_str body;
    void *user;    /* for the code that answers later; initially NULL */
    unsigned from; /* `from` and `net` of agx_http_server_accept() */
    uint64_t net;
    /* The Origin whose pages may read the answer (CORS), a view of the head; empty: only the
     * server's own. Set it in head(). */
    struct agx_str readable_by;
};

struct agx_http_server_ops {
    /* The head is complete, the body is not: refuse a request here. Optional. */
    void (*head)(void *user, struct agx_exchange *x);
    /* The request is complete. Answer it now or later. */
    void (*request)(void *user, struct agx_exchange *x);
    /* The body is too long. The default answer is 413. Optional. */
    void (*oversize)(void *user, struct agx_exchange *x);
    /* The client disconnected before the answer. */
    void (*gone)(void *user, struct agx_exchange *x);
};

struct agx_http_response {
    unsigned status;
    struct agx_str type; /* Content-Type */
    struct agx_str body;
    const struct agx_http_header *headers; /* additional headers */
    size_t header_count;
};

/* `g` must outlive the server. */
int agx_http_server_open(struct agx_conn_group *g, const struct agx_http_server_config *config,
                         const struct agx_http_server_ops *ops, void *user,
                         struct agx_http_server **ret_server,
                         struct agx_error **err) AGX_MUST_CHECK;
/* Ends every connection that is still HTTP; unanswered exchanges are `gone`. Accepts NULL.
 */
struct agx_http_server *agx_http_server_close(struct agx_http_server *s);

/* Adds a connection. Takes *take_fd on success and sets it to -1. `from` and `net` are the caller's
 * values for the peer and its network; every exchange of the connection has them. */
int agx_http_server_accept(struct agx_http_server *s, int *take_fd, unsigned from, uint64_t net,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Answers; `x` is dead afterwards. */
void agx_exchange_answer(struct agx_exchange *x, const struct agx_http_response *a);
/* The same with the body {"detail":"<text>"}; the text has no quotes or backslashes. */
void agx_exchange_answer_detail(struct agx_exchange *x, unsigned status, const char *text);

/* Takes the connection over for another protocol: `ops` gets later bytes. `x` is invalid
 * afterwards; append initial output to agx_conn_out(). */
struct agx_conn *agx_exchange_take_conn(struct agx_exchange *x, const struct agx_conn_ops *ops,
                                        void *user);

#endif

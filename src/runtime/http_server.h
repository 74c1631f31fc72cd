/*
 * http_server.h: HTTP/1.1 requests from connections, and their answers, at once or later.
 *
 * Requests of one connection are handled one after another, each with its whole body in memory. A
 * request may also turn its connection into something else (a WebSocket).
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

/* A request that waits for its answer. Valid until it is answered, taken over, or gone. */
struct agx_exchange {
    struct agx_http_head head;
    struct agx_str body;
    void *user;    /* whoever answers later keeps its own here; NULL at first */
    unsigned from; /* what agx_http_server_accept() was told */
    /* The Origin whose pages may read the answer (CORS), a view of the head; empty: none but the
     * server's own. To be set in head(). */
    struct agx_str readable_by;
};

struct agx_http_server_ops {
    /* The head came, the body not yet: whoever may not send one is answered here. Optional. */
    void (*head)(void *user, struct agx_exchange *x);
    /* The whole request came. To be answered now or later. */
    void (*request)(void *user, struct agx_exchange *x);
    /* The body is too long. Unless answered here, the answer is 413. Optional. */
    void (*oversize)(void *user, struct agx_exchange *x);
    /* The client went before it was answered. */
    void (*gone)(void *user, struct agx_exchange *x);
};

struct agx_http_response {
    unsigned status;
    struct agx_str type; /* Content-Type */
    struct agx_str body;
    const struct agx_http_header *headers; /* more of them */
    size_t header_count;
};

/* The group must outlive it. */
int agx_http_server_open(struct agx_conn_group *g, const struct agx_http_server_config *config,
                         const struct agx_http_server_ops *ops, void *user,
                         struct agx_http_server **ret_server,
                         struct agx_error **err) AGX_MUST_CHECK;
/* Ends every connection that is still HTTP; those that wait for an answer are `gone`. Accepts NULL.
 */
struct agx_http_server *agx_http_server_close(struct agx_http_server *s);

/* A new connection. Takes *take_fd on success and sets it to -1. `from` is the caller's own word
 * for whoever is at the other end; it comes with each of his requests. */
int agx_http_server_accept(struct agx_http_server *s, int *take_fd, unsigned from,
                           struct agx_error **err) AGX_MUST_CHECK;

/* Answers; `x` is dead afterwards. */
void agx_exchange_answer(struct agx_exchange *x, const struct agx_http_response *a);
/* The same with the body {"detail":"<text>"}; the text has no quotes or backslashes. */
void agx_exchange_answer_detail(struct agx_exchange *x, unsigned status, const char *text);

/* Takes the connection over for another protocol: bytes to come go to `ops`. `x` is dead
 * afterwards; what must be said first is appended to agx_conn_out(). */
struct agx_conn *agx_exchange_take_conn(struct agx_exchange *x, const struct agx_conn_ops *ops,
                                        void *user);

#endif

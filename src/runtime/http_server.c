/*
 * http_server.c: HTTP/1.1 on connections.
 *
 *     HEAD --head--> BODY --all of it--> WAIT --answer--> HEAD ...
 *
 * A `link` is one connection; its exchange is reused for every request. Pipelined requests wait
 * in the connection's buffer until the previous answer is written.
 */
#include "runtime/http_server.h"

#include "base/list.h"

#include <stdio.h>

#include "base/banned.h"

enum link_state {
    LINK_HEAD,
    LINK_BODY,
    LINK_WAIT,
    LINK_ENDED, /* the last answer was written, or the connection was taken over */
};

struct link {
    struct agx_exchange x; /* first: exchanges are links to us */
    struct agx_http_server *server;
    struct agx_conn *conn; /* NULL: taken over */
    enum link_state state;
    bool in_data; /* inside data(), which frees a link that was taken over */
    struct agx_http http;
    struct agx_buf head_bytes; /* x.head points into this */
    struct agx_buf body;
    struct agx_list_node node;
};

struct agx_http_server {
    struct agx_conn_group *group;
    struct agx_http_server_config config;
    const struct agx_http_server_ops *ops;
    void *user;
    struct agx_list all; /* of struct link */
    bool closing;
};

static struct link *link_of(struct agx_exchange *x)
{
    return (struct link *)(void *)x;
}

static void server_released(struct agx_http_server *s)
{
    if (s->closing && agx_list_is_empty(&s->all))
        free(s);
}

static void link_free(struct link *l)
{
    struct agx_http_server *s = l->server;

    agx_list_remove(&l->node);
    agx_buf_done(&l->head_bytes);
    agx_buf_done(&l->body);
    free(l);
    server_released(s);
}

/* A cache must not serve one origin's answer to another. */
static int write_readable_by(struct agx_buf *out, struct agx_str origin)
{
    int r = agx_http_write_header(out, AGX_STR("Access-Control-Allow-Origin"), origin);

    if (r == 0)
        r = agx_http_write_header(out, AGX_STR("Access-Control-Allow-Credentials"),
                                  AGX_STR("true"));
    return r == 0 ? agx_http_write_header(out, AGX_STR("Vary"), AGX_STR("Origin")) : r;
}

static int write_answer(struct agx_buf *out, const struct agx_exchange *x,
                        const struct agx_http_response *a, bool keep_alive)
{
    bool bare = agx_str_eq(x->head.method, AGX_STR("HEAD"));
    int r = agx_http_write_status(out, a->status);

    if (r == 0 && a->type.len > 0)
        r = agx_http_write_header(out, AGX_STR("Content-Type"), a->type);
    if (r == 0)
        r = agx_http_write_length(out, a->body.len);
    if (r == 0 && x->readable_by.len > 0)
        r = write_readable_by(out, x->readable_by);
    for (size_t i = 0; i < a->header_count && r == 0; i++)
        r = agx_http_write_header(out, a->headers[i].name, a->headers[i].value);
    if (r == 0 && !keep_alive)
        r = agx_http_write_header(out, AGX_STR("Connection"), AGX_STR("close"));
    if (r == 0)
        r = agx_http_write_end(out);
    return r == 0 && !bare ? agx_buf_append(out, a->body) : r;
}

void agx_exchange_answer(struct agx_exchange *x, const struct agx_http_response *a)
{
    struct link *l = link_of(x);
    bool keep_alive = x->head.keep_alive && l->state == LINK_WAIT && !l->server->closing;

    if (write_answer(agx_conn_out(l->conn), x, a, keep_alive) < 0) {
        l->state = LINK_ENDED;
        agx_conn_abort(l->conn, NULL);
        return;
    }
    x->user = NULL;
    x->readable_by = AGX_STR("");
    agx_buf_done(&l->body);
    agx_buf_clear(&l->head_bytes);
    if (!keep_alive) {
        l->state = LINK_ENDED;
        agx_conn_close(l->conn);
        return;
    }
    l->state = LINK_HEAD;
    agx_conn_deadline(l->conn, l->server->config.idle_ms);
    if (!l->in_data)
        agx_conn_resume(l->conn);
}

void agx_exchange_answer_detail(struct agx_exchange *x, unsigned status, const char *text)
{
    char body[200];
    int n = snprintf(body, sizeof(body), "{\"detail\":\"%.150s\"}", text);

    agx_exchange_answer(x, &(struct agx_http_response){ .status = status,
                                                        .type = AGX_STR("application/json"),
                                                        .body = agx_str_bytes(body, (size_t)n) });
}

struct agx_conn *agx_exchange_take_conn(struct agx_exchange *x, const struct agx_conn_ops *ops,
                                        void *user)
{
    struct link *l = link_of(x);
    struct agx_conn *c = l->conn;

    agx_conn_deadline(c, 0);
    agx_conn_hand_over(c, ops, user);
    l->conn = NULL;
    l->state = LINK_ENDED;
    if (!l->in_data)
        link_free(l);
    return c;
}

/* The parser refused the input: sends one answer and ends. */
static void http_server_refuse(struct link *l, struct agx_error **err)
{
    const struct agx_http_server_ops *ops = l->server->ops;
    char text[160];

    if (l->http.fault == 413 && ops->oversize)
        ops->oversize(l->server->user, &l->x);
    if (l->state != LINK_ENDED)
        agx_exchange_answer_detail(&l->x, l->http.fault,
                                   agx_error_format(*err, text, sizeof(text)));
    *err = agx_error_free(*err);
}

static void out_of_memory(struct link *l)
{
    l->state = LINK_ENDED;
    agx_conn_abort(l->conn, NULL);
}

static void begin_body(struct link *l)
{
    const struct agx_http_server_ops *ops = l->server->ops;

    l->state = LINK_BODY;
    agx_conn_deadline(l->conn, l->server->config.body_ms);
    if (ops->head)
        ops->head(l->server->user, &l->x);
    if (l->state == LINK_BODY && l->x.head.expect_continue &&
        agx_buf_append(agx_conn_out(l->conn), AGX_STR("HTTP/1.1 100 Continue\r\n\r\n")) < 0)
        out_of_memory(l);
}

static size_t read_head(struct link *l, struct agx_str in)
{
    struct agx_error *err = NULL;
    size_t used = 0;
    int r = agx_http_read_head(&l->http, in, &used, &l->x.head, &err);

    if (r == 0) {
        agx_conn_deadline(l->conn, in.len ? l->server->config.head_ms : l->server->config.idle_ms);
        return 0;
    }
    if (r < 0) {
        http_server_refuse(l, &err);
        return in.len;
    }
    /* Parse again from our own copy, because the connection's buffer is reused. */
    agx_buf_clear(&l->head_bytes);
    if (agx_buf_append(&l->head_bytes, (struct agx_str){ in.ptr, used }) < 0 ||
        agx_http_read_head(&l->http, agx_buf_peek(&l->head_bytes), &used, &l->x.head, NULL) != 1) {
        out_of_memory(l);
        return in.len;
    }
    begin_body(l);
    return used;
}

static size_t read_body(struct link *l, struct agx_str in)
{
    struct agx_error *err = NULL;
    struct agx_str part;
    size_t used = 0;
    int r = agx_http_read_body(&l->http, in, &used, &part, &err);

    if (r < 0) {
        http_server_refuse(l, &err);
        return in.len;
    }
    if (r == AGX_HTTP_BODY_PART) {
        agx_conn_deadline(l->conn, l->server->config.body_ms);
        if (agx_buf_append(&l->body, part) < 0)
            out_of_memory(l);
    } else if (r == AGX_HTTP_BODY_END) {
        l->state = LINK_WAIT;
        l->x.body = agx_buf_peek(&l->body);
        agx_conn_deadline(l->conn, 0);
        l->server->ops->request(l->server->user, &l->x);
    }
    return used;
}

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct link *l = user;
    size_t at = 0;
    bool more = true;

    l->in_data = true;
    while (more && (l->state == LINK_HEAD || l->state == LINK_BODY)) {
        enum link_state before = l->state;
        struct agx_str in = { (const char *)data + at, len - at };
        size_t used = before == LINK_HEAD ? read_head(l, in) : read_body(l, in);

        at += used;
        more = used > 0 || l->state != before;
    }
    l->in_data = false;
    if (!l->conn)
        link_free(l);
    return at;
}

static void on_eof(void *user)
{
    struct link *l = user;

    /* A client that hangs up gets no answer, and half a request is dropped. */
    agx_conn_close(l->conn);
}

static void on_expired(void *user)
{
    struct link *l = user;

    if (l->state == LINK_BODY || (l->state == LINK_HEAD && l->http.scanned > 0)) {
        l->x.head.method = AGX_STR(""); /* it may be the previous request's */
        agx_exchange_answer_detail(&l->x, 408, "the request was not complete in time");
    } else {
        agx_conn_close(l->conn);
    }
}

static void on_closed(void *user, struct agx_error *error)
{
    struct link *l = user;

    agx_error_free(error); /* a disconnected client is not our fault */
    if (l->state == LINK_WAIT)
        l->server->ops->gone(l->server->user, &l->x);
    link_free(l);
}

static const struct agx_conn_ops link_ops = {
    .data = on_data,
    .eof = on_eof,
    .expired = on_expired,
    .closed = on_closed,
};

int agx_http_server_open(struct agx_conn_group *g, const struct agx_http_server_config *config,
                         const struct agx_http_server_ops *ops, void *user,
                         struct agx_http_server **ret_server, struct agx_error **err)
{
    struct agx_http_server *s = calloc(1, sizeof(*s));

    if (!s)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for an HTTP server");
    *s = (struct agx_http_server){ .group = g, .config = *config, .ops = ops, .user = user };
    *ret_server = s;
    return 0;
}

struct agx_http_server *agx_http_server_close(struct agx_http_server *s)
{
    if (!s)
        return NULL;
    s->closing = true;
    AGX_LIST_FOR_EACH (struct link, l, &s->all, node) {
        if (l->conn)
            agx_conn_close(l->conn);
    }
    server_released(s);
    return NULL;
}

int agx_http_server_accept(struct agx_http_server *s, int *take_fd, unsigned from, uint64_t net,
                           struct agx_error **err)
{
    struct link *l = calloc(1, sizeof(*l));
    int r;

    if (!l)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for a connection");
    l->server = s;
    l->x.from = from;
    l->x.net = net;
    l->head_bytes.max = s->config.head_max;
    l->body.max = s->config.body_max;
    agx_http_init(&l->http, AGX_HTTP_SERVER, s->config.head_max, s->config.body_max);
    r = agx_conn_open(s->group, take_fd, &link_ops, l, &l->conn, err);
    if (r < 0) {
        free(l);
        return r;
    }
    agx_list_push_front(&s->all, &l->node);
    agx_conn_deadline(l->conn, s->config.head_ms);
    return 0;
}

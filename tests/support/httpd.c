#include "tests/support/httpd.h"

#include "base/mem.h"
#include "codec/http1.h"
#include "loop/conn.h"
#include "loop/listener.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 64 << 20 };

struct test_httpd_conn {
    struct test_httpd *httpd;
    struct agx_conn *conn;
    struct agx_http http;
    bool in_body;
    struct agx_buf head, body;
    void (*data)(void *user, struct test_httpd_conn *c, struct agx_str bytes); /* upgraded */
    struct test_httpd_conn *prev, *next;
};

struct test_httpd {
    struct agx_loop *loop;
    test_httpd_fn serve;
    void *user;
    bool tcp;
    char dir[32], where[64];
    struct agx_listener *listener;
    struct agx_conn_group *group;
    struct test_httpd_conn *conns;
    unsigned n_conns, n_open, n_requests;
    bool closing;
};

static void httpd_free(struct test_httpd *h)
{
    if (h->n_open > 0 || !h->closing)
        return;
    if (!h->tcp)
        (void)rmdir(h->dir);
    free(h);
}

static void serve(struct test_httpd_conn *c)
{
    struct agx_http_head head;
    struct agx_http again;
    size_t used;
    struct test_httpd_request q = {
        .httpd = c->httpd, .conn = c, .head = agx_buf_peek(&c->head), .body = agx_buf_peek(&c->body)
    };

    agx_http_init(&again, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, BODY_MAX);
    ASSERT_INT(1, agx_http_read_head(&again, q.head, &used, &head, NULL));
    q.method = head.method;
    q.target = head.target;
    q.path = head.path;
    q.query = head.query;
    c->httpd->n_requests++;
    c->httpd->serve(c->httpd->user, &q);
}

/* Does one step of reading; false: it needs more bytes. */
static bool step(struct test_httpd_conn *c, struct agx_str in, size_t *ret_used)
{
    struct agx_str part;
    int r;

    if (!c->in_body) {
        struct agx_http_head head;

        r = agx_http_read_head(&c->http, in, ret_used, &head, NULL);
        ASSERT_OK(r);
        if (r == 0)
            return false;
        c->in_body = true;
        agx_buf_clear(&c->head);
        agx_buf_clear(&c->body);
        ASSERT_OK(agx_buf_append(&c->head, (struct agx_str){ in.ptr, *ret_used }));
        return true;
    }
    r = agx_http_read_body(&c->http, in, ret_used, &part, NULL);
    ASSERT_OK(r);
    if (r == AGX_HTTP_BODY_PART)
        ASSERT_OK(agx_buf_append(&c->body, part));
    if (r == AGX_HTTP_BODY_END) {
        c->in_body = false;
        serve(c);
    }
    return r != AGX_HTTP_BODY_MORE;
}

static size_t on_data(void *user, uint8_t *data, size_t len)
{
    struct test_httpd_conn *c = user;
    size_t at = 0;

    for (;;) {
        size_t used = 0;
        bool more;

        if (c->data) {
            if (len > at)
                c->data(c->httpd->user, c, agx_str_bytes(data + at, len - at));
            return len;
        }
        if (at == len && !c->in_body)
            return at;
        more = step(c, agx_str_bytes(data + at, len - at), &used);
        at += used;
        if (!more)
            return at;
    }
}

static void on_eof(void *user)
{
    struct test_httpd_conn *c = user;

    if (c->data)
        c->data(c->httpd->user, c, (struct agx_str){ 0 });
    else
        agx_conn_close(c->conn);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct test_httpd_conn *c = user;
    struct test_httpd *h = c->httpd;

    agx_error_free(error);
    if (c->prev)
        c->prev->next = c->next;
    else
        h->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    agx_buf_done(&c->head);
    agx_buf_done(&c->body);
    free(c);
    h->n_open--;
    httpd_free(h);
}

static const struct agx_conn_ops conn_ops = { .data = on_data, .eof = on_eof, .closed = on_closed };

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    struct test_httpd *h = user;
    struct test_httpd_conn *c = agx_new(struct test_httpd_conn);

    (void)peer;
    c->httpd = h;
    c->head = (struct agx_buf)AGX_BUF_INIT(AGX_HTTP_HEAD_MAX);
    c->body = (struct agx_buf)AGX_BUF_INIT(BODY_MAX);
    agx_http_init(&c->http, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, BODY_MAX);
    ASSERT_OK(agx_conn_open(h->group, &fd, &conn_ops, c, &c->conn, NULL));
    c->next = h->conns;
    if (c->next)
        c->next->prev = c;
    h->conns = c;
    h->n_conns++;
    h->n_open++;
}

void test_httpd_back(struct test_httpd *h)
{
    if (h->tcp) {
        ASSERT_OK(agx_listener_open_tcp(h->loop, "127.0.0.1", 0, &h->listener, NULL));
        (void)snprintf(h->where, sizeof(h->where), "http://127.0.0.1:%u",
                       agx_addr_port(agx_listener_peek_addr(h->listener)));
    } else {
        ASSERT_OK(agx_listener_open_unix(h->loop, h->where, &h->listener, NULL));
    }
    ASSERT_OK(agx_listener_start(h->listener, on_accept, h, NULL));
}

struct test_httpd *test_httpd_open(struct agx_loop *l, bool tcp, test_httpd_fn serve_fn, void *user)
{
    struct agx_conn_config config = AGX_CONN_CONFIG_INIT;
    struct test_httpd *h = agx_new(struct test_httpd);

    h->loop = l;
    h->tcp = tcp;
    h->serve = serve_fn;
    h->user = user;
    if (!tcp) {
        (void)snprintf(h->dir, sizeof(h->dir), "/tmp/agx-httpd-XXXXXX");
        ASSERT_NOT_NULL(mkdtemp(h->dir));
        (void)snprintf(h->where, sizeof(h->where), "%s/socket", h->dir);
    }
    ASSERT_OK(agx_conn_group_open(l, &config, &h->group, NULL));
    test_httpd_back(h);
    return h;
}

const char *test_httpd_where(const struct test_httpd *h)
{
    return h->where;
}

void test_httpd_away(struct test_httpd *h)
{
    h->listener = agx_listener_close(h->listener);
    for (struct test_httpd_conn *c = h->conns; c; c = c->next)
        agx_conn_abort(c->conn, NULL);
}

struct test_httpd *test_httpd_close(struct test_httpd *h)
{
    h->listener = agx_listener_close(h->listener);
    h->group = agx_conn_group_close(h->group);
    h->closing = true;
    httpd_free(h);
    return NULL;
}

unsigned test_httpd_conns(const struct test_httpd *h)
{
    return h->n_conns;
}

unsigned test_httpd_open_conns(const struct test_httpd *h)
{
    return h->n_open;
}

unsigned test_httpd_requests(const struct test_httpd *h)
{
    return h->n_requests;
}

bool test_httpd_is(const struct test_httpd_request *q, const char *method, const char *path)
{
    return agx_str_eq(q->method, agx_str_from(method)) && agx_str_eq(q->path, agx_str_from(path));
}

struct agx_str test_httpd_header(const struct test_httpd_request *q, const char *name)
{
    struct agx_http again;
    struct agx_http_head head;
    struct agx_str value = { 0 };
    size_t used;

    agx_http_init(&again, AGX_HTTP_SERVER, AGX_HTTP_HEAD_MAX, BODY_MAX);
    ASSERT_INT(1, agx_http_read_head(&again, q->head, &used, &head, NULL));
    (void)agx_http_header_get(&head, agx_str_from(name), &value);
    return value;
}

void test_httpd_send(struct test_httpd_conn *c, struct agx_str bytes)
{
    ASSERT_OK(agx_buf_append(agx_conn_out(c->conn), bytes));
}

void test_httpd_answer(struct test_httpd_conn *c, unsigned status, const char *body)
{
    struct agx_buf *out = agx_conn_out(c->conn);
    bool bodyless = status == 204 || status == 304;

    ASSERT_OK(agx_http_write_status(out, status));
    ASSERT_OK(agx_http_write_header(out, AGX_STR("Content-Type"), AGX_STR("application/json")));
    if (!bodyless)
        ASSERT_OK(agx_http_write_length(out, strlen(body)));
    ASSERT_OK(agx_http_write_end(out));
    if (!bodyless)
        test_httpd_send(c, agx_str_from(body));
}

void test_httpd_begin(struct test_httpd_conn *c, unsigned status)
{
    struct agx_buf *out = agx_conn_out(c->conn);

    ASSERT_OK(agx_http_write_status(out, status));
    ASSERT_OK(agx_http_write_header(out, AGX_STR("Transfer-Encoding"), AGX_STR("chunked")));
    ASSERT_OK(agx_http_write_end(out));
}

void test_httpd_chunk(struct test_httpd_conn *c, struct agx_str bytes)
{
    ASSERT_OK(agx_buf_printf(agx_conn_out(c->conn), "%zx\r\n", bytes.len));
    test_httpd_send(c, bytes);
    test_httpd_send(c, AGX_STR("\r\n"));
}

void test_httpd_finish(struct test_httpd_conn *c)
{
    test_httpd_send(c, AGX_STR("0\r\n\r\n"));
}

void test_httpd_upgrade(struct test_httpd_conn *c,
                        void (*data)(void *user, struct test_httpd_conn *c, struct agx_str bytes))
{
    c->data = data;
    test_httpd_send(c, AGX_STR("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\n"
                               "Upgrade: tcp\r\n\r\n"));
}

void test_httpd_hang_up(struct test_httpd_conn *c)
{
    agx_conn_close(c->conn);
}

void test_httpd_cut(struct test_httpd_conn *c)
{
    agx_conn_abort(c->conn, NULL);
}

#include "loop/conn_internal.h"
#include "runtime/http_server.h"
#include "tests/support/edge.h"

/* What the server's owner does, and saw. */
struct owner {
    struct edge edge;
    struct agx_exchange *waiting; /* answered later */
    bool defer, refuse_head, take, share;
    unsigned n_head, n_request, n_gone;
    char body[100], taken[100];
};

static void on_head(void *user, struct agx_exchange *x)
{
    struct owner *o = user;

    o->n_head++;
    if (o->share)
        x->readable_by = AGX_STR("http://page");
    if (o->refuse_head)
        agx_exchange_answer_detail(x, 401, "no");
}

static size_t on_taken_data(void *user, uint8_t *data, size_t len)
{
    struct owner *o = user;

    snprintf(o->taken, sizeof(o->taken), "%.*s", (int)len, (const char *)data);
    return len;
}

static void on_taken_closed(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

static const struct agx_conn_ops taken_ops = { .data = on_taken_data, .closed = on_taken_closed };

static void on_request(void *user, struct agx_exchange *x)
{
    struct owner *o = user;

    o->n_request++;
    snprintf(o->body, sizeof(o->body), "%.*s", AGX_STR_ARG(x->body));
    if (o->take) {
        struct agx_conn *c = agx_exchange_take_conn(x, &taken_ops, o);

        ASSERT_OK(agx_buf_append(agx_conn_out(c), AGX_STR("another protocol")));
    } else if (o->defer) {
        o->waiting = x;
    } else {
        agx_exchange_answer(x,
                            &(struct agx_http_response){ .status = 200, .body = AGX_STR("fine") });
    }
}

static void on_gone(void *user, struct agx_exchange *x)
{
    struct owner *o = user;

    ASSERT_TRUE(o->waiting == x);
    o->waiting = NULL;
    o->n_gone++;
}

static const struct agx_http_server_ops ops = { .head = on_head,
                                                .request = on_request,
                                                .gone = on_gone };

static const struct agx_http_server_config defaults = AGX_HTTP_SERVER_CONFIG_INIT;

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

TEST(http_server_answers_requests_of_one_connection_in_order)
{
    struct owner o = { 0 };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" GET);
    edge_expect(&o.edge, fd, "fine", got, sizeof(got));
    while (o.n_request < 2)
        edge_turn(&o.edge);
    ASSERT_CSTR("", o.body);
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_lets_a_page_read_the_answers_to_those_requests_for_which_it_was_said)
{
    struct owner o = { .share = true };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, GET);
    edge_expect(&o.edge, fd, "fine", got, sizeof(got));
    ASSERT_TRUE(strstr(got, "Access-Control-Allow-Origin: http://page\r\n"));
    ASSERT_TRUE(strstr(got, "Vary: Origin\r\n"));
    o.share = false;
    edge_send(fd, GET);
    edge_expect(&o.edge, fd, "fine", got, sizeof(got));
    ASSERT_TRUE(!strstr(got, "Access-Control") && !strstr(got, "Vary"));
    o.share = true;
    o.refuse_head = true;
    edge_send(fd, GET);
    edge_expect(&o.edge, fd, "401", got, sizeof(got));
    ASSERT_TRUE(strstr(got, "Access-Control-Allow-Origin: http://page\r\n"));
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_says_continue_only_when_the_head_was_not_refused)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                               "Content-Length: 5\r\n\r\n";
    struct owner o = { 0 };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, head);
    edge_expect(&o.edge, fd, "HTTP/1.1 100 Continue\r\n\r\n", got, sizeof(got));
    edge_send(fd, "hello");
    edge_expect(&o.edge, fd, "fine", got, sizeof(got));
    ASSERT_CSTR("hello", o.body);
    o.refuse_head = true;
    edge_send(fd, head);
    edge_expect(&o.edge, fd, "{\"detail\":\"no\"}", got, sizeof(got));
    ASSERT_NULL(strstr(got, "100 Continue"));
    ASSERT_NOT_NULL(strstr(got, "401 Unauthorized\r\n"));
    edge_expect_end(&o.edge, fd);
    ASSERT_UINT(1, o.n_request);
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_answer_to_head_has_a_length_and_no_body)
{
    struct owner o = { 0 };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, "HEAD / HTTP/1.0\r\n\r\n");
    edge_expect(&o.edge, fd, "\r\n\r\n", got, sizeof(got));
    edge_expect_end(&o.edge, fd);
    ASSERT_NOT_NULL(strstr(got, "Content-Length: 4\r\n"));
    ASSERT_NOT_NULL(strstr(got, "Connection: close\r\n"));
    ASSERT_NULL(strstr(got, "fine"));
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_holds_the_next_request_until_the_one_before_is_answered)
{
    struct owner o = { .defer = true };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, GET GET);
    while (!o.waiting)
        edge_turn(&o.edge);
    for (int i = 0; i < 10; i++)
        edge_turn(&o.edge);
    ASSERT_UINT(1, o.n_request);
    o.defer = false;
    agx_exchange_answer_detail(AGX_TAKE_PTR(o.waiting), 200, "late");
    edge_expect(&o.edge, fd, "fine", got, sizeof(got));
    ASSERT_TRUE(strstr(got, "late") < strstr(got, "fine"));
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_tells_when_the_client_of_a_waiting_request_is_gone)
{
    struct owner o = { .defer = true };
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, GET);
    while (!o.waiting)
        edge_turn(&o.edge);
    close(fd);
    while (o.n_gone == 0)
        edge_turn(&o.edge);
    ASSERT_UINT(0, o.edge.group->count);
    edge_close(&o.edge);
}

TEST(http_server_that_closes_tells_of_those_that_wait)
{
    struct owner o = { .defer = true };
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, GET);
    while (!o.waiting)
        edge_turn(&o.edge);
    edge_close(&o.edge);
    ASSERT_UINT(1, o.n_gone);
    close(fd);
}

TEST(http_server_ends_a_request_that_takes_too_long_with_408_and_an_idle_connection_silently)
{
    struct agx_http_server_config config = defaults;
    struct owner o = { 0 };
    char got[4096] = "";
    int slow_head, slow_body, idle;

    config.head_ms = config.body_ms = config.idle_ms = 20;
    edge_open(&o.edge, &config, &ops, &o);
    slow_head = edge_connect(&o.edge);
    slow_body = edge_connect(&o.edge);
    idle = edge_connect(&o.edge);
    edge_send(slow_head, "GET / HT");
    edge_send(slow_body, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhel");
    edge_expect(&o.edge, slow_head, "408 Request Timeout", got, sizeof(got));
    edge_expect(&o.edge, slow_body, "408 Request Timeout", got, sizeof(got));
    got[0] = '\0';
    while (edge_recv(idle, got, sizeof(got)))
        edge_turn(&o.edge);
    ASSERT_CSTR("", got);
    ASSERT_UINT(0, o.n_request);
    close(slow_head);
    close(slow_body);
    close(idle);
    edge_close(&o.edge);
}

TEST(http_server_refuses_a_body_that_is_too_long_with_413)
{
    struct agx_http_server_config config = defaults;
    struct owner o = { 0 };
    char got[4096];
    int fd;

    config.body_max = 4;
    edge_open(&o.edge, &config, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello");
    edge_expect(&o.edge, fd, "413 Content Too Large", got, sizeof(got));
    edge_expect_end(&o.edge, fd);
    close(fd);
    edge_close(&o.edge);
}

TEST(http_server_connection_that_is_taken_over_brings_its_bytes_along)
{
    struct owner o = { .take = true };
    char got[4096];
    int fd;

    edge_open(&o.edge, &defaults, &ops, &o);
    fd = edge_connect(&o.edge);
    edge_send(fd, GET "early bytes");
    edge_expect(&o.edge, fd, "another protocol", got, sizeof(got));
    while (!o.taken[0])
        edge_turn(&o.edge);
    ASSERT_CSTR("early bytes", o.taken);
    close(fd);
    edge_close(&o.edge);
}

#include "base/buf.h"
#include "fetch/duplex.h"
#include "tests/support/httpd.h"
#include "tests/support/loop.h"

struct fixture {
    struct agx_loop *loop;
    struct test_httpd *httpd;
    struct agx_fetch *fetch;
    struct agx_duplex *duplex;
    struct test_httpd_conn *held;
    enum { UPGRADE, HOLD, REFUSE, HANG_UP, OLD_STYLE } answer;
    struct agx_buf seen; /* the request */
    struct agx_buf sent; /* what the server got after it */
    bool sent_end;
    struct agx_buf got;
    unsigned n_open, n_drained, n_refused, n_closed, status;
    char body[100];
    struct agx_error *error;
    size_t take; /* bytes that data() takes before it pauses; 0: all */
    enum { NOWHERE, IN_OPEN, IN_DATA, IN_DRAINED } close_in;
    bool close_all; /* the fetch, too */
};

static void end_in(struct fixture *f, int place)
{
    if ((int)f->close_in != place)
        return;
    if (f->close_all)
        f->fetch = agx_fetch_close(f->fetch);
    else
        agx_duplex_close(f->duplex);
    f->duplex = NULL;
}

static void on_open(void *user)
{
    struct fixture *f = user;

    f->n_open++;
    end_in(f, IN_OPEN);
}

static void on_refused(void *user, unsigned status, struct agx_str body)
{
    struct fixture *f = user;

    f->duplex = NULL;
    f->n_refused++;
    f->status = status;
    (void)snprintf(f->body, sizeof(f->body), "%.*s", AGX_STR_ARG(body));
}

static size_t on_data(void *user, struct agx_str bytes)
{
    struct fixture *f = user;

    ASSERT_UINT(1, f->n_open);
    if (f->take > 0 && f->take < bytes.len) {
        bytes.len = f->take;
        agx_duplex_pause(f->duplex, true);
    }
    ASSERT_OK(agx_buf_append(&f->got, bytes));
    end_in(f, IN_DATA);
    return bytes.len;
}

static void on_drained(void *user)
{
    struct fixture *f = user;

    f->n_drained++;
    end_in(f, IN_DRAINED);
}

static void on_closed(void *user, struct agx_error *error)
{
    struct fixture *f = user;

    f->duplex = NULL;
    f->n_closed++;
    f->error = error;
}

static const struct agx_duplex_ops ops = { on_open, on_refused, on_data, on_drained, on_closed };

static void on_sent(void *user, struct test_httpd_conn *c, struct agx_str bytes)
{
    struct fixture *f = user;

    (void)c;
    f->sent_end = bytes.len == 0;
    ASSERT_OK(agx_buf_append(&f->sent, bytes));
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    f->held = q->conn;
    agx_buf_clear(&f->seen);
    ASSERT_OK(agx_buf_append(&f->seen, q->head));
    ASSERT_OK(agx_buf_append(&f->seen, q->body));
    if (f->answer == UPGRADE)
        test_httpd_upgrade(q->conn, on_sent);
    else if (f->answer == REFUSE)
        test_httpd_answer(q->conn, 409, "{\"message\":\"is stopped\"}");
    else if (f->answer == HANG_UP)
        test_httpd_hang_up(q->conn);
    else if (f->answer == OLD_STYLE)
        test_httpd_send(q->conn, AGX_STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                                         "Content-Type: application/vnd.docker.raw-stream\r\n"
                                         "\r\nold"));
}

static void setup_at(struct fixture *f, bool tcp, int answer)
{
    struct agx_fetch_config config = AGX_FETCH_CONFIG_INIT;

    *f = (struct fixture){ .loop = test_loop_open(),
                           .answer = answer,
                           .seen = AGX_BUF_INIT(1 << 20),
                           .sent = AGX_BUF_INIT(64 << 20),
                           .got = AGX_BUF_INIT(64 << 20) };
    f->httpd = test_httpd_open(f->loop, tcp, serve, f);
    config.endpoint.base = tcp ? test_httpd_where(f->httpd) : "http://test/prefix";
    config.endpoint.unix_socket = tcp ? NULL : test_httpd_where(f->httpd);
    ASSERT_OK(agx_fetch_open(f->loop, &config, &f->fetch, NULL));
}

static void teardown(struct fixture *f)
{
    f->fetch = agx_fetch_close(f->fetch);
    f->httpd = test_httpd_close(f->httpd);
    test_loop_run(f->loop);
    test_loop_close(f->loop);
    f->error = agx_error_free(f->error);
    agx_buf_done(&f->seen);
    agx_buf_done(&f->sent);
    agx_buf_done(&f->got);
}

static int open_to(struct fixture *f, const struct agx_duplex_request *q)
{
    return agx_duplex_open(f->fetch, q, &ops, f, &f->duplex, NULL);
}

static void open_duplex(struct fixture *f)
{
    static const char *const headers[] = { "X-A: b", "X-C:d", NULL };

    ASSERT_OK(open_to(f, &(struct agx_duplex_request){ .method = "POST",
                                                       .path = "/x?y=1",
                                                       .headers = headers,
                                                       .protocol = "tcp",
                                                       .body = AGX_STR("{}"),
                                                       .open_ms = 20000,
                                                       .out_max = 8 << 20,
                                                       .body_max = 20 }));
    ASSERT_UINT(0, f->n_open + f->n_closed);
}

#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv((f)->loop), UV_RUN_NOWAIT)

TEST(duplex_asks_for_an_upgrade_and_moves_bytes_both_ways)
{
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    open_duplex(&f);
    UNTIL(&f, f.n_open);
    ASSERT_STR(
        AGX_STR("POST /prefix/x?y=1 HTTP/1.1\r\nHost: test\r\nUser-Agent: agentix/" AGX_VERSION
                "\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nX-A: b\r\nX-C: d\r\n"
                "Content-Length: 2\r\n\r\n{}"),
        agx_buf_peek(&f.seen));
    ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("to "), NULL));
    ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("you"), NULL));
    ASSERT_UINT(6, agx_duplex_queued(f.duplex));
    UNTIL(&f, f.sent.len == 6);
    ASSERT_UINT(1, f.n_drained);
    ASSERT_UINT(0, agx_duplex_queued(f.duplex));
    ASSERT_STR(AGX_STR("to you"), agx_buf_peek(&f.sent));
    test_httpd_send(f.held, AGX_STR("to me"));
    UNTIL(&f, f.got.len == 5);
    test_httpd_hang_up(f.held);
    UNTIL(&f, f.n_closed);
    ASSERT_NULL(f.error);
    teardown(&f);
}

TEST(duplex_over_tcp_keeps_what_is_written_before_it_is_open)
{
    struct fixture f;

    setup_at(&f, true, HOLD);
    open_duplex(&f);
    ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("early"), NULL));
    UNTIL(&f, f.held);
    for (int i = 0; i < 5; i++)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    ASSERT_UINT(0, f.sent.len);
    test_httpd_upgrade(f.held, on_sent);
    test_httpd_send(f.held, AGX_STR("at once")); /* comes with the answer's head */
    UNTIL(&f, f.sent.len == 5 && f.got.len == 7);
    teardown(&f);
    ASSERT_UINT(0, f.n_closed);
}

TEST(duplex_ends_one_direction_and_reads_on)
{
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    open_duplex(&f);
    ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("last"), NULL));
    ASSERT_OK(agx_duplex_end(f.duplex, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_duplex_write(f.duplex, AGX_STR("x"), NULL));
    UNTIL(&f, f.sent_end);
    ASSERT_STR(AGX_STR("last"), agx_buf_peek(&f.sent));
    test_httpd_send(f.held, AGX_STR("more"));
    UNTIL(&f, f.got.len == 4);
    ASSERT_UINT(0, f.n_closed);
    teardown(&f);
}

TEST(duplex_that_is_refused_tells_status_and_body)
{
    struct fixture f;

    setup_at(&f, false, REFUSE);
    open_duplex(&f);
    UNTIL(&f, f.n_refused);
    ASSERT_UINT(409, f.status);
    ASSERT_CSTR("{\"message\":\"is stopp", f.body); /* as much as body_max allows */
    teardown(&f);
    ASSERT_UINT(0, f.n_closed + f.n_open);
}

TEST(duplex_takes_an_answer_of_200_without_a_length_as_a_stream)
{
    struct fixture f;

    setup_at(&f, false, OLD_STYLE);
    open_duplex(&f);
    UNTIL(&f, f.got.len == 3);
    ASSERT_UINT(1, f.n_open);
    teardown(&f);
}

TEST(duplex_without_an_answer_fails)
{
    struct fixture f;

    setup_at(&f, false, HANG_UP);
    open_duplex(&f);
    UNTIL(&f, f.n_closed);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    teardown(&f);

    setup_at(&f, false, HOLD);
    open_duplex(&f);
    UNTIL(&f, f.held);
    test_httpd_send(f.held, AGX_STR("SSH-2.0-x\r\n\r\n"));
    UNTIL(&f, f.n_closed);
    ASSERT_INT(AGX_DATA_LOSS, f.error->code);
    teardown(&f);
}

TEST(duplex_without_a_server_says_why)
{
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    test_httpd_away(f.httpd);
    open_duplex(&f);
    UNTIL(&f, f.n_closed);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_INT(ENOENT, f.error->sys_errno);
    test_httpd_back(f.httpd);
    teardown(&f);
}

TEST(duplex_that_is_not_answered_in_time_ends)
{
    struct fixture f;

    setup_at(&f, false, HOLD);
    ASSERT_OK(open_to(&f, &(struct agx_duplex_request){
                              .method = "POST", .path = "/x", .protocol = "tcp", .open_ms = 30 }));
    UNTIL(&f, f.n_closed);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    ASSERT_MESSAGE(f.error, "POST '/x': no answer within 30 ms");
    teardown(&f);
}

TEST(duplex_that_breaks_tells_so_unless_it_is_an_end)
{
    struct fixture f;

    setup_at(&f, true, UPGRADE);
    open_duplex(&f);
    UNTIL(&f, f.n_open);
    /* Bytes that the server has not read make its end a reset. */
    test_httpd_away(f.httpd);
    UNTIL(&f, f.n_closed);
    ASSERT_UINT(1, f.n_closed);
    test_httpd_back(f.httpd);
    teardown(&f);
}

TEST(duplex_whose_peer_is_gone_before_it_took_all_gives_what_that_sent)
{
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    open_duplex(&f);
    UNTIL(&f, f.n_open);
    agx_duplex_pause(f.duplex, true);
    test_httpd_send(f.held, AGX_STR("last words"));
    (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT); /* they leave */
    test_httpd_cut(f.held);
    UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
    ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("too late"), NULL));
    UNTIL(&f, f.n_closed > 0 || agx_duplex_queued(f.duplex) == 0);
    ASSERT_UINT(0, f.n_closed);
    agx_duplex_pause(f.duplex, false);
    UNTIL(&f, f.n_closed);
    ASSERT_NULL(f.error);
    ASSERT_STR(AGX_STR("last words"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(duplex_that_is_paused_gives_nothing_and_later_all)
{
    _cleanup_buf_ struct agx_buf large = AGX_BUF_INIT(1 << 20);
    struct fixture f;

    for (unsigned i = 0; i < 300000; i++)
        ASSERT_OK(agx_buf_push(&large, (uint8_t)(i * 7)));
    setup_at(&f, false, UPGRADE);
    f.take = 10000;
    open_duplex(&f);
    UNTIL(&f, f.n_open);
    test_httpd_send(f.held, agx_buf_peek(&large));
    while (f.got.len < large.len) {
        size_t before = f.got.len;

        UNTIL(&f, f.got.len > before);
        before = f.got.len;
        for (int i = 0; i < 3; i++)
            (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
        if (f.got.len < large.len)
            ASSERT_UINT(before, f.got.len);
        agx_duplex_pause(f.duplex, false);
        ASSERT_UINT(before, f.got.len); /* never inside a call */
    }
    ASSERT_STR(agx_buf_peek(&large), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(duplex_refuses_more_than_fits_and_sends_all_that_was_taken)
{
    static const uint8_t block[64 << 10];
    struct agx_str bytes = agx_str_bytes(block, sizeof(block));
    struct fixture f;
    size_t n = 0;

    setup_at(&f, false, UPGRADE);
    open_duplex(&f);
    while (agx_duplex_write(f.duplex, bytes, NULL) == 0)
        n += bytes.len;
    ASSERT_UINT(8 << 20, n);
    UNTIL(&f, f.sent.len == n);
    ASSERT_UINT(1, f.n_drained);
    ASSERT_OK(agx_duplex_write(f.duplex, bytes, NULL));
    UNTIL(&f, f.sent.len == n + bytes.len);
    teardown(&f);
}

TEST(duplex_with_a_header_that_would_split_the_head_is_refused)
{
    static const char *const headers[] = { "X-A: b\r\nX-Evil: c", NULL };
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    ASSERT_CODE(
        AGX_INVALID_ARGUMENT,
        open_to(&f, &(struct agx_duplex_request){
                        .method = "POST", .path = "/x", .protocol = "tcp", .headers = headers }));
    teardown(&f);
}

TEST(duplex_may_be_closed_in_its_callbacks_and_its_fetch_too)
{
    for (int place = IN_OPEN; place <= IN_DRAINED; place++) {
        for (int all = 0; all < 2; all++) {
            struct fixture f;

            setup_at(&f, false, UPGRADE);
            f.close_in = place;
            f.close_all = all;
            open_duplex(&f);
            ASSERT_OK(agx_duplex_write(f.duplex, AGX_STR("x"), NULL));
            UNTIL(&f, f.held);
            if (place != IN_DRAINED)
                test_httpd_send(f.held, AGX_STR("y"));
            UNTIL(&f, !f.duplex);
            UNTIL(&f, test_httpd_open_conns(f.httpd) == 0 || f.sent_end);
            ASSERT_UINT(0, f.n_closed);
            teardown(&f);
        }
    }
}

static void on_fetched(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    ASSERT_NULL(error);
    ASSERT_UINT(409, answer->status);
    ++*(unsigned *)user;
}

TEST(duplexes_outlive_more_calls_than_connections_are_kept)
{
    enum { N = 2 * AGX_FETCH_IDLE_MAX };
    struct agx_duplex *all[N];
    unsigned n_fetched = 0;
    struct fixture f;

    setup_at(&f, false, UPGRADE);
    for (unsigned i = 0; i < N; i++) {
        open_duplex(&f);
        all[i] = f.duplex;
        UNTIL(&f, f.n_open == 1);
        f.n_open = 0;
    }
    f.answer = REFUSE;
    for (unsigned i = 0; i < N; i++)
        ASSERT_OK(agx_fetch_start(
            f.fetch,
            &(struct agx_fetch_request){ .method = "GET", .path = "/a", .done = on_fetched },
            &n_fetched, NULL, NULL));
    UNTIL(&f, n_fetched == N);
    for (unsigned i = 0; i < N; i++)
        ASSERT_OK(agx_duplex_write(all[i], AGX_STR("z"), NULL));
    UNTIL(&f, f.sent.len == N);
    ASSERT_UINT(0, f.n_closed);
    teardown(&f);
}

#include "base/buf.h"
#include "fetch/fetch.h"
#include "tests/support/httpd.h"
#include "tests/support/loop.h"

/* A client and the server that it talks to, in one loop. */
struct fixture {
    struct agx_loop *loop;
    struct test_httpd *httpd;
    struct agx_fetch *fetch;
    struct agx_fetch_call *call;
    struct test_httpd_conn *held; /* a request that was not answered */
    unsigned n_done, n_begun, n_pieces;
    unsigned status;
    struct agx_error *error;
    struct agx_buf got, seen; /* of the answer; of the request as the server saw it */
    char header[64], begun_header[64];
    unsigned begun_status;
    bool pause;               /* at each piece */
    size_t upload, upload_at; /* bytes that `read` gives */
    int upload_fail;          /* and what it says then */
    bool upload_waits;
    unsigned n_waits;
    enum { END_NOT, END_IN_BEGUN, END_IN_PIECE, END_IN_DONE } cancel, close;
    bool again; /* done() starts another */
};

static void start(struct fixture *f, const struct agx_fetch_request *request);

static void end_in(struct fixture *f, int place)
{
    if ((int)f->cancel == place) {
        agx_fetch_cancel(f->call);
        agx_loop_stop(f->loop);
    }
    if ((int)f->close == place) {
        f->fetch = agx_fetch_close(f->fetch);
        agx_loop_stop(f->loop);
    }
}

static void on_begun(void *user, const struct agx_fetch_answer *answer)
{
    struct fixture *f = user;
    const char *header = agx_fetch_answer_header(answer, "x-test");

    ASSERT_UINT(0, f->n_begun++);
    ASSERT_UINT(0, answer->body.len);
    f->begun_status = answer->status;
    (void)snprintf(f->begun_header, sizeof(f->begun_header), "%s", header ? header : "");
    end_in(f, END_IN_BEGUN);
}

static void on_piece(void *user, struct agx_str bytes)
{
    struct fixture *f = user;

    ASSERT_UINT(1, f->n_begun);
    f->n_pieces++;
    ASSERT_OK(agx_buf_append(&f->got, bytes));
    if (f->pause)
        agx_fetch_pause(f->call);
    end_in(f, END_IN_PIECE);
}

static void on_done(void *user, const struct agx_fetch_answer *answer, struct agx_error *error)
{
    struct fixture *f = user;
    const char *header = agx_fetch_answer_header(answer, "x-test");

    f->n_done++;
    f->status = answer->status;
    agx_error_free(f->error);
    f->error = error;
    ASSERT_OK(agx_buf_append(&f->got, answer->body));
    (void)snprintf(f->header, sizeof(f->header), "%s", header ? header : "");
    if (f->again) {
        f->again = false;
        start(f, &(struct agx_fetch_request){ .method = "GET", .path = "/echo" });
        return;
    }
    agx_loop_stop(f->loop);
    end_in(f, END_IN_DONE);
}

static ssize_t on_read(void *user, void *buf, size_t size)
{
    struct fixture *f = user;
    size_t n = AGX_MIN(size, f->upload - f->upload_at);

    if (n == 0 && f->upload_fail)
        return f->upload_fail;
    if (f->upload_waits) {
        f->upload_waits = false;
        f->n_waits++;
        return -AGX_UNAVAILABLE;
    }
    memset(buf, 'u', n);
    f->upload_at += n;
    return (ssize_t)n;
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    agx_buf_clear(&f->seen);
    ASSERT_OK(agx_buf_printf(&f->seen, "%.*s %.*s %.*s %zu", AGX_STR_ARG(q->method),
                             AGX_STR_ARG(q->target), AGX_STR_ARG(test_httpd_header(q, "X-Ask")),
                             q->body.len));
    f->held = q->conn;
    if (test_httpd_is(q, "GET", "/missing"))
        test_httpd_answer(q->conn, 404, "{\"message\":\"no\"}");
    else if (test_httpd_is(q, "GET", "/hang") || test_httpd_is(q, "GET", "/stream"))
        return;
    else if (test_httpd_is(q, "POST", "/cut") || test_httpd_is(q, "GET", "/cut"))
        test_httpd_cut(q->conn);
    else
        test_httpd_send(
            q->conn, AGX_STR("HTTP/1.1 200 OK\r\nX-Test: yes\r\nContent-Length: 5\r\n\r\nhello"));
}

static void setup_with(struct fixture *f, bool tcp, size_t connections_max)
{
    struct agx_fetch_config config = AGX_FETCH_CONFIG_INIT;

    *f = (struct fixture){ .loop = test_loop_open(),
                           .got = AGX_BUF_INIT((size_t)64 << 20),
                           .seen = AGX_BUF_INIT(4096) };
    f->httpd = test_httpd_open(f->loop, tcp, serve, f);
    config.endpoint.base = tcp ? test_httpd_where(f->httpd) : "http://test";
    config.endpoint.unix_socket = tcp ? NULL : test_httpd_where(f->httpd);
    config.connections_max = connections_max;
    ASSERT_OK(agx_fetch_open(f->loop, &config, &f->fetch, NULL));
}

static void setup_at(struct fixture *f, bool tcp)
{
    setup_with(f, tcp, AGX_FETCH_CONNECTIONS_MAX);
}

static void setup(struct fixture *f)
{
    setup_at(f, false);
}

static void teardown(struct fixture *f)
{
    f->fetch = agx_fetch_close(f->fetch);
    f->httpd = test_httpd_close(f->httpd);
    test_loop_run(f->loop);
    test_loop_close(f->loop);
    f->error = agx_error_free(f->error);
    agx_buf_done(&f->got);
    agx_buf_done(&f->seen);
}

static void start(struct fixture *f, const struct agx_fetch_request *request)
{
    struct agx_fetch_request q = *request;
    unsigned before = f->n_done;

    q.done = on_done;
    f->call = NULL;
    ASSERT_OK(agx_fetch_start(f->fetch, &q, f, &f->call, NULL));
    ASSERT_UINT(before, f->n_done);
}

static void run(struct fixture *f, const struct agx_fetch_request *request)
{
    agx_buf_clear(&f->got);
    start(f, request);
    test_loop_run_until_stop(f->loop);
}

/* Turns the loop until the condition holds; the test's own time limit ends it otherwise. */
#define UNTIL(f, condition)                                                                        \
    while (!(condition))                                                                           \
    (void)uv_run(agx_loop_uv((f)->loop), UV_RUN_NOWAIT)

static const struct agx_fetch_request stream = {
    .method = "GET", .path = "/stream", .begun = on_begun, .piece = on_piece
};

TEST(fetch_of_a_get_gives_status_headers_and_body)
{
    static const char *const headers[] = { "X-Ask: 1", NULL };
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a?b=c", .headers = headers });
    ASSERT_NULL(f.error);
    ASSERT_UINT(200, f.status);
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&f.got));
    ASSERT_CSTR("yes", f.header);
    ASSERT_STR(AGX_STR("GET /a?b=c 1 0"), agx_buf_peek(&f.seen));
    teardown(&f);
}

TEST(fetch_over_tcp_works_the_same)
{
    struct fixture f;

    setup_at(&f, true);
    run(&f, &(struct agx_fetch_request){ .method = "DELETE", .path = "/a" });
    ASSERT_NULL(f.error);
    ASSERT_UINT(200, f.status);
    ASSERT_STR(AGX_STR("DELETE /a  0"), agx_buf_peek(&f.seen));
    teardown(&f);
}

TEST(fetch_of_an_error_status_is_an_answer_with_its_body)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){
                .method = "GET", .path = "/missing", .begun = on_begun, .piece = on_piece });
    ASSERT_NULL(f.error);
    ASSERT_UINT(404, f.status);
    ASSERT_UINT(0, f.n_begun);
    ASSERT_STR(AGX_STR("{\"message\":\"no\"}"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(fetch_of_a_head_has_headers_and_no_body)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "HEAD", .path = "/a" });
    ASSERT_NULL(f.error);
    ASSERT_UINT(200, f.status);
    ASSERT_CSTR("yes", f.header);
    ASSERT_UINT(0, f.got.len);
    teardown(&f);
}

TEST(fetch_sends_a_body_and_an_empty_post)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){
                .method = "POST", .path = "/a", .body = AGX_STR("{\"x\":\0 1}") });
    ASSERT_STR(AGX_STR("POST /a  9"), agx_buf_peek(&f.seen));
    run(&f, &(struct agx_fetch_request){ .method = "POST", .path = "/b" });
    ASSERT_STR(AGX_STR("POST /b  0"), agx_buf_peek(&f.seen));
    run(&f, &(struct agx_fetch_request){ .method = "PUT", .path = "/c", .body = AGX_STR("x") });
    ASSERT_STR(AGX_STR("PUT /c  1"), agx_buf_peek(&f.seen));
    ASSERT_UINT(3, f.n_done);
    teardown(&f);
}

TEST(fetch_of_gets_uses_one_connection_and_posts_begin_on_new_ones)
{
    struct fixture f;

    setup(&f);
    for (int i = 0; i < 3; i++)
        run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    ASSERT_UINT(1, test_httpd_conns(f.httpd));
    for (int i = 0; i < 2; i++)
        run(&f, &(struct agx_fetch_request){ .method = "POST", .path = "/a" });
    ASSERT_UINT(3, test_httpd_conns(f.httpd));
    teardown(&f);
}

TEST(fetch_of_a_post_whose_connection_breaks_is_not_sent_again)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    run(&f, &(struct agx_fetch_request){ .method = "POST", .path = "/cut" });
    ASSERT_UINT(0, f.status);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_MESSAGE(f.error, "POST '/cut'");
    ASSERT_UINT(2, test_httpd_requests(f.httpd));
    teardown(&f);
}

TEST(fetch_of_a_get_on_a_connection_that_died_meanwhile_succeeds)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    test_httpd_hang_up(f.held);
    UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    ASSERT_NULL(f.error);
    ASSERT_UINT(2, test_httpd_conns(f.httpd));
    teardown(&f);
}

TEST(fetch_without_a_server_is_unavailable_and_says_why)
{
    struct fixture f;

    setup(&f);
    test_httpd_away(f.httpd);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a?secret=1" });
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_INT(ENOENT, f.error->sys_errno);
    ASSERT_NULL(strstr(f.error->message, "secret"));
    test_httpd_back(f.httpd);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    ASSERT_NULL(f.error);
    teardown(&f);
}

TEST(fetch_past_its_deadline_ends_and_its_connection_is_closed)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/hang", .deadline_ms = 30 });
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    ASSERT_MESSAGE(f.error, "GET '/hang': no answer within 30 ms");
    ASSERT_UINT(0, f.status);
    UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
    teardown(&f);
}

TEST(fetch_that_is_silent_for_too_long_ends_and_not_when_only_we_are_late)
{
    struct agx_fetch_request q = stream;
    struct fixture f;

    setup(&f);
    q.quiet_ms = 3000; /* by then it must have begun */
    q.deadline_ms = 120000;
    start(&f, &q);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    UNTIL(&f, f.n_begun);
    for (unsigned i = 0; i < 2; i++) {
        test_httpd_chunk(f.held, AGX_STR("x"));
        uv_sleep(i == 0 ? 3100 : 100); /* the loop is held up */
        UNTIL(&f, f.n_pieces > i || f.n_done);
        ASSERT_UINT(0, f.n_done);
    }
    test_loop_run_until_stop(f.loop);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    ASSERT_MESSAGE(f.error, "silent for 3000 ms");
    ASSERT_UINT(200, f.status);
    ASSERT_UINT(2, f.n_pieces);
    teardown(&f);
}

TEST(fetch_in_pieces_hands_them_out_as_they_come)
{
    struct fixture f;

    setup(&f);
    start(&f, &stream);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    UNTIL(&f, f.n_begun == 1);
    test_httpd_chunk(f.held, AGX_STR("one "));
    UNTIL(&f, f.n_pieces == 1);
    test_httpd_chunk(f.held, AGX_STR("two"));
    test_httpd_finish(f.held);
    test_loop_run_until_stop(f.loop);
    ASSERT_NULL(f.error);
    ASSERT_STR(AGX_STR("one two"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(fetch_whose_answer_is_cut_short_tells_so_after_the_pieces)
{
    struct fixture f;

    setup(&f);
    start(&f, &stream);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    test_httpd_chunk(f.held, AGX_STR("one"));
    test_httpd_hang_up(f.held);
    test_loop_run_until_stop(f.loop);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_UINT(200, f.status);
    ASSERT_STR(AGX_STR("one"), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(fetch_of_more_than_body_max_is_refused)
{
    struct fixture f;

    setup(&f);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a", .body_max = 5 });
    ASSERT_NULL(f.error);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a", .body_max = 4 });
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, f.error->code);
    ASSERT_MESSAGE(f.error, "body is longer than 4 bytes");
    teardown(&f);
}

TEST(fetch_of_endless_headers_is_refused)
{
    struct fixture f;

    setup(&f);
    start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/hang" });
    UNTIL(&f, f.held);
    test_httpd_send(f.held, AGX_STR("HTTP/1.1 200 OK\r\n"));
    for (int i = 0; i < 5000; i++)
        test_httpd_send(f.held, AGX_STR("X-Filler: 0123456789\r\n"));
    test_loop_run_until_stop(f.loop);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, f.error->code);
    ASSERT_MESSAGE(f.error, "headers");
    teardown(&f);
}

TEST(fetch_of_what_is_not_http_is_an_error)
{
    struct fixture f;

    setup(&f);
    start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/hang" });
    UNTIL(&f, f.held);
    test_httpd_send(f.held, AGX_STR("SSH-2.0-OpenSSH_9.2\r\n"));
    test_httpd_hang_up(f.held);
    test_loop_run_until_stop(f.loop);
    ASSERT_INT(AGX_DATA_LOSS, f.error->code);
    teardown(&f);
}

TEST(fetch_uploads_what_its_source_gives_and_waits_while_it_has_none)
{
    struct fixture f;

    setup(&f);
    f.upload = 300000;
    f.upload_waits = true;
    start(&f, &(struct agx_fetch_request){ .method = "PUT", .path = "/a", .read = on_read });
    UNTIL(&f, f.n_waits == 1);
    for (int i = 0; i < 5; i++)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    ASSERT_UINT(0, f.upload_at);
    agx_fetch_more(f.call);
    test_loop_run_until_stop(f.loop);
    ASSERT_NULL(f.error);
    ASSERT_STR(AGX_STR("PUT /a  300000"), agx_buf_peek(&f.seen));
    teardown(&f);
}

TEST(fetch_whose_source_fails_ends_with_its_code)
{
    struct fixture f;

    setup(&f);
    f.upload = 100000;
    f.upload_fail = -AGX_ABORTED;
    run(&f, &(struct agx_fetch_request){ .method = "PUT", .path = "/a", .read = on_read });
    ASSERT_INT(AGX_ABORTED, f.error->code);
    ASSERT_UINT(0, test_httpd_requests(f.httpd));
    teardown(&f);
}

TEST(fetch_that_is_cancelled_calls_nothing)
{
    struct fixture f;

    setup(&f);
    start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    agx_fetch_cancel(f.call);
    start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/hang" });
    UNTIL(&f, f.held);
    agx_fetch_cancel(f.call);
    UNTIL(&f, test_httpd_open_conns(f.httpd) == 0);
    ASSERT_UINT(0, f.n_done);
    teardown(&f);
}

TEST(fetch_may_be_cancelled_and_closed_in_its_callbacks)
{
    for (int place = END_IN_BEGUN; place <= END_IN_DONE; place++) {
        for (int close = 0; close < 2; close++) {
            struct fixture f;

            setup(&f);
            if (close)
                f.close = place;
            else if (place != END_IN_DONE)
                f.cancel = place;
            start(&f, &stream);
            UNTIL(&f, f.held);
            test_httpd_begin(f.held, 200);
            test_httpd_chunk(f.held, AGX_STR("one"));
            test_httpd_finish(f.held);
            test_loop_run_until_stop(f.loop);
            ASSERT_UINT(place == END_IN_DONE, f.n_done);
            ASSERT_UINT(place != END_IN_BEGUN, f.n_pieces);
            teardown(&f);
        }
    }
}

TEST(fetch_may_be_started_in_the_done_of_another)
{
    struct fixture f;

    setup(&f);
    f.again = true;
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/missing" });
    ASSERT_UINT(2, f.n_done);
    ASSERT_UINT(200, f.status);
    teardown(&f);
}

TEST(fetch_that_is_closed_ends_what_hangs)
{
    struct fixture f;

    setup(&f);
    for (int i = 0; i < 3; i++)
        start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/hang" });
    UNTIL(&f, test_httpd_requests(f.httpd) == 3);
    teardown(&f);
    ASSERT_UINT(0, f.n_done);
}

TEST(fetch_of_more_calls_than_connections_lets_them_wait)
{
    struct fixture f;

    setup_with(&f, false, 2);
    for (int i = 0; i < 20; i++)
        start(&f, &(struct agx_fetch_request){ .method = i % 2 ? "GET" : "POST", .path = "/a" });
    UNTIL(&f, f.n_done == 20);
    ASSERT_NULL(f.error);
    ASSERT_UINT(20, test_httpd_requests(f.httpd));
    teardown(&f);
}

TEST(fetch_that_waits_for_a_connection_keeps_its_deadline_and_can_be_cancelled)
{
    struct agx_fetch_request hang = { .method = "GET", .path = "/hang" };
    struct agx_fetch_call *first;
    struct fixture f;

    setup_with(&f, false, 1);
    start(&f, &hang);
    first = f.call;
    UNTIL(&f, test_httpd_requests(f.httpd) == 1);
    start(&f, &hang);
    agx_fetch_cancel(f.call);
    run(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a", .deadline_ms = 30 });
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    ASSERT_UINT(1, f.n_done);
    start(&f, &(struct agx_fetch_request){ .method = "GET", .path = "/a" });
    agx_fetch_cancel(first); /* and its connection is free */
    UNTIL(&f, f.n_done == 2);
    ASSERT_NULL(f.error);
    teardown(&f);
}

TEST(fetch_tells_status_and_headers_before_the_first_piece)
{
    struct fixture f;

    setup(&f);
    start(&f, &stream);
    UNTIL(&f, f.held);
    test_httpd_send(f.held,
                    AGX_STR("HTTP/1.1 206 Some\r\nX-Test: now\r\nContent-Length: 2\r\n\r\n"));
    UNTIL(&f, f.n_begun == 1);
    ASSERT_UINT(206, f.begun_status);
    ASSERT_CSTR("now", f.begun_header);
    ASSERT_UINT(0, f.n_pieces);
    test_httpd_send(f.held, AGX_STR("ab"));
    UNTIL(&f, f.n_done == 1);
    ASSERT_NULL(f.error);
    teardown(&f);
}

TEST(fetch_that_is_paused_takes_no_more)
{
    static char bytes[1 << 20];
    size_t sent = 0, before;
    struct fixture f;

    setup(&f);
    f.pause = true;
    start(&f, &stream);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    /* More than sockets hold: what is left waits in the server. */
    for (; sent < (size_t)16 << 20; sent += sizeof(bytes))
        test_httpd_chunk(f.held, agx_str_bytes(bytes, sizeof(bytes)));
    test_httpd_finish(f.held);
    UNTIL(&f, f.n_pieces == 1);
    before = f.got.len;
    ASSERT_TRUE(before < sent);
    for (int turn = 0; turn < 1000; turn++)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
    ASSERT_UINT(before, f.got.len);
    ASSERT_UINT(0, f.n_done);
    while (f.n_done == 0) {
        unsigned n = f.n_pieces;

        agx_fetch_resume(f.call);
        agx_fetch_resume(f.call);
        ASSERT_UINT(n, f.n_pieces);
        UNTIL(&f, f.n_pieces > n || f.n_done);
    }
    ASSERT_NULL(f.error);
    ASSERT_UINT(sent, f.got.len);
    teardown(&f);
}

TEST(fetch_that_is_paused_is_not_quiet)
{
    struct agx_fetch_request request = stream;
    struct fixture f;

    setup(&f);
    f.pause = true;
    request.quiet_ms = 2500; /* by then it must have begun */
    start(&f, &request);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    test_httpd_chunk(f.held, AGX_STR("one"));
    UNTIL(&f, f.n_pieces == 1);
    for (uint64_t end = uv_hrtime() + UINT64_C(3000000000); uv_hrtime() < end;)
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_ONCE);
    ASSERT_UINT(0, f.n_done);
    agx_fetch_resume(f.call);
    UNTIL(&f, f.n_done == 1); /* now it is */
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    teardown(&f);
}

TEST(fetch_that_is_paused_can_be_cancelled_and_keeps_its_deadline)
{
    struct agx_fetch_request request = stream;
    struct fixture f;

    setup(&f);
    f.pause = true;
    start(&f, &request);
    UNTIL(&f, f.held);
    test_httpd_begin(f.held, 200);
    test_httpd_chunk(f.held, AGX_STR("one"));
    UNTIL(&f, f.n_pieces == 1);
    agx_fetch_cancel(f.call);
    f.n_pieces = 0;
    /* However slow the machine is: long enough that it is paused before. */
    for (request.deadline_ms = 100; f.n_pieces == 0; request.deadline_ms *= 2) {
        f.held = NULL;
        f.n_begun = f.n_done = 0;
        start(&f, &request);
        UNTIL(&f, f.held || f.n_done);
        if (f.n_done == 0) {
            test_httpd_begin(f.held, 200);
            test_httpd_chunk(f.held, AGX_STR("two"));
        }
        UNTIL(&f, f.n_done == 1);
        ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    }
    teardown(&f);
}

#include "backend/docker/api/hijack.h"
#include "tests/support/docker_engine.h"

struct fixture {
    struct test_docker d;
    struct agx_docker_hijack *hijack;
    struct test_httpd_conn *held;
    bool refuse;
    char asked[200];
    struct agx_buf sent, got;
    bool sent_end;
    unsigned n_open, n_closed, n_drained;
    struct agx_error *error;
    bool pause_in_data, close_in_data, close_in_open;
};

static void on_open(void *user)
{
    struct fixture *f = user;

    f->n_open++;
    if (f->close_in_open)
        f->hijack = agx_docker_hijack_close(f->hijack);
}

static void on_data(void *user, enum agx_dockerstream_kind stream, struct agx_str bytes)
{
    struct fixture *f = user;

    ASSERT_OK(agx_buf_printf(&f->got, "%d:%.*s ", (int)stream, AGX_STR_ARG(bytes)));
    if (f->pause_in_data)
        agx_docker_hijack_pause(f->hijack, true);
    if (f->close_in_data)
        f->hijack = agx_docker_hijack_close(f->hijack);
}

static void on_drained(void *user)
{
    ((struct fixture *)user)->n_drained++;
}

static void on_closed(void *user, struct agx_error *error)
{
    struct fixture *f = user;

    f->hijack = NULL;
    f->n_closed++;
    f->error = error;
}

static const struct agx_docker_hijack_ops ops = { on_open, on_data, on_drained, on_closed };

static void on_sent(void *user, struct test_httpd_conn *c, struct agx_str bytes)
{
    struct fixture *f = ((struct test_docker *)user)->user;

    (void)c;
    f->sent_end = bytes.len == 0;
    ASSERT_OK(agx_buf_append(&f->sent, bytes));
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    f->held = q->conn;
    (void)snprintf(f->asked, sizeof(f->asked), "%.*s %.*s %.*s %.*s", AGX_STR_ARG(q->method),
                   AGX_STR_ARG(q->target), AGX_STR_ARG(test_httpd_header(q, "Upgrade")),
                   AGX_STR_ARG(q->body));
    if (f->refuse)
        test_httpd_answer(q->conn, 404, "{\"message\":\"No such container: x\"}");
    else
        test_httpd_upgrade(q->conn, on_sent);
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .sent = AGX_BUF_INIT(1 << 20), .got = AGX_BUF_INIT(1 << 20) };
    test_docker_open(&f->d, serve, f);
}

static void teardown(struct fixture *f)
{
    test_docker_close(&f->d);
    f->error = agx_error_free(f->error);
    agx_buf_done(&f->sent);
    agx_buf_done(&f->got);
}

static void attach(struct fixture *f, bool raw)
{
    _cleanup_json_ json_t *body = json_pack("{s:b}", "Tty", raw);
    struct agx_docker_hijack_request q = {
        .request = { .method = "POST", .path = "/exec/x/start", .what = "start 'x'", .body = body },
        .raw = raw
    };

    f->n_open = 0;
    ASSERT_OK(agx_docker_hijack(f->d.engine, &q, &ops, f, &f->hijack, NULL));
    ASSERT_UINT(0, f->n_open);
}

TEST(hijack_attaches_and_takes_output_apart)
{
    struct fixture f;

    setup(&f);
    attach(&f, false);
    ASSERT_OK(agx_docker_hijack_write(f.hijack, AGX_STR("early"), NULL));
    TEST_UNTIL(f.d.loop, f.n_open && f.sent.len == 5);
    ASSERT_CSTR("POST /v1.41/exec/x/start tcp {\"Tty\":false}", f.asked);
    test_httpd_send(f.held, AGX_STR("\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\3err\0\0\0\0\0\0\0\1i"));
    TEST_UNTIL(f.d.loop, f.got.len > 14);
    ASSERT_STR(AGX_STR("1:out 2:err 1:i "), agx_buf_peek(&f.got));
    ASSERT_OK(agx_docker_hijack_end(f.hijack, NULL));
    TEST_UNTIL(f.d.loop, f.sent_end);
    test_httpd_hang_up(f.held);
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_NULL(f.error);
    ASSERT_UINT(1, f.n_drained);
    teardown(&f);
}

TEST(hijack_of_a_terminal_is_not_taken_apart)
{
    struct fixture f;

    setup(&f);
    attach(&f, true);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("plain"));
    TEST_UNTIL(f.d.loop, f.got.len > 0);
    ASSERT_STR(AGX_STR("1:plain "), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(hijack_that_is_refused_has_the_engines_words)
{
    struct fixture f;

    setup(&f);
    f.refuse = true;
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    ASSERT_MESSAGE(f.error, "start 'x': No such container: x");
    teardown(&f);
}

TEST(hijack_without_an_engine_is_unavailable)
{
    struct fixture f;

    setup(&f);
    test_httpd_away(f.d.httpd);
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_MESSAGE(f.error, "start 'x': cannot connect to the Docker Engine");
    test_httpd_back(f.d.httpd);
    teardown(&f);
}

TEST(hijack_whose_frames_are_broken_or_cut_is_data_loss)
{
    struct fixture f;

    setup(&f);
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("not frames"));
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_INT(AGX_DATA_LOSS, f.error->code);
    ASSERT_MESSAGE(f.error, "start 'x': ");
    teardown(&f);

    setup(&f);
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("\1\0\0\0\0\0\0\3ou"));
    test_httpd_hang_up(f.held);
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_MESSAGE(f.error, "cut short");
    ASSERT_STR(AGX_STR("1:ou "), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(hijack_in_which_the_engine_tells_a_failure_ends_with_it)
{
    struct fixture f;

    setup(&f);
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("\3\0\0\0\0\0\0\6broken\1\0\0\0\0\0\0\1x"));
    TEST_UNTIL(f.d.loop, f.n_closed);
    ASSERT_INT(AGX_INTERNAL, f.error->code);
    ASSERT_MESSAGE(f.error, "start 'x': broken");
    ASSERT_UINT(0, f.got.len);
    teardown(&f);
}

TEST(hijack_that_is_paused_gives_the_rest_later)
{
    struct fixture f;

    setup(&f);
    f.pause_in_data = true;
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("\1\0\0\0\0\0\0\1a\2\0\0\0\0\0\0\1b\1\0\0\0\0\0\0\1c"));
    TEST_UNTIL(f.d.loop, f.got.len > 0);
    for (int i = 0; i < 5; i++)
        (void)uv_run(agx_loop_uv(f.d.loop), UV_RUN_NOWAIT);
    ASSERT_STR(AGX_STR("1:a "), agx_buf_peek(&f.got));
    f.pause_in_data = false;
    agx_docker_hijack_pause(f.hijack, false);
    TEST_UNTIL(f.d.loop, f.got.len == 12);
    ASSERT_STR(AGX_STR("1:a 2:b 1:c "), agx_buf_peek(&f.got));
    teardown(&f);
}

TEST(hijack_may_be_closed_at_any_moment)
{
    struct fixture f;

    setup(&f);
    attach(&f, false);
    f.hijack = agx_docker_hijack_close(f.hijack); /* it waits for the version */
    attach(&f, false);
    f.close_in_open = true;
    TEST_UNTIL(f.d.loop, f.n_open && !f.hijack);
    f.close_in_open = false;
    f.close_in_data = true;
    attach(&f, false);
    TEST_UNTIL(f.d.loop, f.n_open);
    test_httpd_send(f.held, AGX_STR("\1\0\0\0\0\0\0\1a\2\0\0\0\0\0\0\1b"));
    TEST_UNTIL(f.d.loop, !f.hijack);
    ASSERT_STR(AGX_STR("1:a "), agx_buf_peek(&f.got));
    attach(&f, false); /* and the engine's end ends it */
    teardown(&f);
    ASSERT_UINT(0, f.n_closed);
}

#include "tests/support/docker_engine.h"

#include <fcntl.h>
#include <sys/stat.h>

struct fixture {
    struct test_docker d;
    struct test_httpd_conn *held; /* the last request, when it was not answered */
    unsigned answer;              /* with this status; 0: not at all */
    const char *body;
    struct agx_buf seen; /* the last request as the server saw it */
    unsigned n_done, n_begun, status;
    json_t *json;
    struct agx_error *error;
    struct agx_buf objects; /* each object of a stream, in a line */
    char stat[64];          /* a header of the answer */
    struct agx_docker_call *call;
    enum { NOTHING, CANCEL_IN_OBJECT, CLOSE_IN_OBJECT, CLOSE_IN_DONE, RETRY_IN_DONE } then;
    size_t upload;
};

static const struct agx_docker_request info = { .method = "GET",
                                                .path = "/info",
                                                .what = "ask 'it'" };

static void on_done(void *user, const struct agx_docker_answer *answer, struct agx_error *error)
{
    struct fixture *f = user;
    const char *stat = agx_docker_answer_header(answer, "X-Stat");

    f->n_done++;
    f->status = answer->status;
    json_decref(f->json);
    f->json = json_incref(answer->json);
    agx_error_free(f->error);
    f->error = error;
    (void)snprintf(f->stat, sizeof(f->stat), "%s", stat ? stat : "");
    if (f->then == CLOSE_IN_DONE)
        f->d.engine = agx_docker_engine_close(f->d.engine);
    if (f->then == RETRY_IN_DONE) {
        f->then = NOTHING;
        ASSERT_OK(agx_docker_call(f->d.engine, &info, on_done, f, &f->call, NULL));
    }
}

static void on_begun(void *user)
{
    ((struct fixture *)user)->n_begun++;
}

static void on_object(void *user, json_t *object)
{
    struct fixture *f = user;

    ASSERT_UINT(1, f->n_begun);
    ASSERT_OK(agx_json_write(object, &f->objects, NULL));
    ASSERT_OK(agx_buf_push(&f->objects, '\n'));
    if (f->then == CANCEL_IN_OBJECT)
        agx_docker_cancel(f->call);
    if (f->then == CLOSE_IN_OBJECT)
        f->d.engine = agx_docker_engine_close(f->d.engine);
}

static const struct agx_docker_stream_ops stream_ops = { on_begun, on_object, on_done };

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    agx_buf_clear(&f->seen);
    ASSERT_OK(agx_buf_printf(
        &f->seen, "%.*s %.*s %.*s %.*s", AGX_STR_ARG(q->method), AGX_STR_ARG(q->target),
        AGX_STR_ARG(test_httpd_header(q, "X-Registry-Auth")), AGX_STR_ARG(q->body)));
    f->held = q->conn;
    if (f->answer)
        test_httpd_answer(q->conn, f->answer, f->body);
}

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .answer = 200,
                           .body = "{\"ok\":true}",
                           .seen = AGX_BUF_INIT(1 << 20),
                           .objects = AGX_BUF_INIT(1 << 20) };
    test_docker_open(&f->d, serve, f);
}

static void teardown(struct fixture *f)
{
    test_docker_close(&f->d);
    json_decref(f->json);
    f->error = agx_error_free(f->error);
    agx_buf_done(&f->seen);
    agx_buf_done(&f->objects);
}

static void start(struct fixture *f, const struct agx_docker_request *q)
{
    unsigned before = f->n_done;

    ASSERT_OK(agx_docker_call(f->d.engine, q, on_done, f, &f->call, NULL));
    ASSERT_UINT(before, f->n_done);
}

static void run(struct fixture *f, const struct agx_docker_request *q)
{
    unsigned before = f->n_done;

    start(f, q);
    TEST_UNTIL(f->d.loop, f->n_done > before);
}

static void start_stream(struct fixture *f)
{
    static const struct agx_docker_request q = { .method = "POST",
                                                 .path = "/images/create",
                                                 .what = "pull 'x'" };

    f->answer = 0;
    ASSERT_OK(agx_docker_stream(f->d.engine, &q, &stream_ops, f, &f->call, NULL));
    TEST_UNTIL(f->d.loop, f->held);
    test_httpd_begin(f->held, 200);
}

static void end_stream(struct fixture *f)
{
    test_httpd_finish(f->held);
    TEST_UNTIL(f->d.loop, f->n_done == 1);
}

TEST(path_escapes_what_others_named_and_nothing_else)
{
    _cleanup_free_ char *path = NULL, *plain = NULL, *none = NULL;
    _cleanup_buf_ struct agx_buf large = AGX_BUF_INIT(1 << 20);

    path = agx_docker_path("/containers/%s/stop?t=%u&x=%%41&filters=%s", "../a b?#%\xc3\xa9", 10,
                           "{\"a\":[]}");
    ASSERT_CSTR(
        "/containers/..%2Fa%20b%3F%23%25%C3%A9/stop?t=10&x=%41&filters=%7B%22a%22%3A%5B%5D%7D",
        path);
    plain = agx_docker_path("/images/%s/json", "a-z_0.9~");
    ASSERT_CSTR("/images/a-z_0.9~/json", plain);
    while (large.len < AGX_DOCKER_PATH_MAX)
        ASSERT_OK(agx_buf_push(&large, 'x'));
    ASSERT_OK(agx_buf_push(&large, '\0'));
    none = agx_docker_path("/%s", (const char *)large.data);
    ASSERT_NULL(none);
}

TEST(call_without_a_path_is_refused)
{
    struct agx_error *err = NULL;
    struct agx_docker_request q = info;
    struct fixture f;

    setup(&f);
    q.path = NULL;
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_docker_call(f.d.engine, &q, on_done, &f, NULL, &err));
    ASSERT_MESSAGE(err, "ask 'it'");
    err = agx_error_free(err);
    teardown(&f);
}

TEST(call_gives_the_answers_json_and_asks_for_the_version_once)
{
    struct fixture f;

    setup(&f);
    start(&f, &info);
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.n_done == 2);
    ASSERT_NULL(f.error);
    ASSERT_UINT(200, f.status);
    ASSERT_TRUE(json_is_true(json_object_get(f.json, "ok")));
    ASSERT_STR(AGX_STR("GET /v1.41/info  "), agx_buf_peek(&f.seen));
    run(&f, &info);
    ASSERT_UINT(1, f.d.n_pings);
    teardown(&f);
}

TEST(call_sends_body_and_credentials)
{
    _cleanup_json_ json_t *body = json_pack("{s:s}", "Image", "x");
    struct fixture f;

    setup(&f);
    f.answer = 201;
    run(&f, &(struct agx_docker_request){
                .method = "POST", .path = "/a", .what = "a", .body = body, .auth = "e30=" });
    ASSERT_UINT(201, f.status);
    ASSERT_STR(AGX_STR("POST /v1.41/a e30= {\"Image\":\"x\"}"), agx_buf_peek(&f.seen));
    teardown(&f);
}

TEST(call_to_a_newer_engine_uses_the_newest_that_we_know)
{
    struct fixture f;
    char want[40];

    setup(&f);
    f.d.api = "1.99";
    run(&f, &info);
    snprintf(want, sizeof(want), "GET /v1.%d/info  ", AGX_DOCKER_API_NEWEST);
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&f.seen));
    teardown(&f);
}

TEST(call_to_an_engine_that_is_too_old_is_refused_by_name)
{
    static const char *const bad[] = { NULL, "2.0", "1.x", "" };
    struct fixture f;

    setup(&f);
    f.d.api = "1.40";
    run(&f, &info);
    ASSERT_INT(AGX_FAILED_PRECONDITION, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it': Docker Engine API 1.40");
    ASSERT_MESSAGE(f.error, "20.10 (API 1.41)");
    ASSERT_UINT(0, test_httpd_requests(f.d.httpd) - f.d.n_pings);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        f.d.api = bad[i];
        run(&f, &info);
        ASSERT_INT(AGX_DATA_LOSS, f.error->code);
    }
    f.d.api = "1.41"; /* it was upgraded meanwhile */
    run(&f, &info);
    ASSERT_NULL(f.error);
    teardown(&f);
}

TEST(engine_with_a_version_of_the_configuration_asks_for_none)
{
    struct agx_docker_engine_config config = AGX_DOCKER_ENGINE_CONFIG_INIT;
    struct agx_docker_engine *e = NULL;
    struct agx_engine_endpoint endpoint;
    struct agx_error *err = NULL;
    struct fixture f;
    char host[200];

    setup(&f);
    snprintf(host, sizeof(host), "unix://%s", test_httpd_where(f.d.httpd));
    ASSERT_OK(agx_engine_endpoint_find(host, &(struct agx_docker_env){ 0 }, &endpoint, NULL));
    config.endpoint = &endpoint;
    config.api_version = "1.30";
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_docker_engine_open(f.d.loop, &config, &e, &err));
    ASSERT_MESSAGE(err, "1.30");
    err = agx_error_free(err);
    config.api_version = "latest";
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_docker_engine_open(f.d.loop, &config, &e, NULL));
    config.api_version = "1.43";
    ASSERT_OK(agx_docker_engine_open(f.d.loop, &config, &e, NULL));
    ASSERT_OK(agx_docker_call(e, &info, on_done, &f, NULL, NULL));
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_STR(AGX_STR("GET /v1.43/info  "), agx_buf_peek(&f.seen));
    ASSERT_UINT(0, f.d.n_pings);
    e = agx_docker_engine_close(e);
    agx_engine_endpoint_done(&endpoint);
    teardown(&f);
}

TEST(call_that_the_engine_refuses_has_its_words_and_a_code)
{
    static const struct {
        unsigned status;
        enum agx_code code;
    } cases[] = {
        { 400, AGX_INVALID_ARGUMENT },  { 401, AGX_UNAUTHENTICATED },
        { 403, AGX_PERMISSION_DENIED }, { 404, AGX_NOT_FOUND },
        { 409, AGX_ALREADY_EXISTS },    { 406, AGX_FAILED_PRECONDITION },
        { 500, AGX_INTERNAL },          { 503, AGX_UNAVAILABLE },
        { 302, AGX_INTERNAL },
    };
    struct fixture f;

    setup(&f);
    f.body = "{\"message\":\"No such container: x\\n\"}";
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        f.answer = cases[i].status;
        run(&f, &info);
        ASSERT_UINT(cases[i].status, f.status);
        ASSERT_INT(cases[i].code, f.error->code);
        ASSERT_MESSAGE(f.error, "ask 'it': No such container: x");
        ASSERT_NULL(f.json);
    }
    teardown(&f);
}

TEST(call_that_is_refused_without_json_still_says_why)
{
    struct fixture f;

    setup(&f);
    f.answer = 502;
    f.body = "bad gateway\n";
    run(&f, &info);
    ASSERT_MESSAGE(f.error, "ask 'it': bad gateway");
    f.body = "";
    run(&f, &info);
    ASSERT_MESSAGE(f.error, "status 502");
    f.body = "{\"message\":7}";
    run(&f, &info);
    ASSERT_MESSAGE(f.error, "{\"message\":7}");
    teardown(&f);
}

TEST(call_that_changes_nothing_succeeds)
{
    struct fixture f;

    setup(&f);
    f.answer = 304;
    run(&f, &(struct agx_docker_request){ .method = "POST", .path = "/x", .what = "start" });
    ASSERT_NULL(f.error);
    ASSERT_UINT(304, f.status);
    f.answer = 204;
    run(&f, &(struct agx_docker_request){ .method = "DELETE", .path = "/x", .what = "remove" });
    ASSERT_NULL(f.error);
    ASSERT_NULL(f.json);
    teardown(&f);
}

TEST(call_whose_answer_is_not_json_is_data_loss)
{
    struct fixture f;

    setup(&f);
    f.body = "{\"ok\":";
    run(&f, &info);
    ASSERT_INT(AGX_DATA_LOSS, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it': the Docker Engine's answer");
    teardown(&f);
}

TEST(call_may_read_headers_of_the_answer)
{
    struct fixture f;

    setup(&f);
    f.answer = 0;
    start(&f, &(struct agx_docker_request){ .method = "HEAD", .path = "/x", .what = "stat" });
    TEST_UNTIL(f.d.loop, f.held);
    test_httpd_send(f.held, AGX_STR("HTTP/1.1 200 OK\r\nX-Stat: e30=\r\n\r\n"));
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_NULL(f.error);
    ASSERT_CSTR("e30=", f.stat);
    teardown(&f);
}

TEST(call_without_an_engine_is_unavailable_and_the_version_is_asked_for_again)
{
    struct fixture f;

    setup(&f);
    run(&f, &info);
    test_httpd_away(f.d.httpd);
    run(&f, &info);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it': cannot connect to the Docker Engine at 'unix:///tmp/");
    ASSERT_MESSAGE(f.error, "is it running?");
    run(&f, &info); /* the ping fails now */
    ASSERT_MESSAGE(f.error, "ask 'it': cannot connect to the Docker Engine at 'unix:///tmp/");
    ASSERT_UINT(0, f.status);
    test_httpd_back(f.d.httpd);
    f.d.api = "1.42";
    run(&f, &info);
    ASSERT_NULL(f.error);
    ASSERT_STR(AGX_STR("GET /v1.42/info  "), agx_buf_peek(&f.seen));
    ASSERT_UINT(2, f.d.n_pings);
    teardown(&f);
}

TEST(call_without_permission_names_the_group)
{
    bool is_root = geteuid() == 0;
    struct fixture f;

    setup(&f);
    if (is_root) /* root may use every socket; others not even its directory */
        ASSERT_INT(0, seteuid(65534));
    else
        ASSERT_INT(0, chmod(test_httpd_where(f.d.httpd), 0));
    run(&f, &info);
    if (is_root)
        ASSERT_INT(0, seteuid(0));
    ASSERT_INT(AGX_PERMISSION_DENIED, f.error->code);
    ASSERT_MESSAGE(f.error, "'docker'");
    teardown(&f);
}

TEST(call_whose_engine_dies_in_the_middle_is_unavailable)
{
    struct fixture f;

    setup(&f);
    f.answer = 0;
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.held);
    test_httpd_send(f.held, AGX_STR("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"));
    test_httpd_hang_up(f.held);
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it': GET '/v1.41/info'");
    ASSERT_NULL(f.json);
    teardown(&f);
}

TEST(call_past_its_deadline_ends)
{
    struct agx_docker_request q = info;
    struct fixture f;

    setup(&f);
    f.answer = 0;
    q.deadline_ms = 30;
    run(&f, &q);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it'");
    f.answer = 200; /* the version is known still */
    run(&f, &info);
    ASSERT_UINT(1, f.d.n_pings);
    teardown(&f);
}

TEST(call_that_is_cancelled_is_silent_before_and_after_the_version)
{
    struct fixture f;

    setup(&f);
    start(&f, &info);
    agx_docker_cancel(f.call);
    start(&f, &info);
    f.answer = 0;
    TEST_UNTIL(f.d.loop, f.held);
    agx_docker_cancel(f.call);
    TEST_UNTIL(f.d.loop, test_httpd_open_conns(f.d.httpd) <= 1);
    ASSERT_UINT(0, f.n_done);
    teardown(&f);
}

TEST(call_to_an_engine_that_hangs_waits_for_one_ping_and_can_be_cancelled)
{
    struct agx_docker_call *first;
    struct fixture f;

    setup(&f);
    f.d.hangs = true;
    start(&f, &info);
    first = f.call;
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.d.pinged);
    agx_docker_cancel(first);
    agx_docker_cancel(f.call); /* nobody waits: the ping ends, too */
    TEST_UNTIL(f.d.loop, test_httpd_open_conns(f.d.httpd) == 0);
    f.d.pinged = NULL;
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.d.pinged);
    test_docker_ping(&f.d, f.d.pinged);
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_NULL(f.error);
    ASSERT_UINT(2, f.d.n_pings);
    teardown(&f);
}

TEST(call_may_be_repeated_in_its_own_failure)
{
    struct fixture f;

    setup(&f);
    test_httpd_away(f.d.httpd);
    f.then = RETRY_IN_DONE;
    start(&f, &info);
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.n_done == 3);
    ASSERT_INT(AGX_UNAVAILABLE, f.error->code);
    teardown(&f);
}

TEST(engine_may_be_closed_in_a_done_and_tells_nobody_else)
{
    struct fixture f;

    setup(&f);
    f.then = CLOSE_IN_DONE;
    start(&f, &info);
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    teardown(&f);
    ASSERT_UINT(1, f.n_done);

    setup(&f);
    test_httpd_away(f.d.httpd);
    f.then = CLOSE_IN_DONE;
    start(&f, &info);
    start(&f, &info);
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    teardown(&f);
    ASSERT_UINT(1, f.n_done);
}

static ssize_t on_read(void *user, void *buf, size_t size)
{
    struct fixture *f = user;
    size_t n = AGX_MIN(size, f->upload);

    memset(buf, 't', n);
    f->upload -= n;
    return (ssize_t)n;
}

TEST(call_uploads_what_its_source_gives)
{
    struct fixture f;

    setup(&f);
    f.upload = 1000;
    run(&f, &(struct agx_docker_request){
                .method = "PUT", .path = "/x", .what = "copy", .read = on_read });
    ASSERT_NULL(f.error);
    ASSERT_UINT(strlen("PUT /v1.41/x  ") + 1000, f.seen.len);
    teardown(&f);
}

TEST(stream_hands_out_each_object_as_it_comes)
{
    struct fixture f;

    setup(&f);
    start_stream(&f);
    TEST_UNTIL(f.d.loop, f.n_begun == 1);
    test_httpd_chunk(f.held, AGX_STR("{\"a\":1}\r\n{\"b\""));
    TEST_UNTIL(f.d.loop, f.objects.len > 0);
    ASSERT_STR(AGX_STR("{\"a\":1}\n"), agx_buf_peek(&f.objects));
    test_httpd_chunk(f.held, AGX_STR(":\"}\"}{}"));
    end_stream(&f);
    ASSERT_NULL(f.error);
    ASSERT_UINT(200, f.status);
    ASSERT_STR(AGX_STR("{\"a\":1}\n{\"b\":\"}\"}\n{}\n"), agx_buf_peek(&f.objects));
    teardown(&f);
}

TEST(stream_that_is_refused_has_the_engines_words)
{
    struct fixture f;

    setup(&f);
    f.answer = 404;
    f.body = "{\"message\":\"pull access denied\"}";
    ASSERT_OK(agx_docker_stream(f.d.engine, &info, &stream_ops, &f, NULL, NULL));
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_INT(AGX_NOT_FOUND, f.error->code);
    ASSERT_MESSAGE(f.error, "ask 'it': pull access denied");
    ASSERT_UINT(0, f.n_begun);
    teardown(&f);
}

TEST(stream_of_anything_but_objects_is_data_loss)
{
    static const char *const bad[] = { "nonsense", "{\"a\":1}[]", "{\"a\" 1}", "{\"a\":1" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct fixture f;

        setup(&f);
        start_stream(&f);
        test_httpd_chunk(f.held, agx_str_from(bad[i]));
        end_stream(&f);
        ASSERT_INT(AGX_DATA_LOSS, f.error->code);
        ASSERT_MESSAGE(f.error, "pull 'x': the Docker Engine's answer");
        teardown(&f);
    }
}

TEST(stream_with_an_object_past_the_limit_ends)
{
    struct fixture f;

    setup(&f);
    start_stream(&f);
    test_httpd_chunk(f.held, AGX_STR("{\"a\":\""));
    for (size_t i = 0; i <= AGX_DOCKER_OBJECT_MAX / 16; i++)
        test_httpd_chunk(f.held, AGX_STR("0123456789abcdef"));
    TEST_UNTIL(f.d.loop, f.n_done == 1);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, f.error->code);
    teardown(&f);
}

TEST(stream_may_be_cancelled_or_closed_between_two_objects)
{
    for (int i = 0; i < 2; i++) {
        struct fixture f;

        setup(&f);
        f.then = i ? CLOSE_IN_OBJECT : CANCEL_IN_OBJECT;
        start_stream(&f);
        test_httpd_chunk(f.held, AGX_STR("{\"a\":1}{\"b\":2}"));
        TEST_UNTIL(f.d.loop, f.objects.len > 0);
        TEST_UNTIL(f.d.loop, test_httpd_open_conns(f.d.httpd) <= 1);
        ASSERT_STR(AGX_STR("{\"a\":1}\n"), agx_buf_peek(&f.objects));
        teardown(&f);
        ASSERT_UINT(0, f.n_done);
    }
}

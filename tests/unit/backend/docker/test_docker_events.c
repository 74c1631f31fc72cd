#include "backend/docker/api/events.h"
#include "tests/support/docker_engine.h"

#include <stdlib.h>
#include <time.h>

struct fixture {
    struct test_docker d;
    struct agx_docker_events *events;
    struct test_httpd_conn *held;
    unsigned n_asked, refuse; /* so many requests are refused */
    unsigned n_up, n_down;
    struct agx_buf seen, query;
    char error[300];
    bool close_in_event, close_in_down;
};

static void on_up(void *user)
{
    ((struct fixture *)user)->n_up++;
}

static void on_down(void *user, struct agx_error *error)
{
    struct fixture *f = user;

    f->n_down++;
    agx_error_format(error, f->error, sizeof(f->error));
    agx_error_free(error);
    if (f->close_in_down)
        f->events = agx_docker_events_close(f->events);
}

static void on_event(void *user, const struct agx_docker_event *ev)
{
    struct fixture *f = user;
    const char *id = agx_docker_event_get(ev, "io.agentix.sandbox-id");

    ASSERT_OK(agx_buf_printf(&f->seen, "%d %s %s\n", (int)ev->what, ev->container, id ? id : "-"));
    if (f->close_in_event)
        f->events = agx_docker_events_close(f->events);
}

static const struct agx_docker_events_ops ops = { on_up, on_down, on_event };

static void serve(void *user, const struct test_httpd_request *q)
{
    struct fixture *f = user;

    ASSERT_TRUE(test_httpd_is(q, "GET", "/v1.41/events"));
    agx_buf_clear(&f->query);
    ASSERT_OK(agx_buf_append(&f->query, q->query));
    f->n_asked++;
    f->held = q->conn;
    if (f->refuse > 0) {
        f->refuse--;
        test_httpd_answer(q->conn, 500, "{\"message\":\"not now\"}");
    } else {
        test_httpd_begin(q->conn, 200);
    }
}

static void setup(struct fixture *f, unsigned refuse)
{
    struct agx_docker_events_config config = AGX_DOCKER_EVENTS_CONFIG_INIT;

    *f = (struct fixture){ .refuse = refuse,
                           .seen = AGX_BUF_INIT(4096),
                           .query = AGX_BUF_INIT(4096) };
    test_docker_open(&f->d, serve, f);
    config.label = "io.agentix.instance=x";
    config.retry_first_ms = 5;
    config.retry_max_ms = 20;
    config.stable_ms = 0;
    ASSERT_OK(agx_docker_events_open(f->d.engine, &config, &ops, f, &f->events, NULL));
}

static void teardown(struct fixture *f)
{
    f->events = agx_docker_events_close(f->events);
    test_docker_close(&f->d);
    agx_buf_done(&f->seen);
    agx_buf_done(&f->query);
}

TEST(events_tell_what_happened_to_containers_with_the_label)
{
    struct fixture f;

    setup(&f, 0);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    ASSERT_TRUE(agx_str_starts(
        agx_buf_peek(&f.query),
        AGX_STR("filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22label%22%3A%5B%22"
                "io.agentix.instance%3Dx%22%5D%2C%22event%22%3A%5B%22start%22%2C%22die%22"
                "%2C%22oom%22%2C%22destroy%22%2C%22health_status%22%5D%7D&since=")));
    test_httpd_chunk(f.held, AGX_STR("{\"status\":\"die\",\"id\":\"c1\",\"Type\":\"container\","
                                     "\"Action\":\"die\",\"Actor\":{\"ID\":\"c1\",\"Attributes\":"
                                     "{\"io.agentix.sandbox-id\":\"web\",\"exitCode\":\"1\"}}}\n"));
    test_httpd_chunk(f.held, AGX_STR("{\"Action\":\"health_status: healthy\",\"Actor\":"
                                     "{\"ID\":\"c2\"}}\n{\"Action\":\"exec_start: sh\",\"Actor\":"
                                     "{\"ID\":\"c3\"}}\n{\"Action\":7}{}{\"Actor\":{\"ID\":1}}"
                                     "{\"Action\":\"start\",\"Actor\":[]}"
                                     "{\"Action\":\"destroy\",\"Actor\":{\"ID\":\"c4\","
                                     "\"Attributes\":{\"io.agentix.sandbox-id\":1}}}\n"));
    TEST_UNTIL(f.d.loop, f.seen.len > 20);
    ASSERT_STR(AGX_STR("1 c1 web\n4 c2 -\n3 c4 -\n"), agx_buf_peek(&f.seen));
    ASSERT_UINT(0, f.n_down);
    teardown(&f);
}

/* What the last request asked for. */
static long long since(const struct fixture *f)
{
    char text[4096] = "";
    const char *at;

    (void)snprintf(text, sizeof(text), "%.*s", AGX_STR_ARG(agx_buf_peek(&f->query)));
    at = strstr(text, "&since=");
    ASSERT_NOT_NULL(at);
    return strtoll(at + strlen("&since="), NULL, 10);
}

TEST(events_are_asked_for_since_they_were_not_listened_to)
{
    struct fixture f;
    long long begun = time(NULL), first;

    setup(&f, 3); /* refused: nobody has listened yet */
    TEST_UNTIL(f.d.loop, f.n_asked == 1);
    first = since(&f);
    ASSERT_TRUE(first >= begun && first <= time(NULL));
    while (time(NULL) <= first)
        (void)uv_run(agx_loop_uv(f.d.loop), UV_RUN_NOWAIT);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    ASSERT_TRUE(since(&f) == first);
    begun = time(NULL);
    test_httpd_finish(f.held);
    TEST_UNTIL(f.d.loop, f.n_up == 2);
    ASSERT_TRUE(since(&f) >= begun && since(&f) <= time(NULL));
    teardown(&f);
}

TEST(events_that_end_are_asked_for_again)
{
    struct fixture f;

    setup(&f, 0);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    test_httpd_finish(f.held);
    TEST_UNTIL(f.d.loop, f.n_up == 2);
    ASSERT_UINT(1, f.n_down);
    ASSERT_NOT_NULL(strstr(f.error, "ended its events"));
    test_httpd_cut(f.held);
    TEST_UNTIL(f.d.loop, f.n_up == 3);
    ASSERT_UINT(2, f.n_down);
    ASSERT_UINT(3, f.n_asked);
    teardown(&f);
}

TEST(events_that_are_refused_are_told_once_and_asked_for_until_they_come)
{
    struct fixture f;

    setup(&f, 5);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    ASSERT_UINT(6, f.n_asked);
    ASSERT_UINT(1, f.n_down);
    ASSERT_CSTR("watch events: not now", f.error);
    teardown(&f);
}

TEST(events_of_an_engine_that_comes_back_flow_again)
{
    struct fixture f;

    setup(&f, 0);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    test_httpd_away(f.d.httpd);
    TEST_UNTIL(f.d.loop, f.n_down == 1);
    for (int i = 0; i < 20; i++)
        (void)uv_run(agx_loop_uv(f.d.loop), UV_RUN_ONCE);
    ASSERT_UINT(1, f.n_down);
    test_httpd_back(f.d.httpd);
    TEST_UNTIL(f.d.loop, f.n_up == 2);
    teardown(&f);
}

TEST(events_that_are_no_json_are_asked_for_again)
{
    struct fixture f;

    setup(&f, 0);
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    test_httpd_chunk(f.held, AGX_STR("gibberish"));
    TEST_UNTIL(f.d.loop, f.n_up == 2);
    ASSERT_NOT_NULL(strstr(f.error, "the Docker Engine's answer"));
    teardown(&f);
}

TEST(events_may_be_closed_in_their_callbacks)
{
    struct fixture f;

    setup(&f, 0);
    f.close_in_event = true;
    TEST_UNTIL(f.d.loop, f.n_up == 1);
    test_httpd_chunk(f.held, AGX_STR("{\"Action\":\"die\",\"Actor\":{\"ID\":\"c\"}}"
                                     "{\"Action\":\"die\",\"Actor\":{\"ID\":\"c\"}}"));
    TEST_UNTIL(f.d.loop, f.seen.len > 0);
    ASSERT_STR(AGX_STR("1 c -\n"), agx_buf_peek(&f.seen));
    teardown(&f);

    setup(&f, 1);
    f.close_in_down = true;
    TEST_UNTIL(f.d.loop, f.n_down == 1);
    teardown(&f);
    ASSERT_UINT(1, f.n_asked);
}

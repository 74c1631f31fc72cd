/* Commands by an engine's exec API, where the engine says what the test wants. */
#include "backend/docker/engexec.h"
#include "backend/docker/initlink_attach.h"

#include "backend/exec/init_client.h"
#include "tests/support/backend.h"
#include "tests/support/docker_engine.h"

#include <stdlib.h>

#define KEY "0123456789abcdeffedcba9876543210"

struct stage {
    struct test_docker d;
    struct agx_backend b;
    struct agx_sandbox sb;
    struct agx_init_client *a;
    char state_dir[64];
    unsigned n_ready, n_ended, n_closed;

    /* What the engine says. */
    unsigned make_status, start_status; /* 101: the connection becomes the stream */
    const char *made, *seen;
    struct test_httpd_conn *stream;
    unsigned n_made, n_streams, n_seen, n_detached;
    const char *kill_made, *kill_seen; /* the same of a kill, whose id is k1 */
    unsigned n_kills, n_kills_seen;
    char body[4096]; /* of the last exec that was made */
};

static void on_input(void *user, struct test_httpd_conn *c, struct agx_str bytes)
{
    (void)user;
    (void)c;
    (void)bytes;
}

static void serve_start(struct stage *s, const struct test_httpd_request *q)
{
    if (memmem(q->body.ptr, q->body.len, "\"Detach\":true", 13)) {
        s->n_detached++;
        test_httpd_answer(q->conn, 200, "");
        return;
    }
    s->n_streams++;
    s->stream = q->conn;
    if (s->start_status == 101)
        test_httpd_upgrade(q->conn, on_input);
    else if (s->start_status == 0)
        test_httpd_cut(q->conn);
    else
        test_httpd_answer(q->conn, s->start_status, "{\"message\":\"cannot start it\"}");
}

/* Only a kill asks for no streams. */
static bool is_kill(const struct test_httpd_request *q)
{
    return !memmem(q->body.ptr, q->body.len, "Attach", 6);
}

static void serve_kill(struct stage *s, const struct test_httpd_request *q)
{
    s->n_kills++;
    (void)snprintf(s->body, sizeof(s->body), "%.*s", AGX_STR_ARG(q->body));
    test_httpd_answer(q->conn, s->kill_made ? 201 : 500, s->kill_made ? s->kill_made : "{}");
}

static void serve(void *user, const struct test_httpd_request *q)
{
    struct stage *s = user;

    if (test_httpd_is(q, "POST", "/v1.41/containers/box/exec") && is_kill(q)) {
        serve_kill(s, q);
    } else if (test_httpd_is(q, "GET", "/v1.41/exec/k1/json")) {
        s->n_kills_seen++;
        test_httpd_answer(q->conn, 200, s->kill_seen);
    } else if (test_httpd_is(q, "POST", "/v1.41/containers/box/exec")) {
        s->n_made++;
        (void)snprintf(s->body, sizeof(s->body), "%.*s", AGX_STR_ARG(q->body));
        test_httpd_answer(q->conn, s->make_status, s->made);
    } else if (test_httpd_is(q, "POST", "/v1.41/exec/e1/start") ||
               test_httpd_is(q, "POST", "/v1.41/exec/k1/start")) {
        serve_start(s, q);
    } else if (test_httpd_is(q, "GET", "/v1.41/exec/e1/json")) {
        s->n_seen++;
        test_httpd_answer(q->conn, s->seen ? 200 : 404, s->seen ? s->seen : "{\"message\":\"no\"}");
    } else {
        test_httpd_answer(q->conn, 404, "{\"message\":\"no such container\"}");
    }
}

/* ---- the stage ---- */

static int stage_exec(struct agx_backend *b, const struct agx_backend_exec *q, bool adopt,
                      const struct agx_backend_exec_hooks *hooks, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    return agx_init_client_exec_start(container_of(b, struct stage, b)->a, q, adopt, hooks, user,
                                      ret_op, err);
}

static int stage_kill(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                      uint64_t grace_ms, agx_done_fn gone, void *user,
                      struct agx_backend_op **ret_op, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_kill(container_of(b, struct stage, b)->a, exec_id, grace_ms, gone, user,
                                ret_op, err);
}

static int stage_write(struct agx_backend *b, const char *sandbox_id, const char *exec_id,
                       struct agx_str data, bool eof, agx_done_fn taken, void *user,
                       struct agx_backend_op **ret_op, struct agx_error **err)
{
    (void)sandbox_id;
    return agx_init_client_write(container_of(b, struct stage, b)->a, exec_id, data, eof, taken,
                                 user, ret_op, err);
}

static const struct agx_backend_ops stage_ops = {
    .name = "stage", .exec_start = stage_exec, .exec_kill = stage_kill, .exec_write = stage_write
};

static void on_ready(void *user)
{
    ((struct stage *)user)->n_ready++;
}

static void on_ended(void *user, struct agx_error *error)
{
    ((struct stage *)user)->n_ended++;
    agx_error_free(error);
}

static void on_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct stage *)user)->n_closed++;
}

static void open_init_client(struct stage *s)
{
    const struct agx_init_client_config config = { .backend = &s->b,
                                                   .sandbox_id = s->sb.id,
                                                   .exec_user = "app",
                                                   .ready = on_ready,
                                                   .ended = on_ended,
                                                   .user = s };

    s->n_ready = s->n_closed = 0;
    ASSERT_OK(agx_init_client_open(&config, &s->a, NULL));
}

static void up(struct stage *s)
{
    const struct agx_docker_engexec_config config = { .engine = s->d.engine,
                                                      .sandbox_id = s->sb.id,
                                                      .container = "box",
                                                      .user = "app",
                                                      .state_dir = s->state_dir };
    struct agx_initlink *link = NULL;

    open_init_client(s);
    ASSERT_OK(agx_docker_engexec_open(&config, &agx_init_client_link_ops, s->a, &link, NULL));
    agx_init_client_up(s->a, link);
    test_wait(s->b.loop, &s->n_ready, 1);
}

static void down(struct stage *s)
{
    agx_init_client_close(s->a, on_closed, s);
    test_wait(s->b.loop, &s->n_closed, 1);
}

static void setup(struct stage *s)
{
    struct agx_spec spec;

    *s = (struct stage){ .make_status = 201,
                         .start_status = 101,
                         .made = "{\"Id\":\"e1\"}",
                         .kill_made = "{\"Id\":\"k1\"}",
                         .kill_seen = "{\"Running\":true,\"ExitCode\":null}",
                         .seen = "{\"Running\":true,\"ExitCode\":null}" };
    test_docker_open(&s->d, serve, s);
    s->b = (struct agx_backend){ .ops = &stage_ops, .loop = s->d.loop };
    agx_spec_init(&spec);
    ASSERT_OK(agx_sandbox_init(&s->sb, "engexec-1", &spec, NULL));
    (void)snprintf(s->state_dir, sizeof(s->state_dir), "/tmp/agx-engexec-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(s->state_dir));
}

static void teardown(struct stage *s)
{
    char execs[80];

    down(s);
    ASSERT_OK(agx_docker_engexec_purge(s->state_dir, s->sb.id, NULL));
    (void)snprintf(execs, sizeof(execs), "%s/execs", s->state_dir);
    (void)rmdir(execs);
    ASSERT_INT(0, rmdir(s->state_dir));
    agx_sandbox_done(&s->sb);
    test_docker_close(&s->d);
}

static void begin(struct stage *s, struct test_command *c, const char *word)
{
    test_command_init(c, "exec-1", &s->sb);
    ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(word), NULL));
    test_command_start(&s->b, &s->sb, c, false, false);
}

static void refuse_with(struct stage *s, const char *words)
{
    struct test_command c;

    begin(s, &c, "true");
    test_wait(s->b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    if (!strstr(c.text, words))
        FAIL("'%s' lacks '%s'", c.text, words);
    test_command_start(&s->b, &s->sb, &c, true, false); /* nothing is remembered of it */
    test_wait(s->b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
}

TEST(command_is_an_exec_of_a_shell_and_its_streams_are_its_logs)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    ASSERT_NOT_NULL(strstr(s.body, "\"User\":\"app\""));
    ASSERT_NOT_NULL(strstr(s.body, "\"exec-1;\",\"/\",\"true\""));
    test_httpd_send(s.stream, AGX_STR("\1\0\0\0\0\0\0\3out\2\0\0\0\0\0\0\3err"));
    s.seen = "{\"Running\":false,\"ExitCode\":3}";
    test_httpd_hang_up(s.stream);
    ASSERT_INT(3, test_command_wait(&s.b, &c));
    test_log_is(&c.out, "out");
    test_log_is(&c.err, "err");
    test_command_done(&c);
    teardown(&s);
}

TEST(command_that_the_engine_does_not_make_or_start_is_refused_with_its_words)
{
    struct stage s;

    setup(&s);
    up(&s);
    s.make_status = 409;
    s.made = "{\"message\":\"container is not running\"}";
    refuse_with(&s, "container is not running");
    s.make_status = 201;
    s.made = "{\"Name\":\"e1\"}";
    refuse_with(&s, "without an id");
    s.made = "{\"Id\":\"e1\"}";
    s.seen = "{\"Running\":false,\"ExitCode\":null}";
    s.start_status = 500;
    refuse_with(&s, "cannot start it");
    s.start_status = 0;
    refuse_with(&s, "start a command");
    teardown(&s);
}

TEST(command_that_is_not_utf8_is_refused)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "\xff\xfe");
    test_wait(s.b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_NOT_NULL(strstr(c.text, "UTF-8"));
    ASSERT_UINT(0, s.n_made);
    test_command_done(&c);
    teardown(&s);
}

TEST(broken_stream_is_not_the_end_of_its_command)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    test_httpd_cut(s.stream);
    test_wait(s.b.loop, &s.n_seen, 3); /* it is looked at again and again */
    ASSERT_UINT(0, c.n_end);
    ASSERT_INT(AGX_NOT_FOUND, test_command_write(&s.b, &c, AGX_STR("x"), false));
    s.seen = "{\"Running\":false,\"ExitCode\":9}";
    ASSERT_INT(9, test_command_wait(&s.b, &c));
    test_command_done(&c);
    teardown(&s);
}

TEST(stream_that_breaks_before_it_is_open_may_be_that_of_a_command_that_runs)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    s.start_status = 0;
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    s.seen = "{\"Running\":false,\"ExitCode\":0}";
    ASSERT_INT(0, test_command_wait(&s.b, &c));
    ASSERT_UINT(1, s.n_streams);
    test_command_done(&c);
    teardown(&s);
}

TEST(command_that_the_engine_has_forgotten_is_lost)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    s.seen = NULL;
    test_httpd_hang_up(s.stream);
    test_wait(s.b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    test_command_done(&c);
    teardown(&s);
}

TEST(next_daemon_finds_commands_by_its_notes)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    down(&s);
    up(&s);
    test_command_start(&s.b, &s.sb, &c, true, false);
    test_wait(s.b.loop, &c.n_begun, 1);
    s.seen = "[\"nonsense\"]"; /* says nothing: never started, as far as anybody knows */
    test_wait(s.b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    ASSERT_UINT(1, s.n_streams);
    test_command_done(&c);
    teardown(&s);
}

TEST(kill_is_a_second_exec_and_the_end_of_the_first_is_its_answer)
{
    struct test_reply r = { 0 };
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    ASSERT_OK(
        agx_backend_exec_kill(&s.b, s.sb.id, "exec-1", 250, test_reply_done, &r, &r.op, NULL));
    test_wait(s.b.loop, &s.n_detached, 1);
    ASSERT_NOT_NULL(strstr(s.body, "\"exec-1;\",\"3\""));
    ASSERT_UINT(0, r.n_done);
    s.seen = "{\"Running\":false,\"ExitCode\":143}";
    test_httpd_hang_up(s.stream);
    ASSERT_INT(143, test_command_wait(&s.b, &c));
    test_wait(s.b.loop, &r.n_done, 1);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_INT(AGX_OK, test_command_kill(&s.b, s.sb.id, "exec-none", 0).code);
    test_command_done(&c);
    teardown(&s);
}

/* The engine said that it runs before it had a process; or the kill itself could not run. */
TEST(kill_that_ended_before_its_command_is_sent_again)
{
    static const char *const made[] = { "{\"Id\":\"k1\"}", "{\"Name\":\"k1\"}", NULL };

    for (size_t i = 0; i < AGX_ARRAY_LEN(made); i++) {
        struct test_reply r = { 0 };
        struct test_command c;
        struct stage s;

        setup(&s);
        up(&s);
        begin(&s, &c, "true");
        test_wait(s.b.loop, &c.n_begun, 1);
        s.kill_made = made[i];
        s.kill_seen = "{\"Running\":false,\"ExitCode\":0}";
        ASSERT_OK(
            agx_backend_exec_kill(&s.b, s.sb.id, "exec-1", 250, test_reply_done, &r, &r.op, NULL));
        test_wait(s.b.loop, &s.n_kills, 3);
        ASSERT_UINT(0, r.n_done + c.n_end);
        s.seen = "{\"Running\":false,\"ExitCode\":143}";
        test_httpd_hang_up(s.stream);
        ASSERT_INT(143, test_command_wait(&s.b, &c));
        test_wait(s.b.loop, &r.n_done, 1);
        test_command_done(&c);
        teardown(&s);
    }
}

TEST(kill_that_is_at_it_is_left_alone_and_a_second_one_has_its_own_grace)
{
    struct test_reply r[2] = { { 0 } };
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    ASSERT_OK(agx_backend_exec_kill(&s.b, s.sb.id, "exec-1", 5000, test_reply_done, &r[0], &r[0].op,
                                    NULL));
    test_wait(s.b.loop, &s.n_kills_seen, 3);
    ASSERT_UINT(1, s.n_kills);
    ASSERT_OK(agx_backend_exec_kill(&s.b, s.sb.id, "exec-1", 250, test_reply_done, &r[1], &r[1].op,
                                    NULL));
    test_wait(s.b.loop, &s.n_kills, 2);
    ASSERT_NOT_NULL(strstr(s.body, "\"exec-1;\",\"3\""));
    s.seen = "{\"Running\":false,\"ExitCode\":137}";
    test_httpd_hang_up(s.stream);
    ASSERT_INT(137, test_command_wait(&s.b, &c));
    for (size_t i = 0; i < 2; i++)
        test_wait(s.b.loop, &r[i].n_done, 1);
    test_command_done(&c);
    teardown(&s);
}

TEST(command_that_the_engine_was_about_to_start_is_not_unknown)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    down(&s);
    s.seen = "{\"Running\":false,\"ExitCode\":null}";
    up(&s);
    s.n_seen = 0;
    test_command_start(&s.b, &s.sb, &c, true, false);
    test_wait(s.b.loop, &s.n_seen, 2);
    s.seen = "{\"Running\":true,\"ExitCode\":null}";
    test_wait(s.b.loop, &c.n_begun, 1);
    s.seen = "{\"Running\":false,\"ExitCode\":3}";
    ASSERT_INT(3, test_command_wait(&s.b, &c));
    test_command_done(&c);
    teardown(&s);
}

TEST(command_that_was_noted_and_never_started_is_unknown)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    down(&s);
    s.seen = "{\"Running\":false,\"ExitCode\":null}";
    up(&s);
    test_command_start(&s.b, &s.sb, &c, true, false);
    test_wait(s.b.loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    teardown(&s);
}

TEST(close_in_the_middle_of_everything_leaks_nothing)
{
    struct test_command c;
    struct stage s;

    setup(&s);
    up(&s);
    begin(&s, &c, "true"); /* is being made */
    down(&s);
    test_command_done(&c);
    up(&s);
    begin(&s, &c, "true");
    test_wait(s.b.loop, &c.n_begun, 1);
    teardown(&s);
    ASSERT_UINT(0, c.n_end);
    test_command_done(&c);
}

TEST(attach_to_a_container_that_is_gone_is_the_end)
{
    struct agx_initlink *link = NULL;
    struct stage s;

    setup(&s);
    open_init_client(&s);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_initlink_attach_open(s.d.engine, "box", "no key", &agx_init_client_link_ops,
                                         s.a, &link, NULL));
    ASSERT_OK(agx_initlink_attach_open(s.d.engine, "box", KEY, &agx_init_client_link_ops, s.a,
                                       &link, NULL));
    agx_init_client_up(s.a, link);
    test_wait(s.b.loop, &s.n_ended, 1);
    teardown(&s);
}

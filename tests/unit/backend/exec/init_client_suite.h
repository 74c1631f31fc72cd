/*
 * init_client_suite.h: tests of a sandbox's commands that hold for every kind of link to its init,
 * which is here a real init as an ordinary process. The including program chooses the link: it
 * defines test_init_client_boot(), test_init_client_up() and test_init_client_break().
 */
#ifndef AGX_TESTS_INIT_CLIENT_SUITE_H
#define AGX_TESTS_INIT_CLIENT_SUITE_H

#include "tests/support/gate.h"
#include "tests/support/init_client.h"

#include <stdio.h>

static void prepare(struct test_init_client *t, struct test_command *c, const char *id,
                    const char *const *argv)
{
    test_command_init(c, id, &t->sb);
    for (; *argv; argv++)
        ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(*argv), NULL));
}

#define begin(t, c, id, ...) begin_words((t), (c), (id), TEST_ARGV(__VA_ARGS__))
static void begin_words(struct test_init_client *t, struct test_command *c, const char *id,
                        const char *const *argv)
{
    prepare(t, c, id, argv);
    test_command_start(&t->b, &t->sb, c, false, false);
}

/* Starts it, and waits until it runs. */
#define begin_running(t, c, id, ...)                                                               \
    do {                                                                                           \
        begin((t), (c), (id), __VA_ARGS__);                                                        \
        test_wait((t)->b.loop, &(c)->n_begun, 1);                                                  \
    } while (0)

/* Starts a line of a shell with the gate in its middle, and waits until it runs. */
static void begin_gated(struct test_init_client *t, struct test_command *c, const char *id,
                        struct test_gate *g, const char *before, const char *after)
{
    char line[512];

    test_gate_shut(g);
    (void)snprintf(line, sizeof(line), "%s; %s %s", before, g->wait, after);
    begin_running(t, c, id, "sh", "-c", line);
}

static void end(struct test_init_client *t, struct test_command *c)
{
    test_wait(t->b.loop, &c->n_end, 1);
}

TEST(command_begins_once_and_ends_with_its_code_and_its_logs)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    begin(&t, &c, "exec-1", "sh", "-c", "echo out; echo err >&2; exit 3");
    ASSERT_INT(3, test_command_wait(&t.b, &c));
    ASSERT_UINT(1, c.n_begun);
    test_log_is(&c.out, "out\n");
    test_log_is(&c.err, "err\n");
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(command_has_the_defaults_of_the_sandbox_and_what_it_names_itself)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    ASSERT_OK(agx_init_client_set_defaults(t.a, "1:2", "/usr", NULL));
    begin(&t, &c, "exec-1", "sh", "-c", "pwd; id -u; id -g; echo $AGX_TEST");
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_log_is(&c.out, "/usr\n1\n2\n\n");
    test_command_done(&c);
    prepare(&t, &c, "exec-2", TEST_ARGV("sh", "-c", "pwd; echo $AGX_TEST; test -n \"$PATH\""));
    ASSERT_OK(agx_text_set(&c.exec.cwd, "/etc", NULL));
    ASSERT_OK(agx_pairs_set(&c.exec.env_overrides, AGX_STR("AGX_TEST"), AGX_STR("a = b"), NULL));
    test_command_start(&t.b, &t.sb, &c, false, false);
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_log_is(&c.out, "/etc\na = b\n");
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(command_that_init_refuses_is_refused_with_its_reason)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    ASSERT_OK(agx_init_client_set_defaults(t.a, "no-such-user", "", NULL));
    begin(&t, &c, "exec-1", "true");
    end(&t, &c);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_UINT(0, c.n_begun);
    ASSERT_NOT_NULL(strstr(c.text, "no-such-user"));
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(command_too_large_for_init_is_refused)
{
    enum { BIG = 3 << 20 };
    char *word = malloc(BIG + 1);
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    ASSERT_NOT_NULL(word);
    memset(word, 'x', BIG);
    word[BIG] = '\0';
    prepare(&t, &c, "exec-1", TEST_ARGV("true", word, word));
    test_command_start(&t.b, &t.sb, &c, false, false); /* init: more than the kernel takes */
    end(&t, &c);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_OK(agx_words_add(&c.exec.command, agx_str_from(word), NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_backend_exec_start(
                    &t.b, &(struct agx_backend_exec){ .sandbox = &t.sb, .exec = &c.exec }, false,
                    &test_command_hooks, &c, &c.op, NULL));
    free(word);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(calls_wait_until_it_is_known_whether_an_init_runs)
{
    struct test_reply killed = { 0 };
    struct test_command c, adopted;
    struct test_init_client t;

    test_init_client_open_unknown(&t);
    begin(&t, &c, "exec-1", "sh", "-c", "exit 4");
    prepare(&t, &adopted, "exec-2", TEST_ARGV("true"));
    test_command_start(&t.b, &t.sb, &adopted, true, false);
    ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, "exec-3", 0, test_reply_done, &killed,
                                    &killed.op, NULL));
    test_pause(t.b.loop, 30);
    ASSERT_UINT(0, c.n_end + adopted.n_end + killed.n_done);
    test_init_client_up(&t);
    ASSERT_INT(4, test_command_wait(&t.b, &c));
    end(&t, &adopted);
    ASSERT_UINT(1, adopted.n_unknown);
    test_wait(t.b.loop, &killed.n_done, 1);
    ASSERT_INT(AGX_OK, killed.code);
    test_command_done(&c);
    test_command_done(&adopted);
    test_init_client_close(&t);
}

TEST(start_that_was_abandoned_before_it_was_sent_does_not_happen)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open_unknown(&t);
    begin(&t, &c, "exec-1", "true");
    agx_backend_abandon(c.op);
    test_init_client_up(&t);
    test_command_start(&t.b, &t.sb, &c, true, false);
    end(&t, &c);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(next_daemon_adopts_what_runs_and_what_has_ended_until_it_is_forgotten)
{
    struct test_command c, ended;
    struct test_init_client t;
    struct test_gate gate;

    test_init_client_open(&t);
    begin_gated(&t, &c, "exec-1", &gate, ":", "exit 7");
    begin(&t, &ended, "exec-2", "sh", "-c", "exit 5");
    ASSERT_INT(5, test_command_wait(&t.b, &ended));
    test_init_client_again(&t);
    test_command_start(&t.b, &t.sb, &c, true, false);
    test_command_start(&t.b, &t.sb, &ended, false, false); /* a start that was started adopts */
    ASSERT_INT(5, test_command_wait(&t.b, &ended));
    ASSERT_UINT(0, ended.n_begun);
    test_wait(t.b.loop, &c.n_begun, 1);
    test_gate_open(&gate);
    ASSERT_INT(7, test_command_wait(&t.b, &c));
    ASSERT_UINT(1, c.n_begun);
    ASSERT_OK(agx_backend_forget_exec(&t.b, t.sb.id, c.exec.id, NULL));
    test_command_start(&t.b, &t.sb, &c, true, false);
    end(&t, &c);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    test_command_done(&ended);
    test_init_client_close(&t);
}

TEST(what_is_forgotten_without_a_connection_is_forgotten_later)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    begin(&t, &c, "exec-1", "true");
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_init_client_end(&t);
    test_init_client_new(&t);
    ASSERT_OK(agx_backend_forget_exec(&t.b, t.sb.id, c.exec.id, NULL));
    test_init_client_up(&t);
    test_command_start(&t.b, &t.sb, &c, true, false);
    end(&t, &c);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(abandoned_command_runs_on_and_is_taken_up_again)
{
    struct test_command c;
    struct test_init_client t;
    struct test_gate gate;

    test_init_client_open(&t);
    begin_gated(&t, &c, "exec-1", &gate, "echo one", "echo two; exit 7");
    agx_backend_abandon(c.op);
    test_pause(t.b.loop, 50);
    test_command_start(&t.b, &t.sb, &c, false, false);
    test_wait(t.b.loop, &c.n_begun, 1);
    test_gate_open(&gate);
    ASSERT_INT(7, test_command_wait(&t.b, &c));
    ASSERT_UINT(1, c.n_begun);
    test_log_is(&c.out, "one\ntwo\n");
    test_command_done(&c);
    begin_gated(&t, &c, "exec-2", &gate, "true", "exit 0");
    agx_backend_abandon(c.op);
    test_gate_open(&gate);
    test_pause(t.b.loop, 300); /* its end is nobody's */
    test_command_start(&t.b, &t.sb, &c, true, false);
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(kill_ends_a_stubborn_command_and_every_killer_hears_of_it)
{
    struct test_reply r[2] = { { 0 } };
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    begin_running(&t, &c, "exec-1", "sh", "-c",
                  "trap '' TERM; echo set; while :; do sleep 1; done");
    while (test_caplog_read(&c.out, 0, 0).total < 4)
        test_pause(t.b.loop, 5);
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, c.exec.id, 50, test_reply_done, &r[i],
                                        &r[i].op, NULL));
    for (size_t i = 0; i < 2; i++) {
        test_wait(t.b.loop, &r[i].n_done, 1);
        ASSERT_INT(AGX_OK, r[i].code);
    }
    ASSERT_INT(137, test_command_wait(&t.b, &c));
    ASSERT_INT(AGX_OK, test_command_kill(&t.b, t.sb.id, c.exec.id, 50).code);
    ASSERT_INT(AGX_OK, test_command_kill(&t.b, t.sb.id, "exec-none", 50).code);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(cancelled_kill_says_so_and_a_cancelled_command_goes_on)
{
    struct test_reply r = { 0 };
    struct test_command c;
    struct test_init_client t;
    struct test_gate gate;

    test_init_client_open(&t);
    begin_gated(&t, &c, "exec-1", &gate, "trap '' TERM; echo set", "exit 6");
    agx_backend_cancel(c.op);
    ASSERT_OK(
        agx_backend_exec_kill(&t.b, t.sb.id, c.exec.id, 60000, test_reply_done, &r, &r.op, NULL));
    agx_backend_cancel(r.op);
    ASSERT_UINT(0, r.n_done);
    test_wait(t.b.loop, &r.n_done, 1);
    ASSERT_INT(AGX_CANCELLED, r.code);
    test_gate_open(&gate);
    end(&t, &c);
    ASSERT_UINT(1, c.n_exited);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(input_of_many_pieces_arrives_in_order)
{
    enum { SIZE = 300000 };
    struct test_reply first = { 0 };
    struct test_command c;
    struct test_init_client t;
    char *bytes = malloc(SIZE);

    ASSERT_NOT_NULL(bytes);
    memset(bytes, 'x', SIZE);
    test_init_client_open(&t);
    prepare(&t, &c, "exec-1", TEST_ARGV("sh", "-c", "head -c 300000 | wc -c; cat"));
    test_command_start(&t.b, &t.sb, &c, false, true);
    ASSERT_OK(agx_backend_exec_write(&t.b, t.sb.id, c.exec.id, agx_str_bytes(bytes, SIZE), false,
                                     test_reply_done, &first, &first.op, NULL));
    ASSERT_INT(AGX_OK, test_command_write(&t.b, &c, AGX_STR("then this"), false));
    ASSERT_UINT(1, first.n_done);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(AGX_OK, test_command_write(&t.b, &c, AGX_STR(""), true));
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_log_is(&c.out, "300000\nthen this");
    ASSERT_INT(AGX_NOT_FOUND, test_command_write(&t.b, &c, AGX_STR("late"), false));
    free(bytes);
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(input_that_was_abandoned_does_not_take_the_answer_of_the_next)
{
    struct test_reply first = { 0 }, second = { 0 };
    struct test_command c;
    struct test_init_client t;
    char bytes[AGX_INIT_DATA_MAX], line[256];
    struct test_gate gate;

    memset(bytes, 'x', sizeof(bytes));
    test_gate_shut(&gate);
    (void)snprintf(line, sizeof(line), "%s wc -c", gate.wait);
    test_init_client_open(&t);
    prepare(&t, &c, "exec-1", TEST_ARGV("sh", "-c", line));
    test_command_start(&t.b, &t.sb, &c, false, true);
    for (int i = 0; i < 5; i++) { /* until the pipe is full and one piece waits in init */
        ASSERT_OK(agx_backend_exec_write(&t.b, t.sb.id, c.exec.id,
                                         agx_str_bytes(bytes, sizeof(bytes)), false,
                                         test_reply_done, &first, &first.op, NULL));
        if (i < 4) {
            test_wait(t.b.loop, &first.n_done, 1);
            first.n_done = 0;
        }
    }
    test_pause(t.b.loop, 30);
    ASSERT_UINT(0, first.n_done);
    agx_backend_abandon(first.op);
    ASSERT_OK(agx_backend_exec_write(&t.b, t.sb.id, c.exec.id, AGX_STR("x"), true, test_reply_done,
                                     &second, &second.op, NULL));
    test_gate_open(&gate);
    test_wait(t.b.loop, &second.n_done, 1);
    ASSERT_INT(AGX_OK, second.code);
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    test_log_is(&c.out, "81921\n");
    test_command_done(&c);
    test_init_client_close(&t);
}

TEST(broken_connection_is_made_again_and_nothing_is_told_twice)
{
    struct test_command c, stubborn;
    struct test_reply killed = { 0 };
    struct test_init_client t;

    test_init_client_open(&t);
    begin_running(&t, &c, "exec-1", "sh", "-c", "sleep 0.5; exit 7");
    begin_running(&t, &stubborn, "exec-2", "sh", "-c",
                  "trap '' TERM; echo set; sleep 100; sleep 100");
    while (test_caplog_read(&stubborn.out, 0, 0).total < 4)
        test_pause(t.b.loop, 5);
    ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, "exec-2", 500, test_reply_done, &killed,
                                    &killed.op, NULL));
    for (unsigned i = 0; i < 3; i++) {
        test_init_client_break(&t);
        test_wait(t.b.loop, &t.n_ready, i + 2);
    }
    ASSERT_INT(7, test_command_wait(&t.b, &c));
    ASSERT_UINT(1, c.n_begun);
    test_wait(t.b.loop, &killed.n_done, 1);
    ASSERT_INT(AGX_OK, killed.code);
    ASSERT_INT(137, test_command_wait(&t.b, &stubborn));
    ASSERT_UINT(1, stubborn.n_begun);
    ASSERT_UINT(0, t.n_ended);
    test_command_done(&c);
    test_command_done(&stubborn);
    test_init_client_close(&t);
}

TEST(commands_of_an_init_that_is_killed_are_lost_and_their_logs_end)
{
    struct test_reply killed = { 0 }, written = { 0 };
    struct test_command c, late;
    struct test_init_client t;

    test_init_client_open(&t);
    prepare(&t, &c, "exec-1", TEST_ARGV("sh", "-c", "echo out; sleep 100"));
    test_command_start(&t.b, &t.sb, &c, false, true);
    test_wait(t.b.loop, &c.n_begun, 1);
    while (test_caplog_read(&c.out, 0, 0).total < 4)
        test_pause(t.b.loop, 5);
    test_init_client_stop_init(&t); /* so that it answers none of these */
    ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, "exec-1", 50, test_reply_done, &killed,
                                    &killed.op, NULL));
    ASSERT_OK(agx_backend_exec_write(&t.b, t.sb.id, "exec-1", AGX_STR("x"), false, test_reply_done,
                                     &written, &written.op, NULL));
    test_init_client_kill_init(&t);
    end(&t, &c);
    ASSERT_UINT(1, c.n_lost);
    ASSERT_INT(AGX_UNAVAILABLE, c.code);
    ASSERT_NOT_NULL(strstr(c.text, "init_client-1"));
    test_log_is(&c.out, "out\n");
    test_log_is(&c.err, "");
    test_wait(t.b.loop, &t.n_ended, 1);
    ASSERT_INT(AGX_UNAVAILABLE, t.ended_code);
    ASSERT_INT(AGX_OK, killed.code);
    ASSERT_UINT(1, killed.n_done);
    ASSERT_INT(AGX_NOT_FOUND, written.code);

    begin(&t, &late, "exec-2", "true");
    end(&t, &late);
    ASSERT_UINT(1, late.n_refused);
    ASSERT_NOT_NULL(strstr(late.text, "is not running"));
    test_command_start(&t.b, &t.sb, &late, true, false);
    end(&t, &late);
    ASSERT_UINT(1, late.n_unknown);
    ASSERT_INT(AGX_OK, test_command_kill(&t.b, t.sb.id, "exec-1", 50).code);
    ASSERT_INT(AGX_NOT_FOUND, test_command_write(&t.b, &c, AGX_STR("x"), false));
    ASSERT_OK(agx_backend_forget_exec(&t.b, t.sb.id, "exec-1", NULL));
    test_command_done(&c);
    test_command_done(&late);
    test_init_client_close(&t);
}

TEST(end_of_the_main_process_loses_the_commands_with_that_as_the_reason)
{
    struct test_command c;
    struct test_init_client t;

    test_init_client_open(&t);
    for (unsigned i = 0; i < 20; i++) {
        begin_running(&t, &c, "exec-1", "sleep", "100");
        ASSERT_INT(0, kill(t.init.pid, SIGTERM));
        end(&t, &c);
        ASSERT_UINT(1, c.n_lost);
        ASSERT_NOT_NULL(strstr(c.text, "the main process of sandbox"));
        ASSERT_TRUE(test_caplog_read(&c.out, 0, 0).ended);
        test_wait(t.b.loop, &t.n_ended, i + 1);
        (void)test_init_status(&t.init);
        test_command_done(&c);
        test_init_client_boot(&t, NULL);
        test_init_client_up(&t);
    }
    test_init_client_close(&t);
}

TEST(down_ends_every_call_before_it_returns)
{
    struct test_reply killed = { 0 };
    struct test_command c, waiting, late;
    struct test_init_client t;

    test_init_client_open_unknown(&t);
    prepare(&t, &waiting, "exec-2", TEST_ARGV("true"));
    test_command_start(&t.b, &t.sb, &waiting, true, false);
    begin(&t, &c, "exec-1", "true");
    ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, "exec-3", 50, test_reply_done, &killed,
                                    &killed.op, NULL));
    agx_init_client_down(t.a, NULL);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_UINT(1, waiting.n_unknown);
    ASSERT_UINT(1, killed.n_done);
    begin(&t, &late, "exec-4", "true");
    agx_init_client_down(t.a, NULL); /* its end was put off to a later turn */
    ASSERT_UINT(1, late.n_refused);
    agx_init_client_expect(t.a);
    test_command_start(&t.b, &t.sb, &late, false, false);
    test_pause(t.b.loop, 20);
    ASSERT_UINT(0, late.n_end);
    test_init_client_up(&t);
    ASSERT_INT(0, test_command_wait(&t.b, &late));
    test_command_done(&c);
    test_command_done(&waiting);
    test_command_done(&late);
    test_init_client_close(&t);
}

TEST(close_in_the_middle_calls_no_hook)
{
    struct test_reply killed = { 0 };
    struct test_command c, late;
    struct test_init_client t;

    test_init_client_open(&t);
    begin_running(&t, &c, "exec-1", "sleep", "100");
    begin(&t, &late, "exec-2", "true");
    ASSERT_OK(agx_backend_exec_kill(&t.b, t.sb.id, "exec-1", 0, test_reply_done, &killed,
                                    &killed.op, NULL));
    test_init_client_end(&t);
    ASSERT_UINT(0, c.n_end + late.n_end + killed.n_done);
    test_command_done(&late);
    test_init_client_new(&t);
    agx_init_client_down(t.a, NULL);
    begin(&t, &late, "exec-3", "true");
    test_command_done(&c);
    test_init_client_close(&t);
    ASSERT_UINT(0, late.n_end);
    test_command_done(&late);
}

/* ---- hooks that do things ---- */

struct closer {
    struct test_init_client *t;
    unsigned n_end;
};

static void close_begun(void *user)
{
    (void)user;
}

static void close_exited(void *user, int32_t exit_code)
{
    struct closer *x = user;

    (void)exit_code;
    x->n_end++;
    agx_init_client_close(x->t->a, test_init_client_closed, x->t);
}

static void close_lost(void *user, struct agx_error *error)
{
    agx_error_free(error);
    close_exited(user, 0);
}

static const struct agx_backend_exec_hooks closing_hooks = {
    .begun = close_begun, .refused = close_lost, .exited = close_exited, .lost = close_lost
};

TEST(hook_may_close_the_init_client)
{
    for (int by_kill = 0; by_kill < 2; by_kill++) {
        struct test_command c, other;
        struct test_init_client t;
        struct closer x = { &t, 0 };
        struct agx_backend_exec q = { 0 };
        struct agx_backend_op *op;

        test_init_client_open(&t);
        begin_running(&t, &other, "exec-0", "sleep", "100");
        prepare(&t, &c, "exec-1", by_kill ? TEST_ARGV("sleep", "100") : TEST_ARGV("true"));
        q = (struct agx_backend_exec){ .sandbox = &t.sb,
                                       .exec = &c.exec,
                                       .out = { c.out.data_fd, c.out.index_fd, 10, 10 },
                                       .err = { c.err.data_fd, c.err.index_fd, 10, 10 } };
        ASSERT_OK(agx_backend_exec_start(&t.b, &q, false, &closing_hooks, &x, &op, NULL));
        if (by_kill)
            test_init_client_kill_init(&t);
        test_wait(t.b.loop, &t.n_closed, 1);
        ASSERT_TRUE(x.n_end + other.n_end <= 2);
        ASSERT_UINT(1, x.n_end);
        test_command_done(&c);
        test_command_done(&other);
        test_init_client_remove(&t);
    }
}

/* ---- commands of our own ---- */

struct ran {
    struct agx_backend_op *op;
    unsigned n;
    int32_t exit_code;
    enum agx_code code;
    char output[256];
};

static void on_ran(void *user, int32_t exit_code, struct agx_str output, struct agx_error *error)
{
    struct ran *r = user;

    r->n++;
    r->exit_code = exit_code;
    r->code = error ? error->code : AGX_OK;
    (void)snprintf(r->output, sizeof(r->output), "%.*s", AGX_STR_ARG(output));
    agx_error_free(error);
}

static void run(struct test_init_client *t, struct ran *r, const char *name, const char *line)
{
    struct agx_words words = { 0 };

    *r = (struct ran){ 0 };
    ASSERT_OK(agx_words_add(&words, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(&words, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(&words, agx_str_from(line), NULL));
    ASSERT_OK(agx_init_client_run(t->a, &(struct agx_init_client_run){ name, &words }, on_ran, r,
                                  &r->op, NULL));
    agx_words_done(&words);
}

TEST(run_gives_the_exit_code_and_what_was_said_last)
{
    struct test_init_client t;
    struct ran r;

    test_init_client_open(&t);
    run(&t, &r, "first",
        "echo out; i=0; while [ $i -lt 2000 ]; do echo noise >&2; "
        "i=$((i+1)); done; echo at last >&2; exit 3");
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_INT(3, r.exit_code);
    run(&t, &r, "first", "echo hello; exit 4"); /* forgotten, so it is another one */
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(4, r.exit_code);
    ASSERT_CSTR("hello", r.output);
    test_init_client_close(&t);
}

TEST(run_that_is_cancelled_is_killed_and_one_whose_init_ends_fails)
{
    struct test_init_client t;
    struct ran r;

    test_init_client_open(&t);
    run(&t, &r, "one", "sleep 100");
    agx_backend_cancel(r.op);
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(AGX_CANCELLED, r.code);
    run(&t, &r, "two", "sleep 100");
    test_init_client_kill_init(&t);
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    run(&t, &r, "three", "true");
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    agx_init_client_expect(t.a);
    run(&t, &r, "four", "true");
    agx_backend_cancel(r.op); /* it was not even sent */
    ASSERT_UINT(0, r.n);
    test_wait(t.b.loop, &r.n, 1);
    ASSERT_INT(AGX_CANCELLED, r.code);
    test_init_client_close(&t);
}

#endif

/* The suite that every backend passes: commands in a sandbox. */
#include "tests/conformance/backend_stage.h"

#include <signal.h>
#include <sys/wait.h>

enum { NEVER_MS = 600000, EXIT_TERM = 128 + SIGTERM };

static void open_running(struct stage *s)
{
    open_stage(s);
    ASSERT_OK(
        agx_pairs_set(&s->sb.spec.envs, AGX_STR("AGX_TEST"), AGX_STR("of the sandbox"), NULL));
    test_backend_ok(s->b, &s->sb, AGX_DO_CREATE);
}

static void prepare(struct stage *s, struct test_command *c, const char *id,
                    enum conformance_command command)
{
    test_command_init(c, id, &s->sb);
    conformance_backend_command(command, &c->exec.command);
}

/* Starts it, and waits until it runs. */
static void begin(struct stage *s, struct test_command *c, const char *id,
                  enum conformance_command command)
{
    prepare(s, c, id, command);
    test_command_start(s->b, &s->sb, c, false, false);
    test_wait(s->b->loop, &c->n_begun, 1);
}

/* The same to the moment where it ignores TERM. */
static void begin_stubborn(struct stage *s, struct test_command *c, const char *id)
{
    begin(s, c, id, COMMAND_STUBBORN);
    for (unsigned i = 0; test_caplog_read(&c->out, 0, 0).total == 0; i++) {
        ASSERT_TRUE(i < 10000);
        test_pause(s->b->loop, 5);
    }
}

/* Ends one that sleeps, by TERM and not by impatience. */
static void end_sleeper(struct stage *s, struct test_command *c)
{
    ASSERT_INT(AGX_OK, test_command_kill(s->b, s->sb.id, c->exec.id, NEVER_MS).code);
    ASSERT_INT(EXIT_TERM, test_command_wait(s->b, c));
}

static void run(struct stage *s, struct test_command *c, const char *id,
                enum conformance_command command, int32_t want)
{
    prepare(s, c, id, command);
    test_command_start(s->b, &s->sb, c, false, false);
    ASSERT_INT(want, test_command_wait(s->b, c));
    ASSERT_UINT(1, c->n_begun);
}

TEST(a_command_ends_with_its_exit_code)
{
    static const struct {
        enum conformance_command command;
        int32_t code;
        const char *id;
    } cases[] = {
        { COMMAND_TRUE, 0, "exec-0" },
        { COMMAND_EXIT_3, 3, "exec-3" },
        { COMMAND_NOT_EXECUTABLE, 126, "exec-126" },
        { COMMAND_NO_FILE, 127, "exec-127" },
    };
    struct stage s;

    open_running(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct test_command c;

        run(&s, &c, cases[i].id, cases[i].command, cases[i].code);
        test_command_done(&c);
    }
    close_stage(&s);
}

TEST(output_is_in_the_logs_when_the_command_has_ended)
{
    struct test_command hello, complaint;
    struct agx_caplog_piece p;
    struct stage s;
    uint8_t out[100];

    open_running(&s);
    run(&s, &hello, "exec-1", COMMAND_HELLO, 0);
    test_log_is(&hello.out, "hello\n");
    test_log_is(&hello.err, "");
    prepare(&s, &complaint, "exec-2", COMMAND_COMPLAIN);
    test_command_start(s.b, &s.sb, &complaint, false, false);
    (void)test_command_wait(s.b, &complaint);
    test_log_is(&complaint.out, "");
    ASSERT_OK(agx_caplog_read(complaint.err.data_fd, complaint.err.index_fd, 0, out, sizeof(out),
                              &p, NULL));
    ASSERT_TRUE(p.len > 0);
    test_command_done(&hello);
    test_command_done(&complaint);
    close_stage(&s);
}

TEST(output_past_the_cap_keeps_head_and_tail)
{
    struct agx_caplog_piece p;
    struct test_command c;
    struct stage s;
    uint8_t out[TEST_TAIL_MAX + 1];

    open_running(&s);
    run(&s, &c, "exec-1", COMMAND_PRINT, 0);
    ASSERT_OK(
        agx_caplog_read(c.out.data_fd, c.out.index_fd, TEST_HEAD_MAX, out, sizeof(out), &p, NULL));
    ASSERT_UINT(100000, p.total);
    ASSERT_UINT(100000 - TEST_HEAD_MAX - TEST_TAIL_MAX, p.skipped);
    ASSERT_UINT(TEST_TAIL_MAX, p.len);
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_command_has_its_directory_and_environment)
{
    struct test_command pwd, env;
    struct stage s;

    open_running(&s);
    prepare(&s, &pwd, "exec-1", COMMAND_PWD);
    ASSERT_OK(agx_text_set(&pwd.exec.cwd, "/tmp", NULL));
    test_command_start(s.b, &s.sb, &pwd, false, false);
    ASSERT_INT(0, test_command_wait(s.b, &pwd));
    test_log_is(&pwd.out, "/tmp\n");
    run(&s, &env, "exec-2", COMMAND_VARIABLE, 0);
    test_log_is(&env.out, "of the sandbox\n");
    test_command_done(&env);
    prepare(&s, &env, "exec-3", COMMAND_VARIABLE);
    ASSERT_OK(
        agx_pairs_set(&env.exec.env_overrides, AGX_STR("AGX_TEST"), AGX_STR("of its own"), NULL));
    test_command_start(s.b, &s.sb, &env, false, false);
    ASSERT_INT(0, test_command_wait(s.b, &env));
    test_log_is(&env.out, "of its own\n");
    test_command_done(&env);
    test_command_done(&pwd);
    close_stage(&s);
}

TEST(input_is_passed_on_until_its_end)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    prepare(&s, &c, "exec-1", COMMAND_CAT);
    test_command_start(s.b, &s.sb, &c, false, true);
    test_wait(s.b->loop, &c.n_begun, 1);
    ASSERT_INT(AGX_OK, test_command_write(s.b, &c, AGX_STR("one "), false));
    ASSERT_INT(AGX_OK, test_command_write(s.b, &c, AGX_STR("two"), false));
    ASSERT_UINT(0, c.n_end);
    ASSERT_INT(AGX_OK, test_command_write(s.b, &c, AGX_STR(""), true));
    ASSERT_INT(0, test_command_wait(s.b, &c));
    test_log_is(&c.out, "one two");
    ASSERT_INT(AGX_NOT_FOUND, test_command_write(s.b, &c, AGX_STR("late"), false));
    test_command_done(&c);
    close_stage(&s);
}

TEST(without_input_a_command_reads_nothing)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    run(&s, &c, "exec-1", COMMAND_CAT, 0);
    test_log_is(&c.out, "");
    test_command_done(&c);
    begin(&s, &c, "exec-2", COMMAND_SLEEP);
    ASSERT_INT(AGX_NOT_FOUND, test_command_write(s.b, &c, AGX_STR("x"), false));
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 1000).code);
    ASSERT_UINT(0, c.n_lost);
    test_wait(s.b->loop, &c.n_end, 1);
    test_command_done(&c);
    close_stage(&s);
}

TEST(starting_what_was_started_adopts_it)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    begin(&s, &c, "exec-1", COMMAND_SLEEP);
    agx_backend_abandon(c.op);
    test_command_start(s.b, &s.sb, &c, false, false);
    test_wait(s.b->loop, &c.n_begun, 1);
    end_sleeper(&s, &c);
    test_command_start(s.b, &s.sb, &c, false, false); /* it has ended: its end is the answer */
    ASSERT_INT(EXIT_TERM, test_command_wait(s.b, &c));
    ASSERT_UINT(0, c.n_begun);
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_new_backend_adopts_a_command_that_runs)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    begin(&s, &c, "exec-1", COMMAND_SLEEP);
    reopen(&s);
    ASSERT_UINT(0, c.n_end);
    test_command_start(s.b, &s.sb, &c, true, false);
    test_wait(s.b->loop, &c.n_begun, 1);
    end_sleeper(&s, &c);
    test_command_done(&c);
    close_stage(&s);
}

TEST(an_exit_code_waits_for_the_next_backend_until_it_is_forgotten)
{
    struct agx_loop *l;
    struct test_command c;
    struct stage s;

    open_running(&s);
    l = s.b->loop;
    begin(&s, &c, "exec-1", COMMAND_LATER);
    test_backend_close(s.b);
    conformance_backend_closed(l);
    /* Nobody is there when it ends; where the backend writes the logs, nor to say so in them. */
    for (unsigned i = 0; i < 100 && !test_caplog_read(&c.out, 0, 0).ended; i++)
        test_pause(l, 20);
    s.b = conformance_backend_open(l);
    test_command_start(s.b, &s.sb, &c, true, false);
    ASSERT_INT(7, test_command_wait(s.b, &c));
    ASSERT_OK(agx_backend_forget_exec(s.b, s.sb.id, c.exec.id, NULL));
    test_command_start(s.b, &s.sb, &c, true, false);
    test_wait(l, &c.n_end, 1);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    close_stage(&s);
}

/* A process like a daemon: makes the sandbox, starts the command, says so, and waits. */
static _Noreturn void be_a_daemon(struct stage *s, struct test_command *c, int told)
{
    s->b = conformance_backend_open(test_loop_open());
    test_backend_ok(s->b, &s->sb, AGX_DO_CREATE);
    test_command_start(s->b, &s->sb, c, false, false);
    test_wait(s->b->loop, &c->n_begun, 1);
    (void)!write(told, "", 1);
    for (;;)
        test_pause(s->b->loop, 1000);
}

TEST(what_a_killed_daemon_started_runs_on)
{
    struct test_command c;
    struct stage s;
    int told[2];
    pid_t pid;
    char byte;

    conformance_backend_begin();
    make_sandbox(&s.sb, "conform-1", 0);
    prepare(&s, &c, "exec-1", COMMAND_LATER);
    ASSERT_INT(0, pipe(told));
    pid = fork();
    ASSERT_TRUE(pid >= 0);
    if (pid == 0)
        be_a_daemon(&s, &c, told[1]);
    close(told[1]);
    ASSERT_INT(1, read(told[0], &byte, 1));
    ASSERT_INT(0, kill(pid, SIGKILL));
    ASSERT_TRUE(waitpid(pid, NULL, 0) == pid);
    close(told[0]);
    s.b = conformance_backend_open(test_loop_open());
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    test_command_start(s.b, &s.sb, &c, true, false);
    ASSERT_INT(7, test_command_wait(s.b, &c));
    test_command_done(&c);
    close_stage(&s);
}

TEST(adopting_what_was_never_started_is_unknown)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    prepare(&s, &c, "exec-1", COMMAND_TRUE);
    test_command_start(s.b, &s.sb, &c, true, false);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_command_is_refused_where_nothing_runs)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    prepare(&s, &c, "exec-1", COMMAND_TRUE);
    test_command_start(s.b, &s.sb, &c, false, false);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_TRUE(strlen(c.text) > 0);
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_kill_ends_the_whole_group)
{
    static const enum conformance_command commands[] = { COMMAND_SLEEP, COMMAND_STUBBORN,
                                                         COMMAND_FORKER };

    for (size_t i = 0; i < AGX_ARRAY_LEN(commands); i++) {
        struct test_command c;
        struct stage s;

        open_running(&s);
        if (commands[i] == COMMAND_STUBBORN)
            begin_stubborn(&s, &c, "exec-1");
        else
            begin(&s, &c, "exec-1", commands[i]);
        test_pause(s.b->loop, 50); /* for a leader that ends */
        ASSERT_UINT(0, c.n_end);
        ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 50).code);
        test_wait(s.b->loop, &c.n_end, 1);
        ASSERT_UINT(1, c.n_exited);
        ASSERT_TRUE(test_caplog_read(&c.out, 0, 0).ended);
        ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 50).code);
        test_command_done(&c);
        close_stage(&s);
    }
}

TEST(a_kill_of_nothing_is_gone_at_once)
{
    struct stage s;

    open_running(&s);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, "exec-none", 50).code);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, "conform-none", "exec-none", 50).code);
    close_stage(&s);
}

TEST(two_may_kill_and_both_hear_of_the_end)
{
    struct test_reply r[2] = { { 0 } };
    struct test_command c;
    struct stage s;

    open_running(&s);
    begin_stubborn(&s, &c, "exec-1");
    for (size_t i = 0; i < 2; i++)
        ASSERT_OK(agx_backend_exec_kill(s.b, s.sb.id, c.exec.id, 50, test_reply_done, &r[i],
                                        &r[i].op, NULL));
    for (size_t i = 0; i < 2; i++) {
        test_wait(s.b->loop, &r[i].n_done, 1);
        ASSERT_INT(AGX_OK, r[i].code);
    }
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_INT(137, c.exit_code);
    test_command_done(&c);
    close_stage(&s);
}

TEST(stop_and_delete_end_the_commands_too)
{
    static const enum agx_do verbs[] = { AGX_DO_STOP, AGX_DO_HALT, AGX_DO_DELETE };

    for (size_t i = 0; i < AGX_ARRAY_LEN(verbs); i++) {
        struct test_command c;
        struct stage s;

        open_running(&s);
        begin(&s, &c, "exec-1", COMMAND_SLEEP);
        test_backend_ok(s.b, &s.sb, verbs[i]);
        test_wait(s.b->loop, &c.n_end, 1);
        ASSERT_TRUE(c.n_exited + c.n_lost == 1);
        ASSERT_TRUE(test_caplog_read(&c.out, 0, 0).ended);
        test_command_done(&c);
        close_stage(&s);
    }
}

TEST(a_deleted_sandbox_knows_no_command)
{
    struct test_command c;
    struct stage s;

    open_running(&s);
    run(&s, &c, "exec-1", COMMAND_TRUE, 0);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    test_command_start(s.b, &s.sb, &c, true, false);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_unknown);
    test_command_done(&c);
    close_stage(&s);
}

TEST(descriptors_are_the_backends_own)
{
    struct test_command c;
    struct test_caplog copy;
    struct stage s;

    open_running(&s);
    prepare(&s, &c, "exec-1", COMMAND_HELLO);
    copy = (struct test_caplog){ .data_fd = dup(c.out.data_fd), .index_fd = dup(c.out.index_fd) };
    test_command_start(s.b, &s.sb, &c, false, false);
    test_caplog_close(&c.out); /* before anything was sent */
    c.out = copy;
    ASSERT_INT(0, test_command_wait(s.b, &c));
    test_log_is(&c.out, "hello\n");
    test_command_done(&c);
    close_stage(&s);
}

TEST(many_commands_at_a_time)
{
    enum { N = 100 };
    static struct test_command c[N];
    struct stage s;

    open_running(&s);
    for (unsigned i = 0; i < N; i++) {
        char id[32];

        (void)snprintf(id, sizeof(id), "exec-%u", i);
        prepare(&s, &c[i], id, i % 2 == 0 ? COMMAND_HELLO : COMMAND_EXIT_3);
        test_command_start(s.b, &s.sb, &c[i], false, false);
    }
    for (unsigned i = 0; i < N; i++) {
        ASSERT_INT(i % 2 == 0 ? 0 : 3, test_command_wait(s.b, &c[i]));
        if (i % 2 == 0)
            test_log_is(&c[i].out, "hello\n");
        test_command_done(&c[i]);
    }
    close_stage(&s);
}

/* The fake backend and its world: the script, the journal, and faults between the two. */
#include "backend/target.h"
#include "tests/support/fake.h"
#include "tests/support/random.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

struct stage {
    struct test_fake world;
    struct agx_backend *b;
    struct agx_sandbox sb;
    unsigned n_news; /* of all */
    char news_of[AGX_IDENT_MAX + 1];
};

static void on_news(void *user, const char *sandbox_id)
{
    struct stage *s = user;

    s->n_news++;
    (void)snprintf(s->news_of, sizeof(s->news_of), "%s", sandbox_id ? sandbox_id : "*");
}

static void make_sandbox(struct agx_sandbox *sb, const char *id, const char *label,
                         const char *value)
{
    struct agx_companion *c = NULL;
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "fake:1", NULL));
    ASSERT_OK(agx_spec_add_companion(&spec, &c, NULL));
    ASSERT_OK(agx_text_set(&c->name, "cache", NULL));
    if (label)
        ASSERT_OK(agx_pairs_set(&spec.labels, agx_str_from(label), agx_str_from(value), NULL));
    ASSERT_OK(agx_sandbox_init(sb, id, &spec, NULL));
}

static void open_stage(struct stage *s)
{
    *s = (struct stage){ .world = test_fake_make() };
    s->b = test_fake_open(&s->world, test_loop_open());
    s->b->news = on_news;
    s->b->news_user = s;
    make_sandbox(&s->sb, "box-1", NULL, NULL);
}

static void close_stage(struct stage *s)
{
    struct agx_loop *l = s->b->loop;

    test_backend_close(s->b);
    agx_sandbox_done(&s->sb);
    test_loop_close(l);
    test_fake_remove(&s->world);
}

static pid_t world_pid(const struct test_fake *t)
{
    _cleanup_buf_ struct agx_buf journal = AGX_BUF_INIT(1 << 20);
    struct agx_str rest, line;
    uint64_t pid = 0;
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/journal", t->dir);
    ASSERT_OK(agx_fd_read_file(AT_FDCWD, path, &journal, NULL));
    rest = agx_buf_peek(&journal);
    while (agx_str_split(&rest, '\n', &line)) {
        if (agx_str_starts(line, AGX_STR("world "))) {
            line = agx_str_skip(line, strlen("world "));
            ASSERT_TRUE(agx_parse_u64((struct agx_str){ line.ptr, agx_str_find(line, ' ') },
                                      INT32_MAX, &pid));
        }
    }
    ASSERT_TRUE(pid > 1);
    return (pid_t)pid;
}

static void begin(struct stage *s, struct test_command *c, const char *id, const char *word,
                  const char *argument)
{
    test_command_init(c, id, &s->sb);
    ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(word), NULL));
    if (argument)
        ASSERT_OK(agx_words_add(&c->exec.command, agx_str_from(argument), NULL));
    test_command_start(s->b, &s->sb, c, false, true);
}

/* ---- script, labels, journal ---- */

TEST(the_journal_counts_what_was_done_and_what_was_asked)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    for (int i = 0; i < 3; i++)
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "true", NULL);
    ASSERT_INT(0, test_command_wait(s.b, &c));
    test_command_start(s.b, &s.sb, &c, false, false);
    ASSERT_INT(0, test_command_wait(s.b, &c));
    ASSERT_UINT(1, test_fake_count(&s.world, "make box-1 #1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "make box-1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "start box-1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "companion-start box-1 0"));
    ASSERT_UINT(1, test_fake_count(&s.world, "ask-create box-1 #3"));
    ASSERT_UINT(1, test_fake_count(&s.world, "exec-start box-1 exec-1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "exec-exit box-1 exec-1 0 #1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "ask-exec box-1 exec-1 #2"));
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_UINT(1, test_fake_count(&s.world, "remove box-1"));
    ASSERT_UINT(1, test_fake_count(&s.world, "make box-1 #2"));
    test_command_done(&c);
    close_stage(&s);
}

TEST(rules_delay_and_fail_and_run_out)
{
    struct test_reply r;
    uint64_t before;
    struct stage s;

    open_stage(&s);
    test_fake_script(&s.world, "create box-* x1 fail INTERNAL no luck\n# a comment\n\n"
                               "stop * delay 30ms");
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_INTERNAL, r.code);
    ASSERT_CSTR("no luck", r.text);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_seen(s.b, s.sb.id)); /* left for a delete */
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    before = uv_hrtime();
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    ASSERT_TRUE(uv_hrtime() - before >= 29000000);
    test_fake_script(&s.world, "clear");
    close_stage(&s);
}

TEST(scripts_that_make_no_sense_are_refused)
{
    static const char *const texts[] = { "frobnicate * hang",
                                         "create",
                                         "create * jump",
                                         "create * fail NO_SUCH_CODE x",
                                         "create * delay soon",
                                         "create * die",
                                         "now die box-none",
                                         "now dance box-none",
                                         "create * companion-fail x" };
    struct stage s;

    open_stage(&s);
    ASSERT_INT(0, test_fake_run(&s.world, "--start", NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        if (test_fake_run(&s.world, "--script", texts[i]) != 1)
            FAIL("'%s' was taken", texts[i]);
    }
    ASSERT_INT(2, test_fake_run(&s.world, "--no-such-option", NULL));
    close_stage(&s);
}

TEST(labels_script_their_own_sandbox)
{
    struct agx_sandbox unlucky;
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    make_sandbox(&unlucky, "box-2", "fake.create", "delay 1ms; fail UNAVAILABLE no room");
    ASSERT_OK(agx_backend_check(s.b, &unlucky.spec, NULL));
    r = test_backend_do(s.b, &unlucky, AGX_DO_CREATE);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_CSTR("no room", r.text);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    agx_sandbox_done(&unlucky);
    close_stage(&s);
}

TEST(check_refuses_labels_that_make_no_sense_and_those_that_ask_for_it)
{
    static const struct {
        const char *label, *value, *words;
    } cases[] = {
        { "fake.check", "no gpus here", "labels[fake.check]: no gpus here" },
        { "fake.create", "dance", "labels[fake.create]: 'dance' is no action" },
        { "fake.sing", "hang", "labels[fake.sing]: no such verb" },
    };
    struct stage s;

    open_stage(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_error *err = NULL;
        struct agx_sandbox sb;

        make_sandbox(&sb, "box-2", cases[i].label, cases[i].value);
        ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_backend_check(s.b, &sb.spec, &err));
        ASSERT_MESSAGE(err, cases[i].words);
        agx_error_free(err);
        agx_sandbox_done(&sb);
    }
    close_stage(&s);
}

TEST(a_main_process_dies_as_its_rule_says)
{
    static const struct {
        const char *action;
        enum agx_seen seen;
    } cases[] = { { "die 5ms", AGX_SEEN_EXITED },
                  { "oom 5ms", AGX_SEEN_OOM },
                  { "vanish 5ms", AGX_SEEN_MISSING } };
    struct stage s;

    open_stage(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        test_fake_script(&s.world, "create box-1 x1 %s", cases[i].action);
        s.n_news = 0;
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
        test_wait(s.b->loop, &s.n_news, 1);
        ASSERT_CSTR("box-1", s.news_of);
        ASSERT_INT(cases[i].seen, test_backend_seen(s.b, s.sb.id));
        test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    }
    close_stage(&s);
}

TEST(commands_are_lost_with_the_main_process)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "sleep", "1000");
    test_wait(s.b->loop, &c.n_begun, 1);
    test_fake_script(&s.world, "now die box-1");
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    ASSERT_CSTR("the main process ended", c.text);
    test_command_start(s.b, &s.sb, &c, true, false); /* and stay so for who asks later */
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    test_command_done(&c);
    close_stage(&s);
}

TEST(companions_fail_and_die_as_told)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    test_fake_script(&s.world, "create * x1 companion-fail 0 not today");
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_UINT(1, r.companions_failed);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_look(s.b, s.sb.id).companions[0]);
    test_backend_ok(s.b, &s.sb, AGX_DO_REVIVE);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_look(s.b, s.sb.id).companions[0]);
    test_fake_script(&s.world, "now companion-die box-1 0");
    test_wait(s.b->loop, &s.n_news, 1);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_look(s.b, s.sb.id).companions[0]);
    close_stage(&s);
}

TEST(execs_and_kills_and_looks_follow_rules)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world,
                     "exec * x1 fail RESOURCE_EXHAUSTED too many\nkill * x1 fail INTERNAL "
                     "kill\nlook * x1 fail UNAVAILABLE look");
    begin(&s, &c, "exec-1", "true", NULL);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, c.code);
    test_command_done(&c);
    ASSERT_INT(AGX_UNAVAILABLE, test_backend_look(s.b, s.sb.id).code);
    test_fake_script(&s.world, "exec * x1 delay 20ms");
    begin(&s, &c, "exec-2", "sleep", "1000");
    test_wait(s.b->loop, &c.n_begun, 1);
    ASSERT_INT(AGX_INTERNAL, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(143, test_command_wait(s.b, &c));
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_command_that_waits_to_begin_can_be_killed)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world, "exec * delay 1000s");
    begin(&s, &c, "exec-1", "true", NULL);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(0, c.n_begun);
    ASSERT_UINT(0, test_fake_count(&s.world, "exec-start"));
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_hanging_operation_goes_on_when_it_is_released)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    test_fake_script(&s.world, "create * x1 hang");
    test_backend_begin(s.b, &s.sb, AGX_DO_CREATE, &r);
    test_wait(s.b->loop, &r.n_begun, 1);
    test_fake_script(&s.world, "now release box-1");
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_INT(AGX_OK, r.code);
    close_stage(&s);
}

/* ---- commands ---- */

TEST(a_list_of_commands_runs_in_order)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_command_init(&c, "exec-1", &s.sb);
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command,
                            AGX_STR("echo a  b; nothing;sleep 10ms ;; print 3; exit 4; echo never"),
                            NULL));
    test_command_start(s.b, &s.sb, &c, false, false);
    ASSERT_INT(4, test_command_wait(s.b, &c));
    test_log_is(&c.out, "a b\n000");
    test_log_is(&c.err, "nothing: not found\n");
    test_command_done(&c);
    close_stage(&s);
}

TEST(yes_writes_until_it_is_killed_and_its_log_stays_capped)
{
    struct agx_caplog_piece p = { 0 };
    struct test_command c;
    struct stage s;
    uint8_t byte;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "yes", NULL);
    while (p.total < 1000000) {
        test_pause(s.b->loop, 5);
        ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, 0, &byte, 1, &p, NULL));
    }
    ASSERT_TRUE(lseek(c.out.data_fd, 0, SEEK_END) <= TEST_HEAD_MAX + TEST_TAIL_MAX);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(143, test_command_wait(s.b, &c));
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_writer_of_more_than_a_pipe_waits_until_somebody_reads)
{
    static char bytes[200000];
    struct test_reply r = { 0 };
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_command_init(&c, "exec-1", &s.sb);
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("sleep 400ms; cat"), NULL));
    test_command_start(s.b, &s.sb, &c, false, true);
    ASSERT_OK(agx_backend_exec_write(s.b, s.sb.id, "exec-1", agx_str_bytes(bytes, sizeof(bytes)),
                                     false, test_reply_done, &r, &r.op, NULL));
    test_wait(s.b->loop, &c.n_begun, 1);
    ASSERT_UINT(0, r.n_done);
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_INT(AGX_OK, test_command_write(s.b, &c, AGX_STR(""), true));
    ASSERT_INT(0, test_command_wait(s.b, &c));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_backend_exec_write(s.b, s.sb.id, "exec-1",
                                       (struct agx_str){ bytes, AGX_BACKEND_WRITE_MAX + 1 }, false,
                                       test_reply_done, &r, &r.op, NULL));
    test_command_done(&c);
    close_stage(&s);
}

/* ---- faults ---- */

TEST(a_world_that_is_killed_ends_what_waits_and_another_is_started)
{
    struct test_command c, adopted;
    struct test_reply r, look = { 0 };
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "sleep", "1000");
    test_wait(s.b->loop, &c.n_begun, 1);
    test_fake_script(&s.world, "stop * hang\nlook * hang");
    test_backend_begin(s.b, &s.sb, AGX_DO_STOP, &r);
    ASSERT_OK(agx_backend_look(s.b, NULL, test_reply_seen, test_reply_done, &look, &look.op, NULL));
    test_pause(s.b->loop, 10);
    ASSERT_INT(0, kill(world_pid(&s.world), SIGKILL));
    test_wait(s.b->loop, &r.n_done, 1);
    test_wait(s.b->loop, &look.n_done, 1);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_INT(AGX_UNAVAILABLE, look.code);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    test_wait(s.b->loop, &s.n_news, 1);
    ASSERT_CSTR("*", s.news_of);
    ASSERT_UINT(2, test_fake_count(&s.world, "world "));
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    test_command_init(&adopted, "exec-1", &s.sb);
    test_command_start(s.b, &s.sb, &adopted, true, false);
    test_wait(s.b->loop, &adopted.n_end, 1);
    ASSERT_UINT(1, adopted.n_unknown);
    test_command_done(&c);
    test_command_done(&adopted);
    close_stage(&s);
}

TEST(a_connection_that_breaks_costs_operations_but_no_command)
{
    struct test_command c, slow;
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "sleep", "200ms");
    test_wait(s.b->loop, &c.n_begun, 1);
    test_fake_script(&s.world, "exec * delay 100ms\nstop * x1 hang");
    begin(&s, &slow, "exec-2", "exit", "5");
    test_backend_begin(s.b, &s.sb, AGX_DO_STOP, &r);
    test_pause(s.b->loop, 10);
    test_fake_script(&s.world, "drop");
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    test_wait(s.b->loop, &s.n_news, 1);
    ASSERT_CSTR("*", s.news_of);
    ASSERT_INT(5, test_command_wait(s.b, &slow));
    ASSERT_INT(0, test_command_wait(s.b, &c));
    ASSERT_UINT(1, test_fake_count(&s.world, "world "));
    ASSERT_INT(AGX_UNAVAILABLE, test_backend_do(s.b, &s.sb, AGX_DO_DELETE).code); /* it hangs on */
    test_command_done(&c);
    test_command_done(&slow);
    close_stage(&s);
}

TEST(a_start_that_never_reached_the_world_is_refused)
{
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world, "exec * hang");
    begin(&s, &c, "exec-1", "true", NULL);
    test_pause(s.b->loop, 10);
    test_fake_script(&s.world, "drop");
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_INT(AGX_UNAVAILABLE, c.code);
    test_command_done(&c);
    close_stage(&s);
}

TEST(a_silent_world_counts_as_dead_until_it_speaks_again)
{
    struct agx_fake_config config = AGX_FAKE_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct stage s = { .world = test_fake_make() };
    struct test_command c;
    struct test_reply r;
    pid_t pid;

    config.dir = s.world.dir;
    config.program = AGX_FAKEWORLD;
    config.ping_ms = 700;
    ASSERT_OK(agx_backend_fake_open(l, &config, &s.b, NULL));
    s.b->news = on_news;
    s.b->news_user = &s;
    make_sandbox(&s.sb, "box-1", NULL, NULL);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    begin(&s, &c, "exec-1", "sleep", "1000");
    test_wait(l, &c.n_begun, 1);
    pid = world_pid(&s.world);
    ASSERT_INT(0, kill(pid, SIGSTOP));
    test_backend_begin(s.b, &s.sb, AGX_DO_STOP, &r);
    test_wait(l, &r.n_done, 1);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    test_wait(l, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    ASSERT_INT(0, kill(pid, SIGCONT));
    test_wait(l, &s.n_news, 1);
    (void)test_backend_seen(s.b, s.sb.id);
    test_command_done(&c);
    close_stage(&s);
}

TEST(without_the_program_calls_end_with_unavailable)
{
    struct agx_fake_config config = AGX_FAKE_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct stage s = { .world = test_fake_make() };
    struct agx_error *err = NULL;
    struct test_reply r = { 0 };

    config.dir = s.world.dir;
    config.program = "/nonexistent/agentix-fakeworld";
    config.retry_first_ms = 60000;
    config.retry_max_ms = 60000;
    ASSERT_OK(agx_backend_fake_open(l, &config, &s.b, NULL));
    make_sandbox(&s.sb, "box-1", NULL, NULL);
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_CODE(AGX_UNAVAILABLE,
                agx_backend_look(s.b, NULL, test_reply_seen, test_reply_done, &r, &r.op, &err));
    ASSERT_MESSAGE(err, s.world.dir);
    agx_error_free(err);
    close_stage(&s);
}

TEST(a_directory_that_cannot_be_is_refused)
{
    struct agx_fake_config config = AGX_FAKE_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct agx_backend *b = NULL;
    char longest[300];

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_fake_open(l, &config, &b, NULL));
    config.dir = longest;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_fake_open(l, &config, &b, NULL));
    config.dir = "/nonexistent/dir";
    ASSERT_CODE(AGX_NOT_FOUND, agx_backend_fake_open(l, &config, &b, NULL));
    ASSERT_NULL(b);
    test_loop_close(l);
}

TEST(a_backend_is_opened_by_its_name)
{
    struct agx_loop *l = test_loop_open();
    struct agx_backend *b = NULL;
    struct agx_error *err = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, "podman:x", &b, &err));
    ASSERT_MESSAGE(err, "there is no backend 'podman'; there is: fake:DIR");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, "fake", &b, &err));
    ASSERT_MESSAGE(err, "needs a directory");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_NOT_FOUND, agx_backend_open(l, "fake:/nonexistent/dir", &b, NULL));
    ASSERT_NULL(b);
    test_loop_close(l);
}

TEST(what_has_no_record_is_removed_by_its_id)
{
    struct agx_sandbox bare;
    struct agx_spec nothing;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    agx_spec_init(&nothing);
    ASSERT_OK(agx_sandbox_init(&bare, s.sb.id, &nothing, NULL));
    test_backend_ok(s.b, &bare, AGX_DO_DELETE);
    ASSERT_UINT(1, test_fake_count(&s.world, "companion-stop box-1 0"));
    ASSERT_UINT(1, test_fake_count(&s.world, "remove box-1"));
    agx_sandbox_done(&bare);
    close_stage(&s);
}

TEST(backends_that_open_at_the_same_moment_share_one_world)
{
    struct agx_backend *others[4];
    struct stage s;

    open_stage(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++)
        others[i] = test_fake_open(&s.world, s.b->loop);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++) {
        ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(others[i], s.sb.id));
        test_backend_close(others[i]);
    }
    ASSERT_UINT(1, test_fake_count(&s.world, "world "));
    close_stage(&s);
}

/* Until the process is gone. */
static void wait_for_end(pid_t pid)
{
    for (int i = 0; i < 5000; i++) {
        if (kill(pid, 0) < 0)
            return;
        usleep(10000);
    }
    FAIL("the world did not end");
}

TEST(a_world_ends_when_told_without_its_directory_its_parent_or_company)
{
    struct test_fake t = test_fake_make(), other;
    char text[32];
    pid_t parent, pid;

    ASSERT_INT(0, test_fake_run(&t, "--start", NULL));
    pid = world_pid(&t);
    ASSERT_INT(0, test_fake_run(&t, "--start", NULL)); /* it runs already */
    ASSERT_INT(pid, world_pid(&t));
    ASSERT_INT(0, test_fake_run(&t, "--stop", NULL));
    wait_for_end(pid);
    ASSERT_INT(1, test_fake_run(&t, "--stop", NULL));

    ASSERT_INT(0, setenv("AGENTIX_FAKE_IDLE", "20ms", 1));
    ASSERT_INT(0, test_fake_run(&t, "--start", NULL));
    wait_for_end(world_pid(&t));
    ASSERT_INT(0, unsetenv("AGENTIX_FAKE_IDLE"));

    parent = fork();
    if (parent == 0) {
        pause();
        _exit(0);
    }
    (void)snprintf(text, sizeof(text), "%d", (int)parent);
    ASSERT_INT(0, setenv("AGENTIX_FAKE_PARENT", text, 1));
    ASSERT_INT(0, test_fake_run(&t, "--start", NULL));
    pid = world_pid(&t);
    ASSERT_INT(0, kill(parent, SIGKILL));
    ASSERT_TRUE(waitpid(parent, NULL, 0) == parent);
    wait_for_end(pid);

    other = test_fake_make(); /* sets the parent again */
    test_fake_remove(&t);
    ASSERT_INT(0, test_fake_run(&other, "--start", NULL));
    pid = world_pid(&other);
    test_fake_remove(&other);
    wait_for_end(pid);
}

TEST(bytes_that_are_no_message_cost_their_own_connection_only)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    struct test_random r;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_random_init(&r, "AGX_FAKE_SEED");
    printf("# AGX_FAKE_SEED=%ju\n", (uintmax_t)r.seed);
    (void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/world.sock", s.world.dir);
    for (int i = 0; i < 200; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        uint8_t bytes[64];

        ASSERT_INT(0, connect(fd, (const struct sockaddr *)&sa, sizeof(sa)));
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)test_random_below(&r, 4);
        if (i % 4 != 0) { /* a good header, whatever follows */
            bytes[0] = (uint8_t)(14 + test_random_below(&r, 51));
            bytes[1] = bytes[2] = bytes[3] = 0;
            bytes[4] = (uint8_t)(1 + test_random_below(&r, 11)); /* all but the world's end */
            bytes[5] = (uint8_t)(test_random_below(&r, 4) == 0 ? 4 : 0);
        }
        ASSERT_INT((int)sizeof(bytes), (int)send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL));
        close(fd);
    }
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    ASSERT_UINT(1, test_fake_count(&s.world, "world "));
    close_stage(&s);
}

TEST(a_full_disk_costs_output_and_nothing_else)
{
    struct rlimit limit, before;
    struct agx_caplog_piece p;
    struct test_command c;
    struct stage s;
    uint8_t byte;

    ASSERT_INT(0, getrlimit(RLIMIT_FSIZE, &before));
    limit = before;
    limit.rlim_cur = 1500;
    ASSERT_INT(0, setrlimit(RLIMIT_FSIZE, &limit)); /* the world inherits it */
    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(0, setrlimit(RLIMIT_FSIZE, &before));
    begin(&s, &c, "exec-1", "print", "100000");
    ASSERT_INT(0, test_command_wait(s.b, &c));
    ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, 99999, &byte, 1, &p, NULL));
    ASSERT_UINT(100000, p.total);
    ASSERT_UINT(1, p.len);
    ASSERT_TRUE(lseek(c.out.data_fd, 0, SEEK_END) <= 1500);
    test_command_done(&c);
    close_stage(&s);
}

TEST(abandoned_calls_are_not_heard_of_again)
{
    struct test_reply r, look = { 0 }, kill_reply = { 0 };
    struct test_command c;
    struct stage s;

    open_stage(&s);
    test_backend_begin(s.b, &s.sb, AGX_DO_CREATE, &r);
    agx_backend_abandon(r.op);
    ASSERT_OK(agx_backend_look(s.b, NULL, test_reply_seen, test_reply_done, &look, &look.op, NULL));
    agx_backend_cancel(look.op); /* cancelled, so due; then given up all the same */
    agx_backend_abandon(look.op);
    while (test_backend_seen(s.b, s.sb.id) != AGX_SEEN_RUNNING)
        continue;
    begin(&s, &c, "exec-1", "stubborn", NULL);
    test_wait(s.b->loop, &c.n_begun, 1);
    ASSERT_OK(agx_backend_exec_kill(s.b, s.sb.id, "exec-1", 20, test_reply_done, &kill_reply,
                                    &kill_reply.op, NULL));
    agx_backend_cancel(kill_reply.op);
    agx_backend_cancel(c.op); /* of no effect */
    test_wait(s.b->loop, &kill_reply.n_done, 1);
    ASSERT_INT(AGX_CANCELLED, kill_reply.code);
    ASSERT_INT(137, test_command_wait(s.b, &c));
    ASSERT_UINT(0, r.n_done + look.n_done);
    test_command_done(&c);
    close_stage(&s);
}

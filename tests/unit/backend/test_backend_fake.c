/* The fake backend and its world: the script, the journal, and commands. */
#include "tests/support/fake_stage.h"

/* ---- script, labels, journal ---- */

TEST(the_journal_counts_what_was_done_and_what_was_asked)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    for (int i = 0; i < 3; i++)
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "true", NULL);
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
    test_stage_close(&s);
}

TEST(rules_delay_and_fail_and_run_out)
{
    struct test_reply r;
    uint64_t before;
    struct test_stage s;

    test_stage_open(&s);
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
    test_stage_close(&s);
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
    struct test_stage s;

    test_stage_open(&s);
    ASSERT_INT(0, test_fake_run(&s.world, "--start", NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        if (test_fake_run(&s.world, "--script", texts[i]) != 1)
            FAIL("'%s' was taken", texts[i]);
    }
    ASSERT_INT(2, test_fake_run(&s.world, "--no-such-option", NULL));
    test_stage_close(&s);
}

TEST(labels_script_their_own_sandbox)
{
    struct agx_sandbox unlucky;
    struct test_reply r;
    struct test_stage s;

    test_stage_open(&s);
    test_stage_sandbox(&unlucky, "box-2", "fake.create", "delay 1ms; fail UNAVAILABLE no room");
    ASSERT_OK(test_backend_check(s.b, &unlucky.spec, NULL));
    r = test_backend_do(s.b, &unlucky, AGX_DO_CREATE);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_CSTR("no room", r.text);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    agx_sandbox_done(&unlucky);
    test_stage_close(&s);
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
    struct test_stage s;

    test_stage_open(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct agx_error *err = NULL;
        struct agx_sandbox sb;

        test_stage_sandbox(&sb, "box-2", cases[i].label, cases[i].value);
        ASSERT_CODE(AGX_FAILED_PRECONDITION, test_backend_check(s.b, &sb.spec, &err));
        ASSERT_MESSAGE(err, cases[i].words);
        agx_error_free(err);
        agx_sandbox_done(&sb);
    }
    test_stage_close(&s);
}

TEST(check_warns_as_a_label_says)
{
    struct agx_words warnings = { 0 };
    struct agx_sandbox sb;
    struct test_stage s;

    test_stage_open(&s);
    test_stage_sandbox(&sb, "box-2", "fake.warn", "mind the gap");
    ASSERT_OK(agx_backend_check(s.b, &sb.spec, &warnings, NULL));
    ASSERT_UINT(1, warnings.len);
    ASSERT_CSTR("mind the gap", warnings.items[0]);
    agx_words_done(&warnings);
    agx_sandbox_done(&sb);
    test_stage_close(&s);
}

TEST(a_main_process_dies_as_its_rule_says)
{
    static const struct {
        const char *action;
        enum agx_seen seen;
    } cases[] = { { "die 5ms", AGX_SEEN_EXITED },
                  { "oom 5ms", AGX_SEEN_OOM },
                  { "vanish 5ms", AGX_SEEN_MISSING } };
    struct test_stage s;

    test_stage_open(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        test_fake_script(&s.world, "create box-1 x1 %s", cases[i].action);
        s.n_news = 0;
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
        test_wait(s.b->loop, &s.n_news, 1);
        ASSERT_CSTR("box-1", s.news_of);
        ASSERT_INT(cases[i].seen, test_backend_seen(s.b, s.sb.id));
        test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    }
    test_stage_close(&s);
}

TEST(whoever_scripts_hears_the_answer_behind_any_number_of_news)
{
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world, "now die box-1\nnow oom box-1\nnow die box-1");
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_seen(s.b, s.sb.id));
    test_stage_close(&s);
}

TEST(commands_are_lost_with_the_main_process)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "sleep", "1000");
    test_wait(s.b->loop, &c.n_begun, 1);
    test_fake_script(&s.world, "now die box-1");
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    ASSERT_CSTR("the main process ended", c.text);
    test_command_start(s.b, &s.sb, &c, true, false); /* and stay so for who asks later */
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_lost);
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(companions_fail_and_die_as_told)
{
    struct test_reply r;
    struct test_stage s;

    test_stage_open(&s);
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
    test_stage_close(&s);
}

TEST(execs_and_kills_and_looks_follow_rules)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world,
                     "exec * x1 fail RESOURCE_EXHAUSTED too many\nkill * x1 fail INTERNAL "
                     "kill\nlook * x1 fail UNAVAILABLE look");
    test_stage_begin(&s, &c, "exec-1", "true", NULL);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, c.code);
    test_command_done(&c);
    ASSERT_INT(AGX_UNAVAILABLE, test_backend_look(s.b, s.sb.id).code);
    test_fake_script(&s.world, "exec * x1 delay 20ms");
    test_stage_begin(&s, &c, "exec-2", "sleep", "1000");
    test_wait(s.b->loop, &c.n_begun, 1);
    ASSERT_INT(AGX_INTERNAL, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(143, test_command_wait(s.b, &c));
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(a_command_that_waits_to_begin_can_be_killed)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world, "exec * delay 1000s");
    test_stage_begin(&s, &c, "exec-1", "true", NULL);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(0, c.n_begun);
    ASSERT_UINT(0, test_fake_count(&s.world, "exec-start"));
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(a_hanging_operation_goes_on_when_it_is_released)
{
    struct test_reply r;
    struct test_stage s;

    test_stage_open(&s);
    test_fake_script(&s.world, "create * x1 hang");
    test_backend_begin(s.b, &s.sb, AGX_DO_CREATE, &r);
    test_wait(s.b->loop, &r.n_begun, 1);
    test_fake_script(&s.world, "now release box-1");
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_INT(AGX_OK, r.code);
    test_stage_close(&s);
}

/* ---- commands ---- */

TEST(a_list_of_commands_runs_in_order)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
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
    test_stage_close(&s);
}

TEST(yes_writes_until_it_is_killed_and_its_log_stays_capped)
{
    struct agx_caplog_piece p = { 0 };
    struct test_command c;
    struct test_stage s;
    uint8_t byte;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "yes", NULL);
    while (p.total < 1000000) {
        test_pause(s.b->loop, 5);
        ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, 0, &byte, 1, &p, NULL));
    }
    ASSERT_TRUE(lseek(c.out.data_fd, 0, SEEK_END) <= TEST_HEAD_MAX + TEST_TAIL_MAX);
    ASSERT_INT(AGX_OK, test_command_kill(s.b, s.sb.id, c.exec.id, 10).code);
    ASSERT_INT(143, test_command_wait(s.b, &c));
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(a_writer_of_more_than_a_pipe_waits_until_somebody_reads)
{
    static char bytes[200000];
    struct test_reply r = { 0 };
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_command_init(&c, "exec-1", &s.sb);
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("sh"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("-c"), NULL));
    ASSERT_OK(agx_words_add(&c.exec.command, AGX_STR("sleep 3s; cat"), NULL));
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
    test_stage_close(&s);
}

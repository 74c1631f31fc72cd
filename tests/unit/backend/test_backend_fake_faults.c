/* Faults between the fake backend and its world, which is a separate process. */
#include "tests/support/fake_stage.h"
#include "tests/support/paths.h"
#include "tests/support/random.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

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

TEST(a_world_that_is_killed_ends_what_waits_and_another_is_started)
{
    struct test_command c, adopted;
    struct test_reply r, look = { 0 };
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "sleep", "1000");
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
    test_stage_close(&s);
}

TEST(a_connection_that_breaks_costs_operations_but_no_command)
{
    struct test_command c, slow;
    struct test_reply r;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "sleep", "200ms");
    test_wait(s.b->loop, &c.n_begun, 1);
    test_fake_script(&s.world, "exec * delay 100ms\nstop * x1 hang");
    test_stage_begin(&s, &slow, "exec-2", "exit", "5");
    test_backend_begin(s.b, &s.sb, AGX_DO_STOP, &r);
    while (test_fake_count(&s.world, "ask-stop box-1") == 0)
        test_pause(s.b->loop, 5);
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
    test_stage_close(&s);
}

TEST(a_start_that_never_reached_the_world_is_refused)
{
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_fake_script(&s.world, "exec * hang");
    test_stage_begin(&s, &c, "exec-1", "true", NULL);
    test_pause(s.b->loop, 10);
    test_fake_script(&s.world, "drop");
    test_wait(s.b->loop, &c.n_end, 1);
    ASSERT_UINT(1, c.n_refused);
    ASSERT_INT(AGX_UNAVAILABLE, c.code);
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(a_silent_world_counts_as_dead_until_it_speaks_again)
{
    struct agx_fake_config config = AGX_FAKE_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct test_stage s = { .world = test_fake_make() };
    struct test_command c;
    struct test_reply r;
    pid_t pid;

    config.dir = s.world.dir;
    config.program = test_path_fakeworld;
    config.ping_ms = 3000; /* more than a busy machine holds it up */
    ASSERT_OK(agx_backend_fake_open(l, &config, &s.b, NULL));
    s.b->news = test_stage_news;
    s.b->news_user = &s;
    test_stage_sandbox(&s.sb, "box-1", NULL, NULL);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_stage_begin(&s, &c, "exec-1", "sleep", "1000");
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
    test_stage_close(&s);
}

TEST(without_the_program_calls_end_with_unavailable)
{
    struct agx_fake_config config = AGX_FAKE_CONFIG_INIT;
    struct agx_loop *l = test_loop_open();
    struct test_stage s = { .world = test_fake_make() };
    struct agx_error *err = NULL;
    struct test_reply r = { 0 };

    config.dir = s.world.dir;
    config.program = "/nonexistent/agentix-fakeworld";
    config.retry_first_ms = 60000;
    config.retry_max_ms = 60000;
    ASSERT_OK(agx_backend_fake_open(l, &config, &s.b, NULL));
    test_stage_sandbox(&s.sb, "box-1", NULL, NULL);
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_CODE(AGX_UNAVAILABLE,
                agx_backend_look(s.b, NULL, test_reply_seen, test_reply_done, &r, &r.op, &err));
    ASSERT_MESSAGE(err, s.world.dir);
    agx_error_free(err);
    test_stage_close(&s);
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

TEST(what_has_no_record_is_removed_by_its_id)
{
    struct agx_sandbox bare;
    struct agx_spec nothing;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    agx_spec_init(&nothing);
    ASSERT_OK(agx_sandbox_init(&bare, s.sb.id, &nothing, NULL));
    test_backend_ok(s.b, &bare, AGX_DO_DELETE);
    ASSERT_UINT(1, test_fake_count(&s.world, "companion-stop box-1 0"));
    ASSERT_UINT(1, test_fake_count(&s.world, "remove box-1"));
    agx_sandbox_done(&bare);
    test_stage_close(&s);
}

TEST(backends_that_open_at_the_same_moment_share_one_world)
{
    struct agx_backend *others[4];
    struct test_stage s;

    test_stage_open(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++)
        others[i] = test_fake_open(&s.world, s.b->loop);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    for (size_t i = 0; i < AGX_ARRAY_LEN(others); i++) {
        ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(others[i], s.sb.id));
        test_backend_close(others[i]);
    }
    ASSERT_UINT(1, test_fake_count(&s.world, "world "));
    test_stage_close(&s);
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
    struct test_stage s;

    test_stage_open(&s);
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
    test_stage_close(&s);
}

TEST(a_full_disk_costs_output_and_nothing_else)
{
    struct rlimit limit, before;
    struct agx_caplog_piece p;
    struct test_command c;
    struct test_stage s;
    uint8_t byte;

    ASSERT_INT(0, getrlimit(RLIMIT_FSIZE, &before));
    limit = before;
    limit.rlim_cur = 1500;
    ASSERT_INT(0, setrlimit(RLIMIT_FSIZE, &limit)); /* the world inherits it */
    test_stage_open(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_INT(0, setrlimit(RLIMIT_FSIZE, &before));
    test_stage_begin(&s, &c, "exec-1", "print", "100000");
    ASSERT_INT(0, test_command_wait(s.b, &c));
    ASSERT_OK(agx_caplog_read(c.out.data_fd, c.out.index_fd, 99999, &byte, 1, &p, NULL));
    ASSERT_UINT(100000, p.total);
    ASSERT_UINT(1, p.len);
    ASSERT_TRUE(lseek(c.out.data_fd, 0, SEEK_END) <= 1500);
    test_command_done(&c);
    test_stage_close(&s);
}

TEST(abandoned_calls_are_not_heard_of_again)
{
    struct test_reply r, look = { 0 }, kill_reply = { 0 };
    struct test_command c;
    struct test_stage s;

    test_stage_open(&s);
    test_backend_begin(s.b, &s.sb, AGX_DO_CREATE, &r);
    agx_backend_abandon(r.op);
    ASSERT_OK(agx_backend_look(s.b, NULL, test_reply_seen, test_reply_done, &look, &look.op, NULL));
    agx_backend_cancel(look.op); /* cancelled, so due; then given up all the same */
    agx_backend_abandon(look.op);
    while (test_backend_seen(s.b, s.sb.id) != AGX_SEEN_RUNNING)
        continue;
    test_stage_begin(&s, &c, "exec-1", "stubborn", NULL);
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
    test_stage_close(&s);
}

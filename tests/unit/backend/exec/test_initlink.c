/* The link to init, and commands, with init as an ordinary process. */
#include "tests/support/gate.h"
#include "tests/support/init.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

TEST(command_writes_its_logs_and_its_end_is_told)
{
    struct test_init t;
    struct test_init_news end;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", "echo out; echo err >&2; exit 3"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "one");
    end = test_init_wait(&t, AGX_INIT_EXITED, "one");
    ASSERT_INT(3, end.exit_code);
    ASSERT_INT(0, end.signo);
    ASSERT_TRUE(end.usage.max_rss_kib > 0);
    test_init_read_logs(&t);
    ASSERT_CSTR("out\n", t.out);
    ASSERT_CSTR("err\n", t.err);
    test_init_close(&t);
}

TEST(signal_that_ends_a_command_is_its_code_less_128)
{
    struct test_init_news end;
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", "kill -9 $$"));
    end = test_init_wait(&t, AGX_INIT_EXITED, "one");
    ASSERT_INT(137, end.exit_code);
    ASSERT_INT(9, end.signo);
    test_init_close(&t);
}

TEST(command_that_is_not_there_is_127_and_one_that_cannot_run_126)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_run(&t, "one", "no-such-command");
    ASSERT_INT(127, t.exit_code);
    ASSERT_CSTR("agentix: no-such-command: not found\n", t.err);
    test_init_run(&t, "two", "/etc/passwd");
    ASSERT_INT(126, t.exit_code);
    ASSERT_CSTR("agentix: /etc/passwd: Permission denied\n", t.err);
    test_init_run(&t, "three", "/etc");
    ASSERT_INT(126, t.exit_code);
    test_init_run(&t, "four", "");
    ASSERT_INT(127, t.exit_code);
    test_init_close(&t);
}

TEST(user_that_is_not_there_is_refused_with_the_reason)
{
    const struct test_cmd cmd = { .user = "no-such-user" };
    struct test_init_news refused;
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", &cmd, TEST_ARGV("true"));
    refused = test_init_wait(&t, AGX_INIT_REFUSED, "one");
    ASSERT_INT(AGX_FAILED_PRECONDITION, refused.code);
    ASSERT_CSTR("user 'no-such-user': no such user", refused.text);
    /* Nothing is remembered of it. */
    test_init_ask(&t, AGX_INIT_QUERY, "one");
    (void)test_init_wait(&t, AGX_INIT_UNKNOWN, "one");
    test_init_close(&t);
}

TEST(command_has_its_user_directory_umask_limits_and_environment)
{
    const struct agx_init_rlimit files = { 7 /* RLIMIT_NOFILE */, 50, 60 };
    char cwd[] = "/tmp/agx-init-XXXXXX", deep[64];
    const struct test_cmd cmd = { .user = "65534:12",
                                  .cwd = deep,
                                  .env = TEST_ARGV("A=b", "HOME=/x"),
                                  .umask = 0137,
                                  .flags = AGX_INIT_UMASK,
                                  .rlimit = &files };
    struct test_init t;
    char want[256];

    ASSERT_NOT_NULL(mkdtemp(cwd));
    ASSERT_INT(0, chmod(cwd, 0755));
    (void)snprintf(deep, sizeof(deep), "%s/a/b", cwd);
    test_init_open(&t, NULL);
    test_init_exec(&t, "one", &cmd,
                   TEST_ARGV("/bin/sh", "-c",
                             "id -u; id -G; pwd; umask; ulimit -n; echo $A $HOME $PATH; "
                             "stat -c %u.%g $PWD"));
    (void)snprintf(want, sizeof(want),
                   "65534\n12\n%s\n0137\n50\n"
                   "b /x /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                   "65534.12\n",
                   deep);
    ASSERT_CSTR(want, t.out);
    ASSERT_INT(0, t.exit_code);
    test_init_run(&t, "two", "rm", "-r", cwd);
    test_init_close(&t);
}

TEST(command_is_alone_in_a_session_with_no_descriptor_of_init)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_run(&t, "one", "sh", "-c",
                  "ls /proc/self/fd | tr '\\n' ' '; "
                  "awk '{print $1 == $5, $1 == $6}' /proc/$$/stat; "
                  "grep -E 'SigBlk|SigIgn' /proc/self/status | grep -c 0000000000000000");
    /* ls has 3 open for the directory itself. */
    ASSERT_CSTR("0 1 2 3 1 1\n2\n", t.out);
    test_init_close(&t);
}

/* All that can be, with those that libc lets nobody touch. */
static void ignore_signals(void *user)
{
    const struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } ignore = { .handler = (void *)1 };

    (void)user;
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, &ignore, NULL, sizeof(ignore.mask));
}

TEST(signals_that_init_was_given_as_ignored_are_not_so_for_commands)
{
    const struct test_init_params params = { .enter = ignore_signals };
    struct test_init t;

    if (geteuid() != 0)
        SKIP("needs root: init gives its channel only to root");
    test_init_start(&t, &params);
    test_init_connect(&t);
    test_init_run(&t, "one", "grep", "SigIgn", "/proc/self/status");
    ASSERT_CSTR("SigIgn:\t0000000000000000\n", t.out);
    test_init_close(&t);
}

static void send_input(struct test_init *t, const char *id, const char *text, bool eof)
{
    const struct agx_init_msg m = { .kind = AGX_INIT_INPUT,
                                    .id = agx_str_from(id),
                                    .flags = eof ? AGX_INIT_EOF : 0,
                                    .data = agx_str_from(text) };

    test_init_send(t, &m);
}

TEST(input_reaches_the_command_and_ends)
{
    const struct test_cmd cmd = { .flags = AGX_INIT_STDIN };
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", &cmd, TEST_ARGV("cat"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "one");
    send_input(&t, "one", "hello ", false);
    ASSERT_INT(AGX_OK, test_init_wait(&t, AGX_INIT_TAKEN, "one").code);
    send_input(&t, "one", "world", true);
    ASSERT_INT(AGX_OK, test_init_wait(&t, AGX_INIT_TAKEN, "one").code);
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_read_logs(&t);
    ASSERT_CSTR("hello world", t.out);
    send_input(&t, "one", "late", false);
    ASSERT_INT(AGX_NOT_FOUND, test_init_wait(&t, AGX_INIT_TAKEN, "one").code);
    send_input(&t, "none", "late", false);
    ASSERT_INT(AGX_NOT_FOUND, test_init_wait(&t, AGX_INIT_TAKEN, "none").code);
    test_init_close(&t);
}

TEST(input_that_nobody_reads_waits_without_holding_up_others)
{
    static char big[AGX_INIT_DATA_MAX + 1];
    const struct test_cmd cmd = { .flags = AGX_INIT_STDIN };
    struct test_init t;

    memset(big, 'x', sizeof(big) - 1);
    test_init_open(&t, NULL);
    test_init_begin(&t, "one", &cmd, TEST_ARGV("sleep", "1000"));
    for (int i = 0; i < 4; i++) { /* a pipe takes as much */
        send_input(&t, "one", big, false);
        (void)test_init_wait(&t, AGX_INIT_TAKEN, "one");
    }
    send_input(&t, "one", big, false);
    test_init_run(&t, "two", "true");
    ASSERT_FALSE(test_init_has(&t, AGX_INIT_TAKEN, "one"));
    test_init_ask(&t, AGX_INIT_KILL, "one");
    ASSERT_INT(AGX_NOT_FOUND, test_init_wait(&t, AGX_INIT_TAKEN, "one").code);
    (void)test_init_wait(&t, AGX_INIT_GONE, "one");
    test_init_close(&t);
}

TEST(terminal_has_a_size_that_changes)
{
    const struct test_cmd cmd = { .flags = AGX_INIT_TTY, .rows = 10, .cols = 20 };
    struct test_init t;

    if (access("/dev/pts/ptmx", R_OK) < 0)
        SKIP("no /dev/pts/ptmx");
    (void)unsetenv("TERM"); /* init's own would be the command's */
    test_init_open(&t, NULL);
    test_init_begin(&t, "one", &cmd,
                    TEST_ARGV("sh", "-c",
                              "stty size; test -t 0 && read x; stty size; "
                              "echo $TERM; read y; echo end"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "one");
    test_init_send(&t, &(struct agx_init_msg){
                           .kind = AGX_INIT_RESIZE, .id = AGX_STR("one"), .rows = 30, .cols = 40 });
    test_init_pass(&t, 100);
    send_input(&t, "one", "go\n", false);
    (void)test_init_wait(&t, AGX_INIT_TAKEN, "one");
    send_input(&t, "one", "", true);
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_read_logs(&t);
    ASSERT_NOT_NULL(strstr(t.out, "30 40\r\n"));
    ASSERT_NOT_NULL(strstr(t.out, "xterm\r\nend\r\n"));
    test_init_close(&t);
}

TEST(starting_what_was_started_adopts_it)
{
    char path[] = "/tmp/agx-init-XXXXXX", script[128];
    struct test_init t;
    struct stat st;

    (void)close(mkstemp(path));
    (void)snprintf(script, sizeof(script), "echo >> %s", path);
    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", script));
    (void)test_init_wait(&t, AGX_INIT_EXITED, "one");
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", script));
    (void)test_init_wait(&t, AGX_INIT_EXITED, "one");
    ASSERT_INT(0, stat(path, &st));
    ASSERT_INT(1, st.st_size);
    (void)unlink(path);
    test_init_close(&t);
}

TEST(end_is_kept_for_the_next_daemon_until_it_is_forgotten)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", "exit 7"));
    test_init_begin(&t, "two", NULL, TEST_ARGV("sleep", "1000"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "two");
    (void)test_init_wait(&t, AGX_INIT_EXITED, "one");
    test_init_disconnect(&t);
    test_init_connect(&t);
    ASSERT_INT(2, t.n_ready);
    test_init_ask(&t, AGX_INIT_QUERY, "one");
    ASSERT_INT(7, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_ask(&t, AGX_INIT_QUERY, "two");
    (void)test_init_wait(&t, AGX_INIT_STARTED, "two");
    test_init_ask(&t, AGX_INIT_FORGET, "one");
    test_init_ask(&t, AGX_INIT_FORGET, "two"); /* runs: not forgotten */
    test_init_ask(&t, AGX_INIT_QUERY, "one");
    (void)test_init_wait(&t, AGX_INIT_UNKNOWN, "one");
    test_init_ask(&t, AGX_INIT_KILL, "two");
    ASSERT_INT(137, test_init_wait(&t, AGX_INIT_EXITED, "two").exit_code);
    (void)test_init_wait(&t, AGX_INIT_GONE, "two");
    test_init_close(&t);
}

static void kill_with(struct test_init *t, const char *id, uint64_t grace_ms)
{
    test_init_send(t, &(struct agx_init_msg){
                          .kind = AGX_INIT_KILL, .id = agx_str_from(id), .grace_ms = grace_ms });
}

/* Until the last command that was started has written a line. */
static void wait_for_line(struct test_init *t)
{
    do {
        test_init_pass(t, 5);
        test_init_read_logs(t);
    } while (!strchr(t->out, '\n'));
}

TEST(kill_is_term_and_after_the_grace_kill)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "mild", NULL,
                    TEST_ARGV("sh", "-c", "trap 'exit 5' TERM; sleep 1000 & echo; wait"));
    wait_for_line(&t); /* its trap is set */
    test_init_begin(&t, "stubborn", NULL,
                    TEST_ARGV("sh", "-c", "trap '' TERM; echo; while :; do sleep 1; done"));
    wait_for_line(&t);
    kill_with(&t, "mild", 20000);
    ASSERT_INT(5, test_init_wait(&t, AGX_INIT_EXITED, "mild").exit_code);
    (void)test_init_wait(&t, AGX_INIT_GONE, "mild");
    kill_with(&t, "stubborn", 200);
    ASSERT_INT(137, test_init_wait(&t, AGX_INIT_EXITED, "stubborn").exit_code);
    (void)test_init_wait(&t, AGX_INIT_GONE, "stubborn");
    kill_with(&t, "none", 0);
    (void)test_init_wait(&t, AGX_INIT_GONE, "none");
    test_init_close(&t);
}

TEST(kill_reaches_other_groups_of_the_session)
{
    struct test_init t;
    uint64_t pid = 0;

    test_init_open(&t, NULL);
    /* With job control each job is a group of its own. */
    test_init_begin(&t, "one", NULL,
                    TEST_ARGV("bash", "-c", "set -m; sleep 1000 & disown; echo $$"));
    wait_for_line(&t);
    ASSERT_TRUE(agx_parse_u64(agx_str_bytes(t.out, strlen(t.out) - 1), INT32_MAX, &pid));
    while (kill((pid_t)pid, 0) == 0)
        test_init_pass(&t, 5);
    test_init_pass(&t, 300);
    ASSERT_FALSE(test_init_has(&t, AGX_INIT_EXITED, "one")); /* the job is left */
    kill_with(&t, "one", 5000);
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    (void)test_init_wait(&t, AGX_INIT_GONE, "one");
    test_init_close(&t);
}

TEST(command_ends_when_its_background_does)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", "(sleep 0.5; echo late) & exit 4"));
    ASSERT_INT(4, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_read_logs(&t);
    ASSERT_CSTR("late\n", t.out);
    test_init_close(&t);
}

TEST(process_that_left_the_session_outlives_the_command_and_its_output_is_dropped)
{
    char path[] = "/tmp/agx-init-XXXXXX", script[512];
    struct test_gate in_session, after_end;
    struct test_init t;
    struct stat st;

    (void)close(mkstemp(path));
    test_gate_shut(&in_session);
    test_gate_shut(&after_end);
    (void)snprintf(script, sizeof(script),
                   "echo now; setsid sh -c 'rmdir %s; %s for i in 1 2 3; do echo late; done; "
                   "echo alive > %s' & %s",
                   in_session.dir, after_end.wait, path, in_session.wait);
    test_init_open(&t, NULL);
    test_init_run(&t, "one", "sh", "-c", script);
    test_gate_open(&after_end);
    do {
        test_init_pass(&t, 50);
        ASSERT_INT(0, stat(path, &st));
    } while (st.st_size == 0);
    ASSERT_INT(6, st.st_size);
    test_init_read_logs(&t);
    ASSERT_CSTR("now\n", t.out);
    (void)unlink(path);
    test_init_close(&t);
}

TEST(large_command_goes_through_and_one_that_is_too_large_is_refused)
{
    static uint8_t words[4 << 20];
    struct agx_init_msg m = {
        .kind = AGX_INIT_START, .id = AGX_STR("one"), .out_head = 100, .err_head = 100
    };
    size_t at = agx_init_word_put(words, sizeof(words), AGX_STR("true"));
    struct test_init_news news;
    struct test_init t;
    int fds[AGX_INIT_FDS_MAX];

    m.argv.count = 1;
    for (; at < (1 << 20); m.argv.count++)
        at += agx_init_word_put(
            words + at, sizeof(words) - at,
            AGX_STR("a hundred bytes or so a hundred bytes or so a hundred bytes or so"));
    m.argv.bytes = agx_str_bytes(words, at);
    test_init_open(&t, NULL);
    test_init_run(&t, "logs", "true");
    for (int i = 0; i < AGX_INIT_FDS_MAX; i++)
        fds[i] = t.log_fds[i];
    ASSERT_OK(agx_initlink_send(t.link, &m, fds, AGX_INIT_FDS_MAX, NULL));
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    for (; at < (5 << 19); m.argv.count++)
        at += agx_init_word_put(
            words + at, sizeof(words) - at,
            AGX_STR("a hundred bytes or so a hundred bytes or so a hundred bytes or so"));
    m.argv.bytes = agx_str_bytes(words, at);
    m.id = AGX_STR("two");
    ASSERT_OK(agx_initlink_send(t.link, &m, fds, AGX_INIT_FDS_MAX, NULL));
    news = test_init_wait(&t, AGX_INIT_REFUSED, "two");
    ASSERT_CSTR("start 'the command and its environment': Argument list too long", news.text);
    test_init_close(&t);
}

TEST(endless_output_fills_neither_disk_nor_memory_and_delays_nobody)
{
    const struct test_cmd cmd = { .head_max = 100000, .tail_max = 100000 };
    struct test_init t;
    int data_fd;
    struct stat st;

    test_init_open(&t, NULL);
    test_init_begin(&t, "flood", &cmd, TEST_ARGV("yes"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "flood");
    data_fd = dup(t.log_fds[0]);
    test_init_disconnect(&t); /* also while the daemon is dead */
    do {
        (void)usleep(1000);
        ASSERT_INT(0, fstat(data_fd, &st));
    } while (st.st_size < 200000);
    (void)usleep(100000); /* and it goes on */
    test_init_connect(&t);
    test_init_run(&t, "other", "echo", "x");
    ASSERT_CSTR("x\n", t.out);
    ASSERT_INT(0, fstat(data_fd, &st));
    ASSERT_INT(200000, st.st_size);
    kill_with(&t, "flood", 1000);
    (void)test_init_wait(&t, AGX_INIT_GONE, "flood");
    (void)close(data_fd);
    test_init_close(&t);
}

TEST(newer_daemon_takes_the_channel_over)
{
    struct test_init t, second;
    struct test_gate gate;

    test_gate_shut(&gate);
    test_init_open(&t, NULL);
    test_init_begin(&t, "one", NULL, TEST_ARGV("sh", "-c", gate.wait));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "one");
    second = t;
    second.loop = test_loop_open();
    second.link = NULL;
    second.n_news = 0;
    for (int i = 0; i < AGX_INIT_FDS_MAX; i++)
        second.log_fds[i] = -1;
    test_init_connect(&second);
    test_init_ask(&second, AGX_INIT_QUERY, "one");
    test_gate_open(&gate);
    ASSERT_INT(0, test_init_wait(&second, AGX_INIT_EXITED, "one").exit_code);
    ASSERT_FALSE(test_init_has(&t, AGX_INIT_EXITED, "one"));
    test_init_disconnect(&second);
    test_loop_close(second.loop);
    test_init_close(&t);
}

TEST(commands_that_are_not_forgotten_are_bounded)
{
    struct test_init_news refused;
    struct test_init t;
    char id[16];

    test_init_open(&t, TEST_ARGV("--commands", "5"));
    for (int i = 0; i < 5; i++) {
        (void)snprintf(id, sizeof(id), "exec-%d", i);
        test_init_begin(&t, id, NULL, TEST_ARGV("true"));
        (void)test_init_wait(&t, AGX_INIT_EXITED, id);
    }
    test_init_begin(&t, "more", NULL, TEST_ARGV("true"));
    refused = test_init_wait(&t, AGX_INIT_REFUSED, "more");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, refused.code);
    ASSERT_CSTR("the limit of 5 remembered commands is reached", refused.text);
    test_init_ask(&t, AGX_INIT_FORGET, "exec-3");
    test_init_run(&t, "more", "true");
    ASSERT_INT(0, t.exit_code);
    test_init_close(&t);
}

TEST(end_of_init_is_told)
{
    struct test_init t;

    test_init_open(&t, NULL);
    test_init_send(&t, &(struct agx_init_msg){ .kind = AGX_INIT_STOP });
    while (!t.lost)
        agx_loop_run(t.loop);
    ASSERT_INT(AGX_UNAVAILABLE, t.lost_code);
    ASSERT_CODE(
        AGX_UNAVAILABLE,
        agx_initlink_send(t.link, &(struct agx_init_msg){ .kind = AGX_INIT_STOP }, NULL, 0, NULL));
    ASSERT_INT(0, test_init_status(&t));
    test_init_close(&t);
}

static void say(int fd, const struct agx_init_msg *m)
{
    uint8_t packet[256];
    size_t n = agx_init_encode(m, packet, sizeof(packet));

    if (send(fd, packet, n, MSG_NOSIGNAL) != (ssize_t)n)
        _exit(2);
}

/* Answers HELLO. When there is something else to read it tells of an end, and ends itself. */
static _Noreturn void be_init(int fd)
{
    struct pollfd more = { .fd = fd, .events = POLLIN };
    struct agx_init_msg hello;
    uint8_t packet[256];
    ssize_t n = recv(fd, packet, sizeof(packet), 0);

    if (n < 0 || agx_init_decode(agx_str_bytes(packet, (size_t)n), &hello, NULL) < 0)
        _exit(1);
    say(fd, &(struct agx_init_msg){ .kind = AGX_INIT_WELCOME, .nonce = hello.nonce });
    while (poll(&more, 1, -1) != 1)
        continue;
    say(fd,
        &(struct agx_init_msg){ .kind = AGX_INIT_EXITED, .id = AGX_STR("one"), .exit_code = 5 });
    _exit(0);
}

TEST(last_words_of_an_init_that_ends_with_something_unread_are_heard)
{
    struct test_init t = { 0 };
    siginfo_t info;
    int pair[2];

    if (geteuid() != 0)
        SKIP("needs root: init gives its channel only to root");
    for (size_t i = 0; i < AGX_INIT_FDS_MAX; i++)
        t.log_fds[i] = -1;
    t.loop = test_loop_open();
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    t.pid = fork();
    ASSERT_TRUE(t.pid >= 0);
    if (t.pid == 0) {
        int own = fcntl(pair[1], F_DUPFD, 100);

        (void)dup2(pair[0], AGX_INIT_CONTROL_FD);
        (void)syscall(SYS_close_range, AGX_INIT_CONTROL_FD + 1, own - 1, 0);
        be_init(own);
    }
    (void)close(pair[0]);
    (void)close(pair[1]);
    t.pidfd = (int)syscall(SYS_pidfd_open, t.pid, 0);
    test_init_connect(&t);
    test_init_ask(&t, AGX_INIT_QUERY, "one");
    ASSERT_INT(0, waitid(P_PID, (id_t)t.pid, &info, WEXITED | WNOWAIT));
    ASSERT_INT(5, test_init_wait(&t, AGX_INIT_EXITED, "one").exit_code);
    test_init_close(&t);
}

TEST(process_that_is_no_init_is_given_up)
{
    const struct test_init_params params = { .program = "/bin/sleep", .args = TEST_ARGV("1000") };
    struct test_init t;

    if (geteuid() != 0)
        SKIP("needs root");
    test_init_start(&t, &params);
    t.connect_ms = 100;
    test_init_connect(&t);
    ASSERT_TRUE(t.lost);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, t.lost_code);
    test_init_close(&t);
}

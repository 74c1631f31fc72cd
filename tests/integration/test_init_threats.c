/* Attacks by code in a sandbox, and exhausted resources of the host: docs/design/init.md. */
#include "base/clock.h"
#include "tests/support/sandbox.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void open_sandbox(struct test_sandbox *s, struct test_init *t, const char *const *args)
{
    test_sandbox_make(s, TEST_IMAGE_BUSYBOX);
    test_sandbox_boot(s, t, args);
    test_init_connect(t);
    ASSERT_FALSE(t->lost);
}

static void close_sandbox(struct test_sandbox *s, struct test_init *t)
{
    test_init_close(t);
    test_sandbox_remove(s);
}

static void kill_now(struct test_init *t, const char *id)
{
    test_init_ask(t, AGX_INIT_KILL, id);
    (void)test_init_wait(t, AGX_INIT_GONE, id);
}

TEST(root_of_the_sandbox_gets_at_nothing_of_init)
{
    struct test_sandbox s;
    struct test_init t;

    open_sandbox(&s, &t, NULL);
    test_init_run(&t, "one", "/prog", "attack");
    ASSERT_CSTR("0 ways\n", t.out);
    ASSERT_INT(0, t.exit_code);
    close_sandbox(&s, &t);
}

TEST(stop_and_kill_from_inside_do_nothing_to_init)
{
    struct test_sandbox s;
    struct test_init t;

    open_sandbox(&s, &t, NULL);
    test_init_run(&t, "one", "/prog", "kill1");
    ASSERT_INT(0, t.exit_code);
    test_init_run(&t, "two", "echo", "alive");
    ASSERT_CSTR("alive\n", t.out);
    close_sandbox(&s, &t);
}

/* A copy of the end that the next daemon takes. */
static int take_channel(const struct test_init *t)
{
    int fd = (int)syscall(SYS_pidfd_getfd, t->pidfd, AGX_INIT_CONTROL_FD, 0);

    ASSERT_TRUE(fd >= 0);
    return fd;
}

static void send_raw(int fd, const struct agx_init_msg *m)
{
    uint8_t packet[1024];
    size_t n = agx_init_encode(m, packet, sizeof(packet));

    ASSERT_TRUE(n <= sizeof(packet));
    ASSERT_INT(n, send(fd, packet, n, MSG_NOSIGNAL));
}

TEST(whoever_may_not_trace_init_cannot_take_its_channel)
{
    struct test_sandbox s;
    struct test_init t;
    int status;
    pid_t pid;

    open_sandbox(&s, &t, NULL);
    pid = fork();
    if (pid == 0) {
        if (setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        _exit(syscall(SYS_pidfd_getfd, t.pidfd, AGX_INIT_CONTROL_FD, 0) < 0 && errno == EPERM ? 0
                                                                                              : 1);
    }
    ASSERT_INT(pid, waitpid(pid, &status, 0));
    ASSERT_INT(0, status);
    close_sandbox(&s, &t);
}

TEST(messages_before_hello_and_bytes_that_are_none_are_dropped)
{
    struct test_words argv;
    const struct agx_init_msg start = { .kind = AGX_INIT_START,
                                        .id = AGX_STR("forged"),
                                        .argv = TEST_WORDS(&argv, "sleep", "1000") };
    struct test_sandbox s;
    struct test_init t;
    int fd;

    open_sandbox(&s, &t, NULL);
    fd = take_channel(&t);
    send_raw(fd, &start);
    send_raw(fd, &(struct agx_init_msg){ .kind = AGX_INIT_STOP });
    ASSERT_INT(7, send(fd, "garbage", 7, MSG_NOSIGNAL));
    test_init_run(&t, "one", "true");
    test_init_ask(&t, AGX_INIT_QUERY, "forged");
    (void)test_init_wait(&t, AGX_INIT_UNKNOWN, "forged");
    (void)close(fd);
    close_sandbox(&s, &t);
}

TEST(daemon_that_does_not_read_is_not_read_and_loses_nothing)
{
    const struct agx_init_msg query = { .kind = AGX_INIT_QUERY, .id = AGX_STR("nothing") };
    struct test_sandbox s;
    struct test_init t;
    uint8_t packet[256];
    int fd, sent = 0, got = -1; /* the first is WELCOME */
    size_t n;

    open_sandbox(&s, &t, NULL);
    fd = take_channel(&t);
    send_raw(fd, &(struct agx_init_msg){ .kind = AGX_INIT_HELLO, .nonce = 1 });
    n = agx_init_encode(&query, packet, sizeof(packet));
    for (int idle = 0; idle < 20;) {
        if (send(fd, packet, n, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
            sent++;
            idle = 0;
        } else {
            idle++;
            (void)usleep(20000);
        }
    }
    ASSERT_TRUE(sent > 100);
    for (int idle = 0; idle < (got < sent ? 6000 : 50);) { /* and no more than that */
        if (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0) {
            got++;
            idle = 0;
        } else {
            idle++;
            (void)usleep(10000);
        }
    }
    ASSERT_INT(sent, got);
    (void)close(fd);
    close_sandbox(&s, &t);
}

/* A cgroup of the pids controller, v1 or v2. False: there is none here. */
static bool make_pids_cgroup(char path[128], char tasks[160], const char *max)
{
    const char *parent =
        access("/sys/fs/cgroup/pids/tasks", W_OK) == 0 ? "/sys/fs/cgroup/pids" : "/sys/fs/cgroup";
    char limit[160];
    int fd;

    (void)snprintf(path, 128, "%s/agx-test-%d", parent, (int)getpid());
    (void)snprintf(limit, sizeof(limit), "%s/pids.max", path);
    if (mkdir(path, 0755) < 0)
        return false;
    fd = open(limit, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, max, strlen(max)) < 0) {
        (void)rmdir(path);
        return false;
    }
    (void)close(fd);
    (void)snprintf(tasks, 160, "%s/%s", path, parent[14] ? "tasks" : "cgroup.procs");
    return true;
}

TEST(fork_bomb_makes_starts_fail_by_name_and_can_be_killed)
{
    struct test_init_news refused;
    char path[128], tasks[160];
    struct test_sandbox s;
    struct test_init t;

    test_sandbox_make(&s, TEST_IMAGE_BUSYBOX);
    if (!make_pids_cgroup(path, tasks, "12"))
        SKIP("no pids controller");
    s.cgroup_tasks = tasks;
    test_sandbox_boot(&s, &t, NULL);
    test_init_connect(&t);
    test_init_begin(&t, "bomb", NULL, TEST_ARGV("/prog", "bomb"));
    (void)test_init_wait(&t, AGX_INIT_STARTED, "bomb");
    do { /* when it is full depends on it */
        test_init_pass(&t, 50);
        test_init_read_logs(&t);
    } while (t.out[0] == '\0');
    test_init_begin(&t, "two", NULL, TEST_ARGV("true"));
    refused = test_init_wait(&t, AGX_INIT_REFUSED, "two");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, refused.code);
    ASSERT_NOT_NULL(strstr(refused.text, "for the command: Resource temporarily unavailable"));
    kill_now(&t, "bomb");
    test_init_run(&t, "three", "true");
    ASSERT_INT(0, t.exit_code);
    close_sandbox(&s, &t);
    while (rmdir(path) < 0) { /* the last process is dead, and may still be in it */
        ASSERT_INT(EBUSY, errno);
        (void)usleep(1000);
    }
}

TEST(without_descriptors_starts_fail_by_name_and_the_rest_goes_on)
{
    const struct rlimit few = { 48, 48 };
    struct test_init_news refused;
    struct test_sandbox s;
    struct test_init t;
    char id[16];
    int n = 0;

    open_sandbox(&s, &t, NULL);
    ASSERT_INT(0, prlimit(t.pid, RLIMIT_NOFILE, &few, NULL));
    do {
        (void)snprintf(id, sizeof(id), "exec-%d", n++);
        test_init_begin(&t, id, NULL, TEST_ARGV("sleep", "1000"));
        while (!test_init_has(&t, AGX_INIT_STARTED, id) && !test_init_has(&t, AGX_INIT_REFUSED, id))
            agx_loop_run(t.loop);
    } while (test_init_has(&t, AGX_INIT_STARTED, id));
    refused = test_init_wait(&t, AGX_INIT_REFUSED, id);
    ASSERT_TRUE(n > 2);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, refused.code);
    ASSERT_NOT_NULL(strstr(refused.text, "descriptors"));
    kill_now(&t, "exec-0");
    test_init_run(&t, "more", "true");
    ASSERT_INT(0, t.exit_code);
    test_init_disconnect(&t);
    test_init_connect(&t);
    ASSERT_FALSE(t.lost);
    close_sandbox(&s, &t);
}

TEST(storm_of_orphans_is_reaped_while_commands_run)
{
    struct test_sandbox s;
    struct test_init t;
    char id[16];

    open_sandbox(&s, &t, NULL);
    test_init_begin(&t, "storm", NULL, TEST_ARGV("/prog", "storm", "1500"));
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "exec-%d", i);
        test_init_run(&t, id, "true");
        ASSERT_INT(0, t.exit_code);
    }
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "storm").exit_code);
    for (int i = 0; i < 600; i++) { /* the last orphans may end, or be reaped, a moment later */
        (void)snprintf(id, sizeof(id), "count-%d", i);
        test_init_run(&t, id, "/prog", "zombies");
        if (strcmp(t.out, "0\n") == 0)
            break;
        (void)usleep(100000);
    }
    ASSERT_CSTR("0\n", t.out);
    close_sandbox(&s, &t);
}

/* Children of init, alive or dead and not reaped, as the host sees them. */
static int count_children(const struct test_init *t)
{
    char command[512], line[32] = "";
    FILE *f;

    (void)snprintf(command, sizeof(command),
                   "grep -l '^PPid:[[:space:]]*%d$' /proc/[0-9]*/status 2>/dev/null | wc -l",
                   (int)t->pid);
    f = popen(command, "r");
    ASSERT_NOT_NULL(f);
    ASSERT_NOT_NULL(fgets(line, sizeof(line), f));
    (void)pclose(f);
    return (int)strtol(line, NULL, 10);
}

TEST(more_orphans_than_a_turn_reaps_are_reaped_without_a_further_event)
{
    struct test_sandbox s;
    struct test_init t;

    open_sandbox(&s, &t, NULL);
    test_init_run(&t, "one", "/prog", "burst", "2500");
    ASSERT_INT(0, t.exit_code);
    for (int i = 0; i < 600 && count_children(&t) > 0; i++)
        (void)usleep(100000);
    ASSERT_INT(0, count_children(&t));
    close_sandbox(&s, &t);
}

TEST(passwd_that_is_a_fifo_is_no_passwd_and_nobody_waits_for_it)
{
    const struct test_cmd agbox = { .user = "agbox" };
    struct test_sandbox s;
    struct test_init t;

    open_sandbox(&s, &t, NULL);
    test_init_run(&t, "one", "/prog", "fifo", "/etc/passwd");
    ASSERT_INT(0, t.exit_code);
    test_init_begin(&t, "two", &agbox, TEST_ARGV("true"));
    ASSERT_CSTR("user 'agbox': no such user", test_init_wait(&t, AGX_INIT_REFUSED, "two").text);
    close_sandbox(&s, &t);
}

/* A small ext4 whose writes can be held up; its mount point in `dir`. */
static bool make_file_system(char dir[64])
{
    char command[512];

    (void)snprintf(dir, 64, "/tmp/agx-disk-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(dir));
    (void)snprintf(command, sizeof(command),
                   "truncate -s 8M %s.img && mkfs.ext4 -q -F %s.img && mount -o loop %s.img %s",
                   dir, dir, dir, dir);
    if (system(command) == 0)
        return true;
    (void)rmdir(dir);
    return false;
}

static void remove_file_system(const char *dir)
{
    char command[512];

    (void)snprintf(command, sizeof(command), "umount %s; rmdir %s; rm %s.img", dir, dir, dir);
    ASSERT_INT(0, system(command));
}

TEST(log_on_a_disk_that_is_stuck_delays_only_its_own_command)
{
    struct test_words argv;
    struct agx_init_msg start = { .kind = AGX_INIT_START,
                                  .id = AGX_STR("stuck"),
                                  .flags = AGX_INIT_INHERIT,
                                  .out_head = 1000,
                                  .err_head = 1000,
                                  .argv = TEST_WORDS(&argv, "echo", "x") };
    char dir[64], path[128];
    struct test_sandbox s;
    struct test_init t;
    int fds[AGX_INIT_FDS_MAX], dir_fd;

    open_sandbox(&s, &t, NULL);
    if (!make_file_system(dir)) {
        close_sandbox(&s, &t);
        SKIP("no loop device with ext4");
    }
    for (int i = 0; i < AGX_INIT_FDS_MAX; i++) {
        (void)snprintf(path, sizeof(path), "%s/log-%d", dir, i);
        fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_TRUE(fds[i] >= 0);
    }
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_INT(0, ioctl(dir_fd, FIFREEZE, 0));
    ASSERT_OK(agx_initlink_send(t.link, &start, fds, AGX_INIT_FDS_MAX, NULL));
    test_init_run(&t, "other", "echo", "y");
    ASSERT_CSTR("y\n", t.out);
    ASSERT_FALSE(test_init_has(&t, AGX_INIT_EXITED, "stuck"));
    ASSERT_INT(0, ioctl(dir_fd, FITHAW, 0));
    ASSERT_INT(0, test_init_wait(&t, AGX_INIT_EXITED, "stuck").exit_code);
    for (int i = 0; i < AGX_INIT_FDS_MAX; i++)
        (void)close(fds[i]);
    (void)close(dir_fd);
    close_sandbox(&s, &t);
    remove_file_system(dir);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* No bar here: a test must not depend on how busy a machine is. The figure is for the reader. */
TEST(command_after_command_takes_a_moment_each)
{
    static uint64_t took[300];
    struct test_sandbox s;
    struct test_init t;
    char id[16];

    open_sandbox(&s, &t, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(took); i++) {
        uint64_t from = agx_clock_us();

        (void)snprintf(id, sizeof(id), "exec-%zu", i);
        test_init_begin(&t, id, NULL, TEST_ARGV("/prog", "exit"));
        (void)test_init_wait(&t, AGX_INIT_EXITED, id);
        took[i] = agx_clock_us() - from;
        (void)test_init_wait(&t, AGX_INIT_STARTED, id);
        test_init_ask(&t, AGX_INIT_FORGET, id);
    }
    qsort(took, AGX_ARRAY_LEN(took), sizeof(took[0]), compare);
    printf("# message to exit report: p50 %ju us, p99 %ju us\n",
           (uintmax_t)took[AGX_ARRAY_LEN(took) / 2], (uintmax_t)took[AGX_ARRAY_LEN(took) - 3]);
    close_sandbox(&s, &t);
}

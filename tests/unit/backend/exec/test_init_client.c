/* The commands of a sandbox over the channel that is taken by pidfd; and how PID 1 is found. */
#include "tests/support/paths.h"
#include "tests/unit/backend/exec/init_client_suite.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

void test_init_client_boot(struct test_init_client *t, const struct test_init_params *params)
{
    if (geteuid() != 0)
        SKIP("needs root: init gives its channel only to root");
    test_init_client_boot_init(t, params);
}

void test_init_client_begin_up(struct test_init_client *t)
{
    ASSERT_OK(agx_init_client_up_pidfd(t->a, t->init.pidfd, NULL));
}

void test_init_client_unboot(struct test_init_client *t)
{
    (void)t;
}

/* Another daemon takes the channel, and dies. */
void test_init_client_break(struct test_init_client *t)
{
    const struct agx_init_msg hello = { .kind = AGX_INIT_HELLO, .nonce = 1 };
    int fd = (int)syscall(SYS_pidfd_getfd, t->init.pidfd, AGX_INIT_CONTROL_FD, 0);
    uint8_t packet[64];

    ASSERT_TRUE(fd >= 0);
    ASSERT_TRUE(send(fd, packet, agx_init_encode(&hello, packet, sizeof(packet)), 0) > 0);
    while (recv(fd, packet, sizeof(packet), 0) < 0)
        (void)usleep(1000);
    close(fd);
}

TEST(another_init_knows_nothing_of_the_first_ones_commands)
{
    struct test_command c, next;
    struct test_init first;
    struct test_init_client t;

    test_init_client_open(&t);
    begin_running(&t, &c, "exec-1", "sleep", "100");
    first = t.init;
    t.init.pidfd = -1;
    test_init_client_boot(&t, NULL); /* told before the end of the first was seen */
    ASSERT_OK(agx_init_client_up_pidfd(t.a, t.init.pidfd, NULL));
    ASSERT_UINT(1, c.n_lost);
    begin(&t, &next, "exec-1", "sh", "-c", "exit 8");
    ASSERT_INT(8, test_command_wait(&t.b, &next));
    ASSERT_UINT(0, t.n_ended);
    ASSERT_INT(0, kill(first.pid, SIGKILL));
    first.loop = NULL;
    (void)test_init_status(&first);
    close(first.pidfd);
    test_command_done(&c);
    test_command_done(&next);
    test_init_client_close(&t);
}

/* ---- finding PID 1 ---- */

static struct agx_init_client_pid init_of(const struct test_init_client *t)
{
    struct stat st;

    ASSERT_INT(0, stat(test_path_init, &st));
    return (struct agx_init_client_pid){ .pid = t->init.pid,
                                         .container_id = ":/", /* as in every file of cgroups */
                                         .init_dev = st.st_dev,
                                         .init_ino = st.st_ino };
}

TEST(pid_of_init_is_held_and_any_other_is_refused)
{
    struct agx_init_client_pid want, other;
    struct test_init_client t;
    int fd;

    test_init_client_open(&t); /* so it is init already */
    want = init_of(&t);
    fd = agx_init_client_pidfd(&want, NULL);
    ASSERT_TRUE(fd >= 0);
    close(fd);
    other = want;
    other.pid = getpid();
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_init_client_pidfd(&other, NULL));
    other = want;
    other.container_id = "0123456789abcdef";
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_init_client_pidfd(&other, NULL));
    other = want;
    other.pid = 0;
    ASSERT_CODE(AGX_NOT_FOUND, agx_init_client_pidfd(&other, NULL));
    test_init_client_kill_init(&t);
    ASSERT_CODE(AGX_NOT_FOUND, agx_init_client_pidfd(&want, NULL));
    test_init_client_close(&t);
}

static void enter_slowly(void *user)
{
    (void)user;
    (void)usleep(200000);
}

TEST(process_that_becomes_init_later_is_waited_for)
{
    const struct test_init_params slow = { .enter = enter_slowly };
    struct agx_init_client_pid want;
    struct test_command c;
    struct test_init_client t;

    test_init_client_open_unknown(&t);
    test_init_client_kill_init(&t);
    want = init_of(&t);
    want.pid = 0;
    ASSERT_OK(agx_init_client_up_pid(t.a, &want, NULL));
    test_wait(t.b.loop, &t.n_ended, 1);
    ASSERT_INT(AGX_NOT_FOUND, t.ended_code);
    begin(&t, &c, "exec-1", "true");
    end(&t, &c);
    ASSERT_UINT(1, c.n_refused);
    test_init_client_boot(&t, &slow);
    want = init_of(&t);
    ASSERT_OK(agx_init_client_up_pid(t.a, &want, NULL));
    test_command_start(&t.b, &t.sb, &c, false, false);
    ASSERT_INT(0, test_command_wait(&t.b, &c));
    ASSERT_UINT(1, t.n_ready);
    test_command_done(&c);
    test_init_client_close(&t);
}

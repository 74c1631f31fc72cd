/* nsset.c: starts `agentix-init --nssets` and reads its reports. */
#include "tests/support/nsset.h"
#include "tests/support/paths.h"

#include "base/fd.h"
#include "base/macros.h"
#include "tests/support/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ARGS_MAX = 16 };

/* Runs in the new process: closes all descriptors except the first three and these. */
static void keep_only(const int *fds, size_t n_fds)
{
    for (int fd = 3; fd < 256; fd++) {
        bool keep = false;

        for (size_t i = 0; i < n_fds; i++)
            keep = keep || fds[i] == fd;
        if (keep)
            (void)fcntl(fd, F_SETFD, 0);
        else
            (void)close(fd);
    }
}

pid_t test_init_spawn(const char *const *args, const int *fds, size_t n_fds)
{
    char name[] = "agentix-init", *argv[ARGS_MAX] = { name };
    pid_t pid;

    for (size_t i = 0; args[i]; i++) {
        ASSERT_TRUE(i + 2 < ARGS_MAX);
        argv[i + 1] = strdup(args[i]);
    }
    pid = fork();
    ASSERT_TRUE(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(null, 0) < 0 || dup2(null, 1) < 0)
            _exit(99);
        keep_only(fds, n_fds);
        (void)execve(test_path_init, argv, environ);
        _exit(98);
    }
    for (size_t i = 1; argv[i]; i++)
        free(argv[i]);
    return pid;
}

int test_wait(pid_t pid)
{
    int status = -1;

    ASSERT_INT(pid, waitpid(pid, &status, 0));
    return status;
}

bool test_report_read(int fd, struct agx_plan_report *ret, int fds[AGX_PLAN_REPORT_FDS_MAX])
{
    static uint8_t packet[AGX_PLAN_REPORT_MAX];
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(AGX_PLAN_REPORT_FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov = { packet, sizeof(packet) };
    struct msghdr h = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    ssize_t n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c;

    for (size_t i = 0; i < AGX_PLAN_REPORT_FDS_MAX; i++)
        fds[i] = -1;
    if (n <= 0)
        return false;
    ASSERT_OK(agx_plan_report_decode(agx_str_bytes(packet, (size_t)n), ret, NULL));
    c = CMSG_FIRSTHDR(&h);
    if (c)
        memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return true;
}

void test_report_go(int fd)
{
    uint8_t packet[AGX_PLAN_REPORT_MAX];
    size_t n = agx_plan_report_encode(&(struct agx_plan_report){ .kind = AGX_PLAN_GO }, packet,
                                      sizeof(packet));

    ASSERT_INT(n, send(fd, packet, n, MSG_NOSIGNAL));
}

void test_nsset_again(struct test_nsset *n)
{
    int fds[AGX_PLAN_REPORT_FDS_MAX];
    struct agx_plan_report made;

    test_report_go(n->report_fd);
    ASSERT_TRUE(test_report_read(n->report_fd, &made, fds));
    ASSERT_INT(AGX_PLAN_MADE, made.kind);
    n->pid = (pid_t)made.pid;
    n->user_fd = fds[0];
    n->net_fd = fds[1];
    n->netlink_fd = fds[2];
    ASSERT_TRUE(n->netlink_fd >= 0);
}

void test_nsset_begin(struct test_nsset *n, const char *const *settings)
{
    const char *args[ARGS_MAX] = { "--nssets" };
    char number[16];
    int pair[2];

    if (geteuid() != 0)
        SKIP("needs root");
    test_sandbox_own_mounts();
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
    (void)snprintf(number, sizeof(number), "%d", pair[1]);
    args[1] = number;
    for (size_t i = 0; settings && settings[i]; i++)
        args[i + 2] = settings[i];
    n->report_fd = pair[0];
    n->init = test_init_spawn(args, &pair[1], 1);
    (void)close(pair[1]);
    test_nsset_again(n);
}

static void write_map(pid_t pid, const char *name)
{
    char path[64], text[64];
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    (void)snprintf(text, sizeof(text), "0 %d %d", TEST_NSSET_BASE, TEST_NSSET_IDS);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(strlen(text), write(fd, text, strlen(text)));
}

void test_nsset_map(const struct test_nsset *n)
{
    write_map(n->pid, "uid_map");
    write_map(n->pid, "gid_map");
}

void test_nsset_finish(const struct test_nsset *n)
{
    int fds[AGX_PLAN_REPORT_FDS_MAX];
    struct agx_plan_report ready;

    test_nsset_map(n);
    test_report_go(n->report_fd);
    ASSERT_TRUE(test_report_read(n->report_fd, &ready, fds));
    ASSERT_INT(AGX_PLAN_READY, ready.kind);
}

void test_nsset_make(struct test_nsset *n)
{
    test_nsset_begin(n, NULL);
    test_nsset_finish(n);
    (void)test_nsset_leave(n);
}

int test_nsset_leave(struct test_nsset *n)
{
    int status;

    agx_closep(&n->report_fd);
    n->report_fd = -1;
    status = test_wait(n->init);
    n->init = 0;
    return status;
}

void test_nsset_close(struct test_nsset *n)
{
    agx_closep(&n->user_fd);
    agx_closep(&n->net_fd);
    agx_closep(&n->netlink_fd);
    if (n->init > 0)
        (void)test_nsset_leave(n);
}

/* agentix-init --nssets: the namespaces of a sandbox. */
#include "base/fd.h"
#include "tests/support/nsset.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool enter(const struct test_nsset *n)
{
    return setns(n->user_fd, CLONE_NEWUSER) == 0 && setns(n->net_fd, CLONE_NEWNET) == 0;
}

/* By the kernel's own call: behind fork(2) ThreadSanitizer starts a thread, and a process with two
 * may enter no user namespace. */
static pid_t fork_alone(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* In a process of its own in those namespaces: whether a file reads so. */
static bool reads_inside(const struct test_nsset *n, const char *path, const char *want)
{
    pid_t pid = fork_alone();

    if (pid == 0) {
        char got[128] = { 0 };
        int fd = enter(n) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

        _exit(fd >= 0 && read(fd, got, sizeof(got) - 1) > 0 && strcmp(got, want) == 0 ? 0 : 1);
    }
    return test_wait(pid) == 0;
}

static bool is_up_inside(const struct test_nsset *n, const char *link)
{
    pid_t pid = fork_alone();

    if (pid == 0) {
        struct ifreq r = { 0 };
        int fd = enter(n) ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

        (void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", link);
        _exit(fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0 && (r.ifr_flags & IFF_UP) ? 0 : 1);
    }
    return test_wait(pid) == 0;
}

TEST(nsset_is_namespaces_that_live_without_a_process)
{
    struct test_nsset n;

    test_nsset_make(&n);
    ASSERT_INT(CLONE_NEWUSER, ioctl(n.user_fd, NS_GET_NSTYPE));
    ASSERT_INT(CLONE_NEWNET, ioctl(n.net_fd, NS_GET_NSTYPE));
    ASSERT_TRUE(reads_inside(&n, "/proc/self/uid_map", "         0 1879048192      65536\n"));
    ASSERT_TRUE(reads_inside(&n, "/proc/self/gid_map", "         0 1879048192      65536\n"));
    test_nsset_close(&n);
}

TEST(network_of_a_nsset_belongs_to_its_user_namespace)
{
    struct test_nsset n;
    struct stat owner, user;
    int fd;

    test_nsset_make(&n);
    fd = ioctl(n.net_fd, NS_GET_USERNS);
    ASSERT_TRUE(fd >= 0);
    ASSERT_INT(0, fstat(fd, &owner));
    ASSERT_INT(0, fstat(n.user_fd, &user));
    ASSERT_UINT(user.st_ino, owner.st_ino);
    (void)close(fd);
    test_nsset_close(&n);
}

TEST(socket_of_a_nsset_configures_its_network_from_outside)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg info;
    } up = {
        .head = { .nlmsg_len = sizeof(up),
                  .nlmsg_type = RTM_NEWLINK,
                  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
        .info = { .ifi_index = 1, .ifi_change = IFF_UP, .ifi_flags = IFF_UP }, /* lo */
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    struct test_nsset n;

    test_nsset_make(&n);
    ASSERT_FALSE(is_up_inside(&n, "lo"));
    ASSERT_INT(sizeof(up), send(n.netlink_fd, &up, sizeof(up), 0));
    ASSERT_TRUE(recv(n.netlink_fd, &answer, sizeof(answer), 0) > 0);
    ASSERT_INT(NLMSG_ERROR, answer.head.nlmsg_type);
    ASSERT_INT(0, answer.error.error);
    ASSERT_TRUE(is_up_inside(&n, "lo"));
    test_nsset_close(&n);
}

static const char *const settings[] = { "net/ipv4/ping_group_range=0 65535",
                                        "net/ipv4/ip_unprivileged_port_start=0", NULL };

TEST(settings_are_written_once_ids_are_mapped)
{
    struct test_nsset n;

    test_nsset_begin(&n, settings);
    test_nsset_finish(&n);
    ASSERT_TRUE(reads_inside(&n, "/proc/sys/net/ipv4/ping_group_range", "0\t65535\n"));
    ASSERT_TRUE(reads_inside(&n, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0\n"));
    test_nsset_close(&n);
}

/* One that is not there, two of the host, one that is none. */
TEST(setting_that_cannot_be_written_is_told_by_name)
{
    static const char *const bad[] = { "net/ipv4/no_such=1", "kernel/printk_delay=0",
                                       "net/../kernel/printk_delay=0", "net" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        const char *const one[] = { bad[i], NULL };
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int fds[AGX_PLAN_REPORT_FDS_MAX];
        struct agx_plan_report r;
        struct test_nsset n;

        test_nsset_begin(&n, one);
        test_nsset_map(&n);
        test_report_go(n.report_fd);
        ASSERT_TRUE(test_report_read(n.report_fd, &r, fds));
        ASSERT_INT(AGX_PLAN_FAILED, r.kind);
        (void)agx_plan_failed(&r, &err);
        ASSERT_MESSAGE(err, bad[i]);
        ASSERT_INT(125, WEXITSTATUS(test_nsset_leave(&n)));
        test_nsset_close(&n);
    }
}

TEST(one_process_makes_nssets_one_after_the_other)
{
    struct test_nsset first, n;
    struct stat of_first, of_n;

    test_nsset_begin(&n, settings);
    test_nsset_finish(&n);
    first = n;
    test_nsset_again(&n);
    test_nsset_finish(&n);
    ASSERT_INT(0, fstat(first.net_fd, &of_first));
    ASSERT_INT(0, fstat(n.net_fd, &of_n));
    ASSERT_TRUE(of_first.st_ino != of_n.st_ino);
    ASSERT_INT(0, fstat(first.user_fd, &of_first));
    ASSERT_INT(0, fstat(n.user_fd, &of_n));
    ASSERT_TRUE(of_first.st_ino != of_n.st_ino);
    ASSERT_TRUE(reads_inside(&n, "/proc/sys/net/ipv4/ping_group_range", "0\t65535\n"));
    test_nsset_close(&n);
    first.init = 0;
    test_nsset_close(&first);
}

TEST(daemon_that_goes_away_ends_the_process_that_makes_nssets)
{
    struct test_nsset n;

    test_nsset_begin(&n, settings);
    test_nsset_finish(&n);
    ASSERT_INT(125, WEXITSTATUS(test_nsset_leave(&n)));
    test_nsset_close(&n);
}

/* Init waits for it, so that it has ended as well. */
TEST(daemon_that_goes_away_ends_the_process_of_a_nsset)
{
    struct test_nsset n;

    test_nsset_begin(&n, settings);
    ASSERT_INT(125, WEXITSTATUS(test_nsset_leave(&n)));
    ASSERT_INT(-1, kill(n.pid, 0));
    ASSERT_INT(ESRCH, errno);
    test_nsset_close(&n);
}

TEST(nsset_whose_process_is_killed_ends_the_reports)
{
    struct test_nsset n;
    struct agx_plan_report r;
    int fds[AGX_PLAN_REPORT_FDS_MAX];

    test_nsset_begin(&n, settings);
    ASSERT_INT(0, kill(n.pid, SIGKILL));
    ASSERT_FALSE(test_report_read(n.report_fd, &r, fds));
    ASSERT_INT(125, WEXITSTATUS(test_nsset_leave(&n)));
    test_nsset_close(&n);
}

TEST(descriptor_that_is_none_is_refused)
{
    ASSERT_INT(125, WEXITSTATUS(test_wait(test_init_spawn(
                        (const char *const[]){ "--nssets", "77", NULL }, NULL, 0))));
    ASSERT_INT(125, WEXITSTATUS(test_wait(
                        test_init_spawn((const char *const[]){ "--nssets", NULL }, NULL, 0))));
}

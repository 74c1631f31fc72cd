#include "base/fdpass.h"
#include "base/macros.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* How many this process has, the one of the look itself included. */
static int n_open(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    ASSERT_NOT_NULL(dir);
    while (readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

struct pair {
    int ours, theirs;
};

static void pair_done(struct pair *p)
{
    agx_closep(&p->ours);
    agx_closep(&p->theirs);
}

static struct pair pair_open(int type)
{
    int fds[2];

    ASSERT_INT(0, socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds));
    return (struct pair){ fds[0], fds[1] };
}

#define _cleanup_pair_ _cleanup_(pair_done)

static void close_all(const struct agx_fdpass *in)
{
    for (size_t i = 0; i < in->n; i++)
        (void)close(in->fds[i]);
}

static void send_many(const struct pair *p, size_t n)
{
    int fds[AGX_FDPASS_MAX];

    for (size_t i = 0; i < n; i++)
        fds[i] = p->ours;
    ASSERT_INT(3, agx_fdpass_send(p->theirs, "abc", 3, fds, n, 0));
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

TEST(fdpass_brings_bytes_and_descriptors_in_their_order)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    const int sent[] = { p.ours, p.theirs };
    int fds[3];
    struct agx_fdpass in = { .fds = fds, .max = AGX_ARRAY_LEN(fds) };
    char buf[8];

    ASSERT_INT(3, agx_fdpass_send(p.theirs, "abc", 3, sent, 2, 0));
    ASSERT_INT(3, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
    ASSERT_INT(0, memcmp(buf, "abc", 3));
    ASSERT_UINT(2, in.n);
    ASSERT_FALSE(in.lost || in.cut);
    ASSERT_TRUE(is_same_file(p.ours, fds[0]));
    ASSERT_TRUE(is_same_file(p.theirs, fds[1]));
    ASSERT_TRUE(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    close_all(&in);
}

TEST(fdpass_brings_as_many_as_there_can_be)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    int fds[AGX_FDPASS_MAX];
    struct agx_fdpass in = { .fds = fds, .max = AGX_FDPASS_MAX };
    char buf[8];

    send_many(&p, AGX_FDPASS_MAX);
    ASSERT_INT(3, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
    ASSERT_UINT(AGX_FDPASS_MAX, in.n);
    ASSERT_FALSE(in.lost);
    close_all(&in);
}

TEST(fdpass_of_more_than_there_can_be_sends_nothing)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    const int fds[AGX_FDPASS_MAX + 1] = { 0 };
    char byte;

    ASSERT_INT(-1, agx_fdpass_send(p.theirs, "abc", 3, fds, AGX_ARRAY_LEN(fds), 0));
    ASSERT_INT(EINVAL, errno);
    ASSERT_INT(-1, recv(p.ours, &byte, 1, MSG_DONTWAIT));
}

TEST(fdpass_without_descriptors_brings_bytes_alone)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_STREAM);
    struct agx_fdpass in = { 0 };
    char buf[8];

    ASSERT_INT(3, agx_fdpass_send(p.theirs, "abc", 3, NULL, 0, 0));
    ASSERT_INT(3, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
    ASSERT_UINT(0, in.n);
    ASSERT_FALSE(in.lost || in.cut);
}

/* An odd room too: the kernel fills the padding behind it. */
TEST(fdpass_closes_descriptors_that_nobody_has_room_for)
{
    for (size_t max = 0; max < AGX_FDPASS_MAX; max++) {
        _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
        const int before = n_open();
        int fds[AGX_FDPASS_MAX] = { 0 };
        struct agx_fdpass in = { .fds = fds, .max = max };
        char buf[8];

        fds[max] = -7;
        send_many(&p, AGX_FDPASS_MAX);
        ASSERT_INT(3, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
        ASSERT_UINT(max, in.n);
        ASSERT_TRUE(in.lost);
        ASSERT_INT(-7, fds[max]);
        ASSERT_INT(before + (int)max, n_open());
        close_all(&in);
        ASSERT_INT(before, n_open());
    }
}

TEST(fdpass_of_one_more_than_wanted_loses_that_one)
{
    for (size_t max = 0; max < AGX_FDPASS_MAX; max++) {
        _cleanup_pair_ struct pair p = pair_open(SOCK_STREAM);
        const int before = n_open();
        int fds[AGX_FDPASS_MAX];
        struct agx_fdpass in = { .fds = fds, .max = max };
        char buf[8];

        send_many(&p, max + 1);
        ASSERT_INT(3, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
        ASSERT_UINT(max, in.n);
        ASSERT_TRUE(in.lost);
        close_all(&in);
        ASSERT_INT(before, n_open());
    }
}

TEST(fdpass_into_a_process_that_may_have_no_more_says_so)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    struct rlimit limit, low;
    int fds[4];
    struct agx_fdpass in = { .fds = fds, .max = AGX_ARRAY_LEN(fds) };
    _cleanup_close_ int next = dup(p.ours);
    char buf[8];
    ssize_t n;

    ASSERT_TRUE(next >= 0);
    ASSERT_INT(0, getrlimit(RLIMIT_NOFILE, &limit));
    low = (struct rlimit){ (rlim_t)next + 3, limit.rlim_max }; /* two more */
    send_many(&p, AGX_ARRAY_LEN(fds));
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &low));
    n = agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in);
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
    ASSERT_INT(3, n);
    ASSERT_UINT(2, in.n);
    ASSERT_TRUE(in.lost);
    close_all(&in);
}

TEST(fdpass_of_a_packet_that_is_too_long_says_so_and_keeps_its_descriptors)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    int fd = -1;
    struct agx_fdpass in = { .fds = &fd, .max = 1 };
    char buf[2];

    send_many(&p, 1);
    ASSERT_INT(2, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
    ASSERT_TRUE(in.cut);
    ASSERT_UINT(1, in.n);
    close_all(&in);
}

TEST(fdpass_of_an_empty_packet_keeps_none_of_its_descriptors)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    const int before = n_open();
    int fd = -1;
    struct agx_fdpass in = { .fds = &fd, .max = 1 };
    char buf[2];

    ASSERT_INT(0, agx_fdpass_send(p.theirs, "", 0, &p.ours, 1, 0));
    ASSERT_INT(0, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
    ASSERT_UINT(0, in.n);
    ASSERT_INT(before, n_open());
}

TEST(fdpass_fails_with_errno_and_without_a_signal_where_nobody_is)
{
    _cleanup_pair_ struct pair p = pair_open(SOCK_SEQPACKET);
    int fd = -1;
    struct agx_fdpass in = { .fds = &fd, .max = 1, .n = 1, .lost = true };
    char buf[2];

    ASSERT_INT(-1, agx_fdpass_receive(p.ours, buf, sizeof(buf), MSG_DONTWAIT, &in));
    ASSERT_INT(EAGAIN, errno);
    ASSERT_UINT(0, in.n);
    ASSERT_FALSE(in.lost);
    agx_closep(&p.theirs);
    p.theirs = -1;
    ASSERT_INT(-1, agx_fdpass_send(p.ours, "abc", 3, NULL, 0, 0));
    ASSERT_INT(EPIPE, errno);
    ASSERT_INT(0, agx_fdpass_receive(p.ours, buf, sizeof(buf), 0, &in));
}

#include "runtime/sockowner.h"

#include "base/fd.h"
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOMEBODY = 12345 };

/* A listening socket and both ends of a connection to it. */
struct tcp {
    int ask, listener, client, server;
};

static void listen_at(struct tcp *t, int family, const char *address)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    const int off = 0;

    t->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (family == AF_INET) {
        ASSERT_INT(1, inet_pton(AF_INET, address, &v4.sin_addr));
        ASSERT_INT(0, bind(t->listener, (struct sockaddr *)&v4, sizeof(v4)));
    } else {
        ASSERT_INT(0, setsockopt(t->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)));
        ASSERT_INT(1, inet_pton(AF_INET6, address, &v6.sin6_addr));
        ASSERT_INT(0, bind(t->listener, (struct sockaddr *)&v6, sizeof(v6)));
    }
    ASSERT_INT(0, listen(t->listener, 1));
}

/* It stands at the same place in both kinds of address. */
static uint16_t port_of(int fd)
{
    struct sockaddr_in6 sa = { .sin6_port = 0 };
    socklen_t len = sizeof(sa);

    ASSERT_INT(0, getsockname(fd, (struct sockaddr *)&sa, &len));
    return sa.sin6_port;
}

static void connect_to(struct tcp *t, int family, const char *address)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = port_of(t->listener) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = v4.sin_port };

    t->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (family == AF_INET) {
        ASSERT_INT(1, inet_pton(AF_INET, address, &v4.sin_addr));
        ASSERT_INT(0, connect(t->client, (struct sockaddr *)&v4, sizeof(v4)));
    } else {
        ASSERT_INT(1, inet_pton(AF_INET6, address, &v6.sin6_addr));
        ASSERT_INT(0, connect(t->client, (struct sockaddr *)&v6, sizeof(v6)));
    }
    t->server = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC);
    ASSERT_TRUE(t->server >= 0);
}

static struct tcp pair(int listener_family, const char *bound, int family, const char *address)
{
    struct tcp t = { -1, -1, -1, -1 };

    ASSERT_OK(agx_sockowner_open(&t.ask, NULL));
    listen_at(&t, listener_family, bound);
    connect_to(&t, family, address);
    return t;
}

static void done(struct tcp *t)
{
    (void)close(t->ask);
    (void)close(t->listener);
    (void)close(t->client);
    (void)close(t->server);
}

static void expect_ours(struct tcp *t)
{
    uid_t uid = SOMEBODY;

    ASSERT_OK(agx_sockowner_find(t->ask, t->server, &uid, NULL));
    ASSERT_INT(geteuid(), uid);
}

static void expect_nobody(struct tcp *t)
{
    uid_t uid = SOMEBODY;

    ASSERT_CODE(AGX_NOT_FOUND, agx_sockowner_find(t->ask, t->server, &uid, NULL));
    ASSERT_INT(SOMEBODY, uid);
}

TEST(sockowner_knows_the_user_of_each_kind_of_tcp_connection)
{
    static const struct {
        int listener_family, family;
        const char *bound, *address;
    } cases[] = {
        { AF_INET, AF_INET, "127.0.0.1", "127.0.0.1" },
        { AF_INET, AF_INET, "127.0.0.2", "127.0.0.2" },
        { AF_INET, AF_INET6, "127.0.0.1", "::ffff:127.0.0.1" },
        { AF_INET6, AF_INET6, "::1", "::1" },
        { AF_INET6, AF_INET, "::", "127.0.0.1" },
        { AF_INET6, AF_INET6, "::", "::ffff:127.0.0.1" },
        { AF_INET6, AF_INET6, "::", "::1" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        struct tcp t =
            pair(cases[i].listener_family, cases[i].bound, cases[i].family, cases[i].address);

        expect_ours(&t);
        expect_ours(&t); /* as often as it is asked */
        done(&t);
    }
}

TEST(sockowner_knows_another_user)
{
    struct tcp t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
    uid_t uid = 0;

    if (geteuid() != 0)
        SKIP("only root can be somebody else");
    (void)close(t.client);
    (void)close(t.server);
    ASSERT_INT(0, seteuid(SOMEBODY));
    connect_to(&t, AF_INET, "127.0.0.1");
    ASSERT_INT(0, seteuid(0));
    ASSERT_OK(agx_sockowner_find(t.ask, t.server, &uid, NULL));
    ASSERT_INT(SOMEBODY, uid);
    done(&t);
}

TEST(sockowner_knows_who_sends_no_more_but_still_reads)
{
    struct tcp t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
    char c;

    ASSERT_INT(0, shutdown(t.client, SHUT_WR));
    ASSERT_INT(0, read(t.server, &c, 1));
    expect_ours(&t);
    done(&t);
}

/* The kernel would say root. */
TEST(sockowner_of_a_socket_that_is_closed_is_nobody)
{
    struct tcp t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
    char c;

    ASSERT_INT(0, close(t.client));
    ASSERT_INT(0, read(t.server, &c, 1)); /* the end has arrived */
    expect_nobody(&t);
    t.client = -1;
    done(&t);
}

TEST(sockowner_of_a_socket_that_was_closed_with_a_reset_is_nobody)
{
    struct tcp t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
    const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
    char c;

    ASSERT_INT(0, setsockopt(t.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
    ASSERT_INT(0, close(t.client));
    ASSERT_INT(-1, read(t.server, &c, 1));
    expect_nobody(&t);
    t.client = -1;
    done(&t);
}

/* As it looks when the other end is in another network namespace: no socket here is it, but one
 * listens on its port, which is somebody else's. TCP_REPAIR lets a socket go without a word. */
TEST(sockowner_is_not_whoever_listens_on_the_port_of_the_client)
{
    struct tcp t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    const int on = 1;
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sa.sin_port = port_of(t.client);
    if (setsockopt(t.client, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) < 0)
        SKIP("only root may repair connections");
    ASSERT_INT(0, close(t.client));
    t.client = -1;
    expect_nobody(&t);
    ASSERT_INT(0, bind(other, (struct sockaddr *)&sa, sizeof(sa)));
    ASSERT_INT(0, listen(other, 1));
    expect_nobody(&t);
    (void)close(other);
    done(&t);
}

/* All of them would be one user, and might be taken for us. */
TEST(sockowner_does_not_guess_a_user_without_a_number)
{
    pid_t child = fork();
    struct tcp t;
    uid_t uid;
    int status;

    if (child == 0) {
        if (unshare(CLONE_NEWUSER) < 0)
            _exit(2);
        t = pair(AF_INET, "127.0.0.1", AF_INET, "127.0.0.1");
        _exit(agx_sockowner_find(t.ask, t.server, &uid, NULL) != -AGX_NOT_FOUND);
    }
    ASSERT_INT(child, waitpid(child, &status, 0));
    if (status == 2 << 8)
        SKIP("this kernel lets us make no user namespace");
    ASSERT_INT(0, status);
}

TEST(sockowner_of_a_connection_that_is_not_tcp_is_an_error)
{
    struct tcp t = { -1, -1, -1, -1 };
    int fds[2];
    uid_t uid;

    ASSERT_OK(agx_sockowner_open(&t.ask, NULL));
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_sockowner_find(t.ask, fds[0], &uid, NULL));
    (void)close(fds[0]);
    (void)close(fds[1]);
    done(&t);
}

#include "loop/listener.h"
#include "loop/unixsock.h"
#include "tests/support/loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

struct fixture {
    struct agx_loop *loop;
    struct agx_listener *ln;
    char dir[40], path[60];
    int accepted[80];
    unsigned n, until;
    char peer[128];
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){ .loop = test_loop_open(), .until = 1 };
    snprintf(f->dir, sizeof(f->dir), "/tmp/agx-listener-XXXXXX");
    ASSERT_NOT_NULL(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
}

static void teardown(struct fixture *f)
{
    for (unsigned i = 0; i < f->n; i++)
        close(f->accepted[i]);
    f->ln = agx_listener_close(f->ln);
    test_loop_close(f->loop);
    ASSERT_INT(0, rmdir(f->dir)); /* so nothing is left behind */
}

static void on_accept(void *user, int fd, const struct agx_addr *peer)
{
    struct fixture *f = user;

    f->accepted[f->n++] = fd;
    agx_addr_format(peer, f->peer, sizeof(f->peer));
    if (f->n == f->until)
        agx_loop_stop(f->loop);
}

static void open_unix(struct fixture *f)
{
    ASSERT_OK(agx_listener_open_unix(f->loop, f->path, &f->ln, NULL));
}

/* A client; blocking, so it returns when the kernel has queued the connection. */
static int connect_unix(const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_addr(const struct agx_addr *a)
{
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ASSERT_INT(0, connect(fd, (const struct sockaddr *)&a->sa, a->len));
    return fd;
}

TEST(unix_listener_is_private_and_hands_out_nonblocking_descriptors)
{
    struct fixture f;
    struct stat st;
    int client;

    setup(&f);
    open_unix(&f);
    ASSERT_INT(0, stat(f.path, &st));
    ASSERT_INT(0600, st.st_mode & 07777);
    ASSERT_OK(agx_listener_start(f.ln, on_accept, &f, NULL));
    client = connect_unix(f.path);
    ASSERT_TRUE(client >= 0);
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n);
    ASSERT_TRUE(fcntl(f.accepted[0], F_GETFL) & O_NONBLOCK);
    ASSERT_TRUE(fcntl(f.accepted[0], F_GETFD) & FD_CLOEXEC);
    ASSERT_CSTR("unix", f.peer);
    close(client);
    teardown(&f);
}

TEST(unix_listener_is_private_whatever_the_umask)
{
    mode_t old = umask(0);
    struct fixture f;
    struct stat st;

    setup(&f);
    open_unix(&f);
    umask(old);
    ASSERT_INT(0, stat(f.path, &st));
    ASSERT_INT(0600, st.st_mode & 07777);
    teardown(&f);
}

/* What a process that died while it listened leaves behind. */
static void leave_stale_socket(const char *path)
{
    struct sockaddr_un sa = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    ASSERT_INT(0, bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
    close(fd);
}

TEST(unix_listener_replaces_a_socket_that_nobody_listens_at)
{
    struct fixture f;
    int client;

    setup(&f);
    leave_stale_socket(f.path);
    open_unix(&f);
    client = connect_unix(f.path);
    ASSERT_TRUE(client >= 0);
    close(client);
    teardown(&f);
}

struct racer {
    pthread_t thread;
    pthread_barrier_t *start;
    const char *path;
    int r, fd;
    struct agx_unixsock *sock;
};

static void *race(void *arg)
{
    struct racer *me = arg;

    pthread_barrier_wait(me->start);
    me->r = agx_unixsock_listen(me->path, &me->fd, &me->sock, NULL);
    return NULL;
}

/* Returns how many of four, who start together, got the socket. */
static int race_once(const char *path, pthread_barrier_t *start)
{
    struct racer racers[4];
    int winners = 0;

    for (size_t i = 0; i < AGX_ARRAY_LEN(racers); i++) {
        racers[i] = (struct racer){ .start = start, .path = path, .fd = -1 };
        ASSERT_INT(0, pthread_create(&racers[i].thread, NULL, race, &racers[i]));
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(racers); i++) {
        pthread_join(racers[i].thread, NULL);
        winners += racers[i].r == 0;
    }
    for (size_t i = 0; i < AGX_ARRAY_LEN(racers); i++) {
        agx_unixsock_free(racers[i].sock);
        agx_closep(&racers[i].fd);
    }
    return winners;
}

TEST(unixsock_that_many_want_at_once_goes_to_one_of_them)
{
    pthread_barrier_t start;
    struct fixture f;

    setup(&f);
    pthread_barrier_init(&start, NULL, 4);
    for (int i = 0; i < 50; i++) {
        leave_stale_socket(f.path);
        ASSERT_INT(1, race_once(f.path, &start));
    }
    pthread_barrier_destroy(&start);
    teardown(&f);
}

TEST(unix_listener_refuses_a_path_where_somebody_listens)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_listener *second = NULL;
    struct fixture f;

    setup(&f);
    open_unix(&f);
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_listener_open_unix(f.loop, f.path, &second, &err));
    ASSERT_MESSAGE(err, "another process listens at");
    ASSERT_NULL(second);
    ASSERT_INT(0, access(f.path, F_OK)); /* and the first one's is still there */
    teardown(&f);
}

TEST(unix_listener_refuses_a_path_that_is_not_a_socket)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct fixture f;

    setup(&f);
    close(open(f.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_listener_open_unix(f.loop, f.path, &f.ln, &err));
    ASSERT_MESSAGE(err, "is not a socket");
    ASSERT_INT(0, unlink(f.path));
    teardown(&f);
}

TEST(unix_listener_does_not_follow_a_symlink)
{
    struct fixture f;

    setup(&f);
    ASSERT_INT(0, symlink("elsewhere", f.path));
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_listener_open_unix(f.loop, f.path, &f.ln, NULL));
    ASSERT_INT(0, unlink(f.path));
    teardown(&f);
}

TEST(unix_listener_with_a_bad_path_says_what_is_wrong)
{
    _cleanup_(agx_error_freep) struct agx_error *too_long = NULL, *missing = NULL;
    char path[200];
    struct fixture f;

    setup(&f);
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_listener_open_unix(f.loop, path, &f.ln, &too_long));
    ASSERT_MESSAGE(too_long, "has 199 bytes, but 1 to 107 are allowed");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_listener_open_unix(f.loop, "", &f.ln, NULL));
    ASSERT_CODE(AGX_NOT_FOUND, agx_listener_open_unix(f.loop, "/nowhere/s", &f.ln, &missing));
    ASSERT_MESSAGE(missing, "'/nowhere/s': No such file");
    teardown(&f);
}

TEST(unix_listener_closed_removes_its_path_only_while_it_is_its_own)
{
    struct fixture f;
    struct agx_listener *second = NULL;

    setup(&f);
    open_unix(&f);
    ASSERT_INT(0, unlink(f.path));
    ASSERT_OK(agx_listener_open_unix(f.loop, f.path, &second, NULL));
    f.ln = agx_listener_close(f.ln);
    ASSERT_INT(0, access(f.path, F_OK));
    agx_listener_close(second);
    ASSERT_INT(-1, access(f.path, F_OK));
    teardown(&f);
}

TEST(tcp_listener_with_port_zero_tells_the_port_that_it_got)
{
    int client, on = 0;
    socklen_t len = sizeof(on);
    char text[64];
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_listener_open_tcp(f.loop, "127.0.0.1", 0, &f.ln, NULL));
    ASSERT_TRUE(agx_addr_port(agx_listener_peek_addr(f.ln)) > 0);
    agx_addr_format(agx_listener_peek_addr(f.ln), text, sizeof(text));
    ASSERT_TRUE(agx_str_starts(agx_str_from(text), AGX_STR("127.0.0.1:")));
    ASSERT_OK(agx_listener_start(f.ln, on_accept, &f, NULL));
    client = connect_addr(agx_listener_peek_addr(f.ln));
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n);
    ASSERT_TRUE(agx_str_starts(agx_str_from(f.peer), AGX_STR("127.0.0.1:")));
    ASSERT_INT(0, getsockopt(f.accepted[0], IPPROTO_TCP, TCP_NODELAY, &on, &len));
    ASSERT_TRUE(on);
    close(client);
    teardown(&f);
}

TEST(tcp_listener_at_a_used_port_or_a_bad_host_says_so)
{
    _cleanup_(agx_error_freep) struct agx_error *used = NULL, *bad = NULL;
    struct agx_listener *second = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_OK(agx_listener_open_tcp(f.loop, "127.0.0.1", 0, &f.ln, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                agx_listener_open_tcp(f.loop, "127.0.0.1",
                                      agx_addr_port(agx_listener_peek_addr(f.ln)), &second, &used));
    ASSERT_MESSAGE(used, "Address already in use");
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_listener_open_tcp(f.loop, "300.1.1.1.1", 1, &second, &bad));
    ASSERT_MESSAGE(bad, "300.1.1.1.1");
    teardown(&f);
}

TEST(adopted_listener_takes_a_listening_socket_and_nothing_else)
{
    struct sockaddr_in sa = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int client, fd = socket(AF_INET, SOCK_STREAM, 0), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct fixture f;

    setup(&f);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_listener_open_fd(f.loop, &null, &f.ln, &err));
    ASSERT_MESSAGE(err, "is not a listening stream socket");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_listener_open_fd(f.loop, &fd, &f.ln, NULL));
    ASSERT_TRUE(fd >= 0 && null >= 0); /* still the caller's */
    close(null);
    ASSERT_INT(0, bind(fd, (struct sockaddr *)&sa, sizeof(sa)));
    ASSERT_INT(0, listen(fd, 8));
    ASSERT_OK(agx_listener_open_fd(f.loop, &fd, &f.ln, NULL));
    ASSERT_INT(-1, fd);
    ASSERT_OK(agx_listener_start(f.ln, on_accept, &f, NULL));
    client = connect_addr(agx_listener_peek_addr(f.ln));
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n);
    close(client);
    teardown(&f);
}

static void on_accept_close(void *user, int fd, const struct agx_addr *peer)
{
    struct fixture *f = user;

    (void)peer;
    f->n++;
    close(fd);
    f->ln = agx_listener_close(f->ln);
}

TEST(listener_closed_by_its_own_callback_accepts_nothing_more)
{
    int a, b;
    struct fixture f;

    setup(&f);
    open_unix(&f);
    ASSERT_OK(agx_listener_start(f.ln, on_accept_close, &f, NULL));
    a = connect_unix(f.path);
    b = connect_unix(f.path);
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n);
    f.n = 0;
    close(a);
    close(b);
    teardown(&f);
}

struct drought {
    struct rlimit old;
    uv_timer_t end;
    uv_prepare_t turns;
    unsigned n_turns;
};

static void on_turn(uv_prepare_t *p)
{
    container_of(p, struct drought, turns)->n_turns++;
}

static void on_drought_end(uv_timer_t *t)
{
    struct drought *d = container_of(t, struct drought, end);

    (void)setrlimit(RLIMIT_NOFILE, &d->old);
    uv_close((uv_handle_t *)&d->turns, NULL);
    uv_close((uv_handle_t *)t, NULL);
}

static void drought_start(struct drought *d, struct agx_loop *l)
{
    struct rlimit none;

    *d = (struct drought){ 0 };
    ASSERT_INT(0, getrlimit(RLIMIT_NOFILE, &d->old));
    none = (struct rlimit){ .rlim_cur = 3, .rlim_max = d->old.rlim_max };
    ASSERT_INT(0, setrlimit(RLIMIT_NOFILE, &none));
    (void)uv_timer_init(agx_loop_uv(l), &d->end);
    (void)uv_timer_start(&d->end, on_drought_end, 300, 0);
    (void)uv_prepare_init(agx_loop_uv(l), &d->turns);
    (void)uv_prepare_start(&d->turns, on_turn);
}

TEST(listener_without_free_descriptors_pauses_and_carries_on_later)
{
    struct drought d;
    struct fixture f;
    int client;

    setup(&f);
    open_unix(&f);
    ASSERT_OK(agx_listener_start(f.ln, on_accept, &f, NULL));
    client = connect_unix(f.path);
    drought_start(&d, f.loop);
    test_loop_run(f.loop);
    ASSERT_UINT(1, f.n);
    if (d.n_turns > 50) /* a loop that spins makes thousands in that time */
        FAIL("the loop turned %u times while it should have slept", d.n_turns);
    close(client);
    teardown(&f);
}

TEST(listener_takes_a_crowd_of_connections)
{
    int clients[80];
    struct fixture f;

    setup(&f);
    f.until = AGX_ARRAY_LEN(clients);
    open_unix(&f);
    for (size_t i = 0; i < AGX_ARRAY_LEN(clients); i++)
        clients[i] = connect_unix(f.path);
    ASSERT_OK(agx_listener_start(f.ln, on_accept, &f, NULL));
    test_loop_run(f.loop);
    ASSERT_UINT(AGX_ARRAY_LEN(clients), f.n);
    for (size_t i = 0; i < AGX_ARRAY_LEN(clients); i++)
        close(clients[i]);
    teardown(&f);
}

TEST(addr_format_of_ipv6_has_brackets)
{
    struct agx_addr a = { .len = sizeof(struct sockaddr_in6) };
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&a.sa;
    char text[64];

    in6->sin6_family = AF_INET6;
    in6->sin6_addr = in6addr_loopback;
    in6->sin6_port = htons(80);
    ASSERT_CSTR("[::1]:80", agx_addr_format(&a, text, sizeof(text)));
    ASSERT_UINT(80, agx_addr_port(&a));
    ASSERT_CSTR("[:", agx_addr_format(&a, text, 3));
}

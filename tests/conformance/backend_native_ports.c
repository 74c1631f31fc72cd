/* Ports of native sandboxes, and their forwarder. */
#include "base/limits_native.h"
#include "tests/conformance/backend_native.h"
#include "tests/conformance/backend_stage.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { TRIES = 12000 }; /* of 10 ms and more: only a hang takes as long */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

static int ask(uint16_t port, char *out, size_t size)
{
    const struct sockaddr_in to = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t n = -1;

    if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
        n = recv(fd, out, size - 1, MSG_WAITALL);
    (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Whoever listens inside may be between two connections. */
static void ask_until_it_answers(struct stage *s, uint16_t port, char *out, size_t size)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (ask(port, out, size))
            return;
        test_pause(s->b->loop, 10);
    }
    FAIL("nobody answers on port %u", port);
}

static void create_with_port(struct stage *s)
{
    struct agx_port *port;

    ASSERT_OK(agx_spec_add_port(&s->sb.spec, &port, NULL));
    *port = (struct agx_port){ 7000, 17000, AGX_PROTOCOL_TCP };
    command(&s->sb.spec.command, "while :; do echo hello | nc -l -p 7000; done");
    test_backend_ok(s->b, &s->sb, AGX_DO_CREATE);
}

TEST(declared_ports_are_forwarded_also_after_a_restart_of_the_daemon_and_free_after_a_stop)
{
    struct stage s;
    char got[16];

    open_stage(&s);
    create_with_port(&s);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    ASSERT_CSTR("hello\n", got);
    reopen(&s);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    close_stage(&s);
}

/* Until the record has another one than that. */
static pid_t next_forwarder(struct stage *s, pid_t last)
{
    for (unsigned i = 0; i < TRIES; i++) {
        pid_t pid = native_world_forwarder(s->sb.id);

        if (pid != last)
            return pid;
        test_pause(s->b->loop, 10);
    }
    FAIL("no forwarder follows %d", last);
    return 0;
}

/* One that has ended and was not waited for counts as gone. */
static bool is_alive(pid_t pid)
{
    char path[32], text[256] = "";
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f)
        return false;
    (void)!fread(text, 1, sizeof(text) - 1, f);
    (void)fclose(f);
    return text[0] && !strstr(text, ") Z ");
}

static void await_end(pid_t pid)
{
    while (is_alive(pid))
        (void)usleep(1000);
}

/* Listens there, or -1: somebody else does. */
static int take_port(uint16_t port)
{
    const struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 1) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void port_is_free(struct stage *s, uint16_t port)
{
    for (unsigned i = 0; i < TRIES; i++) {
        int fd = take_port(port);

        if (fd >= 0) {
            (void)close(fd);
            return;
        }
        test_pause(s->b->loop, 10);
    }
    FAIL("somebody has port %u", port);
}

TEST(a_forwarder_that_dies_is_started_again_also_when_no_daemon_ran)
{
    pid_t first, second, third;
    struct agx_loop *l;
    struct stage s;
    char got[16];

    open_stage(&s);
    create_with_port(&s);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    first = native_world_forwarder(s.sb.id);
    ASSERT_INT(0, kill(first, SIGKILL));
    second = next_forwarder(&s, first);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    ASSERT_CSTR("hello\n", got);
    reopen(&s); /* which adopts what the last one started */
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    ASSERT_INT(second, native_world_forwarder(s.sb.id));
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    ASSERT_INT(0, kill(second, SIGKILL));
    third = next_forwarder(&s, second);
    l = close_backend(&s);
    ASSERT_INT(0, kill(third, SIGKILL));
    s.b = conformance_backend_open(l);
    third = next_forwarder(&s, third);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    port_is_free(&s, 17000);
    await_end(third);
    close_stage(&s);
}

TEST(a_stop_or_delete_while_a_forwarder_is_started_again_leaves_none)
{
    struct stage s;
    char got[16];

    open_stage(&s);
    create_with_port(&s);
    for (unsigned i = 0; i < 6; i++) { /* each a bit later in the life of the next one */
        ask_until_it_answers(&s, 17000, got, sizeof(got));
        ASSERT_INT(0, kill(native_world_forwarder(s.sb.id), SIGKILL));
        test_pause(s.b->loop, i * 25);
        test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
        port_is_free(&s, 17000);
        test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    }
    ASSERT_INT(0, kill(native_world_forwarder(s.sb.id), SIGKILL));
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    port_is_free(&s, 17000);
    close_stage(&s);
}

TEST(a_forwarder_waits_until_somebody_else_gives_its_port_back)
{
    struct agx_loop *l;
    struct stage s;
    char got[16];
    pid_t last;
    int fd;

    open_stage(&s);
    create_with_port(&s);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    last = native_world_forwarder(s.sb.id);
    l = close_backend(&s);
    ASSERT_INT(0, kill(last, SIGKILL));
    await_end(last);
    fd = take_port(17000);
    ASSERT_OK(fd);
    s.b = conformance_backend_open(l);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    test_pause(s.b->loop, 3 * AGX_NATIVE_FORWARD_FIRST_MS);
    ASSERT_INT(last, native_world_forwarder(s.sb.id));
    (void)close(fd);
    (void)next_forwarder(&s, last);
    ask_until_it_answers(&s, 17000, got, sizeof(got));
    close_stage(&s);
}

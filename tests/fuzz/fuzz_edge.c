/*
 * fuzz_edge.c: arbitrary bytes on a connection of the HTTP and Engine.IO servers. The servers do
 * not crash, and leave no session, handle or memory behind. In the input, 0xff 0x00 stands for a
 * pause in which the server works, "$SID" for the id of the newest session.
 */
#include "codec/sio_assembler.h"
#include "loop/loop.h"
#include "runtime/eio_server.h"
#include "tests/support/fuzz.h"

#include <string.h>
#include <sys/socket.h>

struct world {
    struct agx_loop *loop;
    struct agx_eio_server *eio;
    unsigned n_open, n_close;
    char sid[32];
};

static void on_open(void *user, struct agx_eio_session *s, const struct agx_exchange *x)
{
    static const struct agx_sio_limits limits = AGX_SIO_LIMITS_INIT;
    struct agx_sio_assembler *a = malloc(sizeof(*a));
    struct world *w = user;

    (void)x;
    FUZZ_CHECK(a);
    agx_sio_assembler_init(a, &limits);
    agx_eio_session_set_user(s, a);
    snprintf(w->sid, sizeof(w->sid), "%s", agx_eio_session_peek_sid(s));
    w->n_open++;
}

static void on_message(void *user, struct agx_eio_session *s, const struct agx_eio_packet *p)
{
    struct agx_sio_message m;
    int r = agx_sio_assembler_feed(agx_eio_session_user(s), p, &m, NULL);

    (void)user;
    if (r < 0)
        agx_eio_session_close(s, 1002, "not Socket.IO");
    else if (r > 0 && agx_eio_session_send(s, AGX_STR("answer"), &p->data, 1) < 0)
        agx_eio_session_close(s, 1011, "cannot send");
}

static void on_close(void *user, struct agx_eio_session *s, const char *reason)
{
    FUZZ_CHECK(reason[0]);
    ((struct world *)user)->n_close++;
    agx_sio_assembler_done(agx_eio_session_user(s));
    free(agx_eio_session_user(s));
}

static const struct agx_eio_server_ops eio_ops = { .open = on_open,
                                                   .message = on_message,
                                                   .close = on_close };

static void on_request(void *user, struct agx_exchange *x)
{
    agx_eio_server_request(((struct world *)user)->eio, x);
}

static void on_oversize(void *user, struct agx_exchange *x)
{
    agx_eio_server_oversize(((struct world *)user)->eio, x);
}

static void on_gone(void *user, struct agx_exchange *x)
{
    agx_eio_server_gone(((struct world *)user)->eio, x);
}

static const struct agx_http_server_ops http_ops = { .request = on_request,
                                                     .oversize = on_oversize,
                                                     .gone = on_gone };

static void turns(struct world *w, int fd)
{
    char sink[4096];

    for (int i = 0; i < 3; i++) {
        (void)uv_run(agx_loop_uv(w->loop), UV_RUN_NOWAIT);
        while (recv(fd, sink, sizeof(sink), 0) > 0) {
        }
    }
}

static void send_input(struct world *w, int fd, const uint8_t *data, size_t size)
{
    size_t from = 0, i = 0;

    while (i < size) {
        bool pause = size - i >= 2 && data[i] == 0xff && data[i + 1] == 0;
        bool sid = size - i >= 4 && memcmp(data + i, "$SID", 4) == 0;

        if (!pause && !sid) {
            i++;
            continue;
        }
        (void)!send(fd, data + from, i - from, MSG_NOSIGNAL);
        turns(w, fd);
        if (sid)
            (void)!send(fd, w->sid, strlen(w->sid), MSG_NOSIGNAL);
        i += pause ? 2 : 4;
        from = i;
    }
    (void)!send(fd, data + from, size - from, MSG_NOSIGNAL);
    turns(w, fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_conn_config conns = AGX_CONN_CONFIG_INIT;
    struct agx_http_server_config http = AGX_HTTP_SERVER_CONFIG_INIT;
    struct agx_eio_server_config eio = AGX_EIO_SERVER_CONFIG_INIT;
    struct agx_conn_group *group;
    struct agx_http_server *server;
    struct world w = { 0 };
    int fds[2];

    http.body_max = eio.message_max = 1 << 16;
    conns.read_bytes = 1 << 12;
    FUZZ_CHECK(agx_loop_open(&w.loop, NULL) == 0);
    FUZZ_CHECK(agx_conn_group_open(w.loop, &conns, &group, NULL) == 0);
    FUZZ_CHECK(agx_http_server_open(group, &http, &http_ops, &w, &server, NULL) == 0);
    FUZZ_CHECK(agx_eio_server_open(w.loop, &eio, &eio_ops, &w, &w.eio, NULL) == 0);
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    FUZZ_CHECK(agx_http_server_accept(server, &fds[0], 0, 0, NULL) == 0);
    send_input(&w, fds[1], data, size);
    close(fds[1]);
    w.eio = agx_eio_server_close(w.eio);
    server = agx_http_server_close(server);
    group = agx_conn_group_close(group);
    agx_loop_run(w.loop);
    FUZZ_CHECK(w.n_open == w.n_close);
    FUZZ_CHECK(agx_loop_close(w.loop, NULL) == 0);
    return 0;
}

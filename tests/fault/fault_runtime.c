#include "runtime/eio_server.h"
#include "tests/support/edge.h"
#include "tests/support/fault.h"

/* One session by polling and WebSocket, from its first byte to its end. Whatever fails in between,
 * nothing may crash, hang or stay behind (teardown checks handles, ASan memory). */
struct owner {
    struct edge edge;
    struct agx_eio_server *eio;
    unsigned n_open, n_close;
};

static void on_open(void *user, struct agx_eio_session *s, const struct agx_exchange *x)
{
    (void)s;
    (void)x;
    ((struct owner *)user)->n_open++;
}

static void on_message(void *user, struct agx_eio_session *s, const struct agx_eio_packet *p)
{
    struct agx_str part = p->data;

    (void)user;
    if (agx_eio_session_send(s, AGX_STR("echo"), &part, 1) < 0)
        agx_eio_session_close(s, 1011, "cannot send");
}

static void on_close(void *user, struct agx_eio_session *s, const char *reason)
{
    (void)s;
    (void)reason;
    ((struct owner *)user)->n_close++;
}

static const struct agx_eio_server_ops eio_ops = { .open = on_open,
                                                   .message = on_message,
                                                   .close = on_close };

static void on_request(void *user, struct agx_exchange *x)
{
    agx_eio_server_request(((struct owner *)user)->eio, x);
}

static void on_gone(void *user, struct agx_exchange *x)
{
    agx_eio_server_gone(((struct owner *)user)->eio, x);
}

static const struct agx_http_server_ops http_ops = { .request = on_request, .gone = on_gone };

/* The loop and its servers are made before anything fails. */
static void setup(struct owner *o)
{
    static const struct agx_http_server_config http = AGX_HTTP_SERVER_CONFIG_INIT;
    static const struct agx_eio_server_config eio = AGX_EIO_SERVER_CONFIG_INIT;

    *o = (struct owner){ 0 };
    edge_open(&o->edge, &http, &http_ops, o);
    ASSERT_OK(agx_eio_server_open(o->edge.loop, &eio, &eio_ops, o, &o->eio, NULL));
}

static void teardown(struct owner *o)
{
    o->eio = agx_eio_server_close(o->eio);
    edge_close(&o->edge);
    ASSERT_UINT(o->n_open, o->n_close);
}

/* Sends the text, takes what comes back within some turns into `got`, a C string. */
static void talk(struct owner *o, int fd, const char *text, size_t len, char *got, size_t size)
{
    (void)!send(fd, text, len, MSG_NOSIGNAL);
    got[0] = '\0';
    for (int i = 0; i < 8; i++) {
        edge_turn(&o->edge);
        (void)edge_recv(fd, got, size);
    }
}

/* True when the connection could be made. */
static bool accept_pair(struct owner *o, int *ret_fd)
{
    int fds[2];

    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    if (agx_http_server_accept(o->edge.http, &fds[0], 0, 0, NULL) < 0) {
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    *ret_fd = fds[1];
    return true;
}

TEST(polling_session_survives_or_ends_cleanly_whichever_allocation_fails)
{
    static const char hello[] = "GET /?EIO=4 HTTP/1.1\r\nHost: h\r\n\r\n";

    FAULT_EACH_ALLOCATION
    {
        char got[4096], text[400], sid[32] = "";
        const char *at;
        struct owner o;
        int fd = -1;

        agx_fault_arm(0);
        setup(&o);
        agx_fault_arm(fault_n_);
        if (accept_pair(&o, &fd)) {
            talk(&o, fd, hello, sizeof(hello) - 1, got, sizeof(got));
            at = strstr(got, "\"sid\":\"");
            if (at)
                snprintf(sid, sizeof(sid), "%.20s", at + 7);
            snprintf(text, sizeof(text),
                     "POST /?EIO=4&sid=%s HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n"
                     "4hi\x1e"
                     "bYWJjZA"
                     "GET /?EIO=4&sid=%s HTTP/1.1\r\nHost: h\r\n\r\n",
                     sid, sid);
            talk(&o, fd, text, strlen(text), got, sizeof(got));
            if (!agx_fault_hit())
                ASSERT_NOT_NULL(strstr(got, "4echo"));
            close(fd);
        }
        teardown(&o);
    }
}

TEST(websocket_session_survives_or_ends_cleanly_whichever_allocation_fails)
{
    static const char upgrade[] =
        "GET /?EIO=4&transport=websocket HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    /* A message in two fragments, so that it must be kept. */
    static const char frames[] = "\x01\x82\0\0\0\0"
                                 "4a\x80\x81\0\0\0\0"
                                 "b";

    FAULT_EACH_ALLOCATION
    {
        char got[4096];
        struct owner o;
        int fd = -1;

        agx_fault_arm(0);
        setup(&o);
        agx_fault_arm(fault_n_);
        if (accept_pair(&o, &fd)) {
            talk(&o, fd, upgrade, sizeof(upgrade) - 1, got, sizeof(got));
            talk(&o, fd, frames, sizeof(frames) - 1, got, sizeof(got));
            if (!agx_fault_hit())
                ASSERT_NOT_NULL(strstr(got, "4echo\x82\x02"
                                            "ab"));
            close(fd);
        }
        teardown(&o);
    }
}

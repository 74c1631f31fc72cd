/*
 * edge.h: an HTTP server on a loop that the test turns by hand, and clients at the other end of
 * socketpairs.
 */
#ifndef AGX_TESTS_EDGE_H
#define AGX_TESTS_EDGE_H

#include "runtime/http_server.h"
#include "tests/support/loop.h"

#include <sys/socket.h>

struct edge {
    struct agx_loop *loop;
    struct agx_conn_group *group;
    struct agx_http_server *http;
};

static inline void edge_open(struct edge *e, const struct agx_http_server_config *config,
                             const struct agx_http_server_ops *ops, void *user)
{
    static const struct agx_conn_config conns = AGX_CONN_CONFIG_INIT;

    *e = (struct edge){ .loop = test_loop_open() };
    ASSERT_OK(agx_conn_group_open(e->loop, &conns, &e->group, NULL));
    ASSERT_OK(agx_http_server_open(e->group, config, ops, user, &e->http, NULL));
}

static inline void edge_close(struct edge *e)
{
    e->http = agx_http_server_close(e->http);
    e->group = agx_conn_group_close(e->group);
    test_loop_run(e->loop);
    test_loop_close(e->loop);
}

/* A client's descriptor. */
static inline int edge_connect(struct edge *e)
{
    int fds[2];

    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    ASSERT_OK(agx_http_server_accept(e->http, &fds[0], 0, 0, NULL));
    return fds[1];
}

static inline void edge_turn(struct edge *e)
{
    (void)uv_run(agx_loop_uv(e->loop), UV_RUN_NOWAIT);
}

static inline void edge_send(int fd, const char *text)
{
    ASSERT_INT((ssize_t)strlen(text), send(fd, text, strlen(text), MSG_NOSIGNAL));
}

/* Appends received bytes to `out`, a C string; false at the end of the stream. */
static inline bool edge_recv(int fd, char *out, size_t size)
{
    size_t len = strlen(out);
    ssize_t n = recv(fd, out + len, size - len - 1, 0);

    if (n > 0)
        out[len + (size_t)n] = '\0';
    return n != 0;
}

/* Turns the loop until the client has received these words; all received bytes are in `out`. */
static inline void edge_expect(struct edge *e, int fd, const char *words, char *out, size_t size)
{
    out[0] = '\0';
    while (!strstr(out, words)) {
        edge_turn(e);
        if (!edge_recv(fd, out, size) && !strstr(out, words))
            FAIL("the stream ended after '%s', before '%s'", out, words);
    }
}

/* Turns the loop until the client sees the end of the stream. */
static inline void edge_expect_end(struct edge *e, int fd)
{
    char rest[4096] = "";

    while (edge_recv(fd, rest, sizeof(rest)))
        edge_turn(e);
}

#endif

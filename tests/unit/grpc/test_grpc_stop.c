#include "grpc/client.h"
#include "loop/listener.h"
#include "tests/support/grpc.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { LONG_MS = 40000 }; /* no test waits for it */

static struct rpc_held *start(struct rpc_fixture *f, struct rpc_request *q, const char *path)
{
    const struct agx_str message = AGX_STR("q");
    size_t before = f->n_held;

    rpc_start(&f->client, q, path, &message);
    RPC_UNTIL(f, f->n_held == before + 1);
    return &f->held[before];
}

TEST(rpc_stop_closes_idle_connections_with_goaway)
{
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    for (int i = 0; i < 3; i++)
        rpc_turn(&f);
    rpc_stop(&f, LONG_MS);
    RPC_UNTIL(&f, f.client.closed);
    ASSERT_TRUE(f.client.goaway);
    ASSERT_UINT(NGHTTP2_NO_ERROR, f.client.goaway_error);
    rpc_client_close(&f.client);
    RPC_UNTIL(&f, f.n_stopped == 1);
    rpc_teardown(&f);
}

TEST(rpc_stop_lets_calls_finish_and_takes_no_more)
{
    const struct agx_str message = AGX_STR("late");
    struct rpc_request q, late;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Hold");
    rpc_stop(&f, LONG_MS);
    RPC_UNTIL(&f, f.client.goaway && f.client.goaway_last == q.stream);
    ASSERT_UINT(0, h->n_ended);
    rpc_start(&f.client, &late, "/t.T/Hold", &message);
    for (int i = 0; i < 10; i++)
        rpc_turn(&f);
    ASSERT_UINT(1, f.n_held);
    agx_grpc_call_reply(h->call, AGX_STR("done"));
    RPC_UNTIL(&f, q.closed && f.client.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
    rpc_request_done(&late);
}

TEST(rpc_stop_ends_endless_calls_at_once)
{
    struct rpc_request q;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Endless");
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("event")));
    rpc_stop(&f, LONG_MS);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("14", q.grpc_status);
    ASSERT_UINT(1, h->n_ended);
    ASSERT_INT(AGX_UNAVAILABLE, h->code);
    RPC_UNTIL(&f, f.client.closed);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stop_ends_what_is_left_at_its_deadline)
{
    struct rpc_request q;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Hold");
    rpc_stop(&f, 30);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("14", q.grpc_status);
    ASSERT_INT(AGX_UNAVAILABLE, h->code);
    RPC_UNTIL(&f, f.n_stopped == 1);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stop_does_not_wait_for_a_client_that_reads_nothing)
{
    static const char kib[1024];
    struct rpc_request q;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Stream");
    f.client.deaf = true;
    for (int i = 0; i < 20; i++) {
        while (agx_grpc_call_send(h->call, agx_str_bytes(kib, sizeof(kib))) == 0)
            ;
        rpc_turn(&f);
    }
    rpc_stop(&f, 10);
    RPC_UNTIL(&f, f.n_stopped == 1);
    ASSERT_UINT(1, h->n_ended);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stop_serves_who_has_connected_and_was_not_yet_accepted)
{
    const struct agx_grpc_client_config config = AGX_GRPC_CLIENT_CONFIG_INIT;
    const struct agx_grpc_request q = { .path = "/t.T/Echo", .message = AGX_STR("hello") };
    char dir[] = "/tmp/agx-rpc-XXXXXX", path[64];
    struct agx_listener *listener = NULL;
    struct agx_grpc_client *client = NULL;
    struct agx_grpc_reply *reply = NULL;
    struct agx_str message;
    struct rpc_fixture f;
    int r;

    ASSERT_NOT_NULL(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    rpc_setup(&f, NULL);
    ASSERT_OK(agx_listener_open_unix(f.loop, path, &listener, NULL));
    ASSERT_OK(agx_grpc_server_listen(f.server, &listener, NULL));
    ASSERT_OK(agx_grpc_client_open(path, &config, &client, NULL));
    ASSERT_OK(agx_grpc_client_start(client, &q, &reply, NULL));
    rpc_stop(&f, LONG_MS);
    ASSERT_INT(-1, access(path, F_OK));
    while ((r = agx_grpc_reply_next(reply, 0, &message, NULL)) == AGX_GRPC_NOTHING_YET)
        rpc_turn(&f);
    ASSERT_INT(1, r);
    ASSERT_STR(AGX_STR("hello"), message);
    reply = agx_grpc_reply_close(reply);
    client = agx_grpc_client_close(client);
    RPC_UNTIL(&f, f.client.closed);
    rpc_client_close(&f.client);
    RPC_UNTIL(&f, f.n_stopped == 1);
    rpc_teardown(&f);
    ASSERT_INT(0, rmdir(dir));
}

TEST(rpc_listener_serves_connections_and_stop_removes_its_path)
{
    char dir[] = "/tmp/agx-rpc-XXXXXX", path[64];
    struct sockaddr_un sun = { .sun_family = AF_UNIX };
    struct agx_listener *listener = NULL;
    struct agx_grpc_stats stats = { 0 };
    struct rpc_fixture f;
    int fd;

    ASSERT_NOT_NULL(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    (void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
    rpc_setup(&f, NULL);
    ASSERT_OK(agx_listener_open_unix(f.loop, path, &listener, NULL));
    ASSERT_OK(agx_grpc_server_listen(f.server, &listener, NULL));
    ASSERT_NULL(listener);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_INT(0, connect(fd, (struct sockaddr *)&sun, sizeof(sun)));
    while (stats.conns < 2) {
        rpc_turn(&f);
        agx_grpc_server_stats(f.server, &stats);
    }
    rpc_stop(&f, 0);
    ASSERT_INT(-1, access(path, F_OK));
    close(fd);
    rpc_teardown(&f);
    ASSERT_INT(0, rmdir(dir));
}

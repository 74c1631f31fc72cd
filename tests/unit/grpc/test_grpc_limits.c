#include "tests/support/grpc.h"

#include <sys/socket.h>

/* A frame's header. */
#define FRAME(len, type, flags, stream)                                                            \
    (char)((len) >> 16), (char)((len) >> 8), (char)(len), (char)(type), (char)(flags),             \
        (char)((stream) >> 24), (char)((stream) >> 16), (char)((stream) >> 8), (char)(stream)

static void until_closed(struct rpc_fixture *f)
{
    RPC_UNTIL(f, f->client.closed);
}

/* Sends the same frame until the server has had enough of it. */
static void flood(struct rpc_fixture *f, struct agx_str frame)
{
    rpc_turn(f);
    rpc_turn(f);
    for (int i = 0; i < 3000 && !f->client.closed; i++)
        rpc_client_raw(f, &f->client, frame);
    until_closed(f);
}

static unsigned calmed(struct rpc_fixture *f)
{
    struct agx_grpc_stats stats;

    agx_grpc_server_stats(f->server, &stats);
    return (unsigned)stats.calmed;
}

static void expect_calm(struct rpc_fixture *f)
{
    ASSERT_TRUE(f->client.goaway);
    ASSERT_UINT(NGHTTP2_ENHANCE_YOUR_CALM, f->client.goaway_error);
    ASSERT_UINT(1, calmed(f));
}

static struct agx_grpc_config strict(void)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;

    config.resets_burst = config.controls_burst = 50;
    config.resets_per_s = config.controls_per_s = 0;
    return config;
}

TEST(rpc_client_that_cancels_calls_without_end_is_told_to_calm_down)
{
    const struct agx_grpc_config config = strict();
    const struct agx_str message = AGX_STR("q");
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    for (int i = 0; i < 60 && !f.client.closed; i++) {
        struct rpc_request q;

        rpc_start(&f.client, &q, "/t.T/Hold", &message);
        rpc_turn(&f);
        ASSERT_INT(0, nghttp2_submit_rst_stream(f.client.session, 0, q.stream, NGHTTP2_CANCEL));
        rpc_turn(&f);
        (void)nghttp2_session_set_stream_user_data(f.client.session, q.stream, NULL);
        rpc_request_done(&q);
    }
    until_closed(&f);
    expect_calm(&f);
    ASSERT_TRUE(f.n_held <= 51);
    rpc_teardown(&f);
}

TEST(rpc_client_that_makes_the_server_reset_calls_is_told_to_calm_down)
{
    /* A window past its maximum is a fault of one stream: we reset that. */
    static const char bad[] = { FRAME(4, NGHTTP2_WINDOW_UPDATE, 0, 1), 0x7f, -1, -1, -1 };
    const struct agx_grpc_config config = strict();
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    for (int32_t i = 0; i < 60 && !f.client.closed; i++) {
        char frame[sizeof(bad)];

        rpc_start(&f.client, &q, "/t.T/Hold", NULL);
        rpc_turn(&f);
        memcpy(frame, bad, sizeof(bad));
        frame[7] = (char)(q.stream >> 8);
        frame[8] = (char)q.stream;
        rpc_client_raw(&f, &f.client, agx_str_bytes(frame, sizeof(frame)));
        (void)nghttp2_session_set_stream_user_data(f.client.session, q.stream, NULL);
        rpc_request_done(&q);
    }
    until_closed(&f);
    expect_calm(&f);
    rpc_teardown(&f);
}

TEST(rpc_client_that_floods_with_pings_is_told_to_calm_down)
{
    static const char ping[] = { FRAME(8, NGHTTP2_PING, 0, 0), 1, 2, 3, 4, 5, 6, 7, 8 };
    const struct agx_grpc_config config = strict();
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    flood(&f, agx_str_bytes(ping, sizeof(ping)));
    expect_calm(&f);
    rpc_teardown(&f);
}

TEST(rpc_client_may_send_a_ping_for_each_answer)
{
    const struct agx_grpc_config config = strict();
    const struct agx_str message = AGX_STR("q");
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    for (int i = 0; i < 200; i++) {
        struct rpc_request q;

        rpc_start(&f.client, &q, "/t.T/Echo", &message);
        ASSERT_INT(0, nghttp2_submit_ping(f.client.session, 0, NULL));
        RPC_UNTIL(&f, q.closed);
        ASSERT_CSTR("0", q.grpc_status);
        rpc_request_done(&q);
    }
    ASSERT_FALSE(f.client.goaway);
    rpc_teardown(&f);
}

TEST(rpc_client_that_floods_with_empty_data_is_told_to_calm_down)
{
    static const char data[] = { FRAME(0, NGHTTP2_DATA, 0, 1) };
    const struct agx_grpc_config config = strict();
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    rpc_start(&f.client, &q, "/t.T/Hold", NULL);
    rpc_turn(&f);
    flood(&f, agx_str_bytes(data, sizeof(data)));
    expect_calm(&f);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_client_that_floods_with_continuations_loses_its_connection)
{
    static const char headers[] = { FRAME(0, NGHTTP2_HEADERS, 0, 1) };
    static const char more[] = { FRAME(0, NGHTTP2_CONTINUATION, 0, 1) };
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    rpc_turn(&f);
    rpc_client_raw(&f, &f.client, agx_str_bytes(headers, sizeof(headers)));
    flood(&f, agx_str_bytes(more, sizeof(more)));
    rpc_teardown(&f);
}

/* A connection without nghttp2: reads until the server closes it. */
static void expect_closed(struct rpc_fixture *f, struct agx_str bytes)
{
    char buf[4096];
    int fds[2];
    ssize_t n;

    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    ASSERT_OK(agx_grpc_server_adopt(f->server, &fds[0], NULL));
    ASSERT_INT((ssize_t)bytes.len, send(fds[1], bytes.ptr, bytes.len, MSG_NOSIGNAL));
    do {
        rpc_turn(f);
        n = recv(fds[1], buf, sizeof(buf), 0);
    } while (n > 0 || (n < 0 && errno == EAGAIN));
    close(fds[1]);
}

TEST(rpc_client_that_speaks_something_else_loses_its_connection)
{
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    expect_closed(&f, AGX_STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    rpc_teardown(&f);
}

/* By hand: a library gives up at the first answer to SETTINGS that it did not send. */
TEST(rpc_client_that_floods_with_settings_is_told_to_calm_down)
{
    static const char settings[] = { FRAME(0, NGHTTP2_SETTINGS, 0, 0) };
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(4096);
    const struct agx_grpc_config config = strict();
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    ASSERT_OK(agx_buf_append(&bytes, AGX_STR(NGHTTP2_CLIENT_MAGIC)));
    for (int i = 0; i < 60; i++)
        ASSERT_OK(agx_buf_append(&bytes, agx_str_bytes(settings, sizeof(settings))));
    expect_closed(&f, agx_buf_peek(&bytes));
    ASSERT_UINT(1, calmed(&f));
    rpc_teardown(&f);
}

TEST(rpc_client_that_says_nothing_loses_its_connection)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct rpc_fixture f;

    config.handshake_ms = 20;
    rpc_setup(&f, &config);
    expect_closed(&f, AGX_STR("PRI * HTTP/2.0\r\n"));
    rpc_teardown(&f);
}

TEST(rpc_client_with_a_malformed_frame_gets_goaway_and_its_calls_end)
{
    static const char bad[] = { FRAME(3, NGHTTP2_PING, 0, 0), 1, 2, 3 };
    const struct agx_str message = AGX_STR("q");
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Hold", &message);
    RPC_UNTIL(&f, f.n_held == 1);
    rpc_client_raw(&f, &f.client, agx_str_bytes(bad, sizeof(bad)));
    until_closed(&f);
    ASSERT_TRUE(f.client.goaway);
    ASSERT_UINT(NGHTTP2_FRAME_SIZE_ERROR, f.client.goaway_error);
    rpc_client_close(&f.client);
    RPC_UNTIL(&f, f.held[0].n_ended == 1);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_silent_client_that_answers_each_time_it_is_asked_stays)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct rpc_fixture f;

    config.keepalive_ms = 10;
    config.keepalive_wait_ms = TEST_LOOP_HANG_MS; /* asked again only after an answer */
    rpc_setup(&f, &config);
    RPC_UNTIL(&f, f.client.n_pings == 3);
    ASSERT_FALSE(f.client.closed);
    rpc_teardown(&f);
}

TEST(rpc_silent_client_is_asked_for_a_sign_of_life_and_closed_without_one)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct rpc_fixture f;

    config.keepalive_ms = config.keepalive_wait_ms = 10;
    rpc_setup(&f, &config);
    rpc_turn(&f); /* the greeting */
    f.client.deaf = true;
    for (struct agx_grpc_stats stats = { .conns = 1 }; stats.conns > 0;) {
        (void)uv_run(agx_loop_uv(f.loop), UV_RUN_NOWAIT);
        agx_grpc_server_stats(f.server, &stats);
    }
    f.client.deaf = false;
    RPC_UNTIL(&f, f.client.closed);
    ASSERT_UINT(1, f.client.n_pings);
    rpc_teardown(&f);
}

TEST(rpc_request_with_too_large_headers_is_resource_exhausted)
{
    const struct agx_str message = AGX_STR("q");
    char value[3000];
    nghttp2_nv nv[11] = {
        RPC_NV(":method", "POST"),
        RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Echo"),
        RPC_NV(":authority", "localhost"),
        RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_request q;
    struct rpc_fixture f;

    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 5; i < AGX_ARRAY_LEN(nv); i++)
        nv[i] = RPC_NV("x-large", value);
    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), &message);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("8", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_requests_past_what_a_connection_may_hold_fail_and_others_go_on)
{
    enum { N = 6, SIZE = 200000 };
    static const char piece[SIZE];
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct agx_grpc_stats stats;
    struct rpc_request q[N], p;
    const struct agx_str message = AGX_STR("small");
    struct rpc_fixture f;
    unsigned refused = 0;

    config.conn_bytes_max = 600000;
    rpc_setup(&f, &config);
    for (int i = 0; i < N; i++) {
        rpc_start(&f.client, &q[i], "/t.T/Echo", NULL);
        rpc_write(&f.client, &q[i], agx_str_bytes(piece, SIZE));
        q[i].body.len--; /* the last byte never comes */
        rpc_turn(&f);
    }
    for (int i = 0; i < 200; i++) {
        rpc_turn(&f);
        agx_grpc_server_stats(f.server, &stats);
        ASSERT_TRUE(stats.bytes < 600000 + 300000);
    }
    for (int i = 0; i < N; i++)
        refused += q[i].closed && strcmp(q[i].grpc_status, "8") == 0;
    ASSERT_TRUE(refused >= 1 && refused < N);
    rpc_start(&f.client, &p, "/t.T/Echo", &message);
    RPC_UNTIL(&f, p.closed);
    ASSERT_CSTR("0", p.grpc_status);
    rpc_request_done(&p);
    for (int i = 0; i < N; i++)
        rpc_request_done(&q[i]);
    rpc_teardown(&f);
}

TEST(rpc_calls_past_the_concurrency_limit_wait_or_are_refused)
{
    enum { N = 10 };
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    const struct agx_str message = AGX_STR("q");
    struct rpc_request q[N];
    struct rpc_fixture f;

    config.streams_max = 4;
    rpc_setup(&f, &config);
    for (int i = 0; i < 3; i++)
        rpc_turn(&f); /* the client knows the limit */
    for (int i = 0; i < N; i++)
        rpc_start(&f.client, &q[i], "/t.T/Hold", &message);
    for (int i = 0; i < 10; i++)
        rpc_turn(&f);
    ASSERT_UINT(4, f.n_held);
    for (size_t i = 0; i < N; i++) {
        RPC_UNTIL(&f, f.n_held > i);
        agx_grpc_call_reply(f.held[i].call, AGX_STR("a"));
    }
    for (int i = 0; i < N; i++) {
        RPC_UNTIL(&f, q[i].closed);
        ASSERT_CSTR("0", q[i].grpc_status);
        rpc_request_done(&q[i]);
    }
    rpc_teardown(&f);
}

TEST(rpc_connection_past_the_maximum_is_refused)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct agx_error *err = NULL;
    struct rpc_fixture f;
    int fds[2];

    config.conns_max = 1;
    rpc_setup(&f, &config);
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_server_adopt(f.server, &fds[0], &err));
    ASSERT_TRUE(fds[0] >= 0);
    agx_error_free(err);
    close(fds[0]);
    close(fds[1]);
    rpc_teardown(&f);
}

static bool admit_as_told(void *user, const struct agx_grpc_peer *peer)
{
    (void)peer;
    return *(bool *)user;
}

static struct agx_grpc_config asking(bool *may)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;

    config.admit = admit_as_told;
    config.user = may;
    return config;
}

TEST(rpc_refused_peer_gets_its_answer_and_then_loses_the_connection)
{
    const struct agx_str message = AGX_STR("q");
    bool may = false;
    struct agx_grpc_config config = asking(&may);
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, &config);
    rpc_start(&f.client, &q, "/t.T/Echo", &message);
    RPC_UNTIL(&f, f.client.closed);
    ASSERT_TRUE(q.closed);
    ASSERT_CSTR("7", q.grpc_status);
    ASSERT_TRUE(f.client.goaway);
    ASSERT_UINT(NGHTTP2_NO_ERROR, f.client.goaway_error);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_refused_peer_that_makes_no_call_is_closed_whatever_else_it_sends)
{
    static const char ping[] = { FRAME(8, NGHTTP2_PING, 0, 0), 1, 2, 3, 4, 5, 6, 7, 8 };
    bool may = false;
    struct agx_grpc_config config = asking(&may);
    struct rpc_fixture f;

    config.refused_ms = 30;
    config.controls_burst = UINT32_MAX;
    rpc_setup(&f, &config);
    while (!f.client.closed)
        rpc_client_raw(&f, &f.client, agx_str_bytes(ping, sizeof(ping)));
    ASSERT_FALSE(f.client.goaway);
    rpc_teardown(&f);
}

static void expect_echo(struct rpc_fixture *f)
{
    const struct agx_str message = AGX_STR("q");
    struct rpc_request q;

    rpc_start(&f->client, &q, "/t.T/Echo", &message);
    RPC_UNTIL(f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
}

TEST(rpc_refused_peers_past_their_limit_are_closed_and_take_no_place_of_others)
{
    bool may = true;
    struct agx_grpc_config config = asking(&may);
    struct rpc_client refused[2];
    struct agx_grpc_stats stats;
    struct rpc_fixture f;
    int fds[2];

    config.conns_max = 1;
    config.refused_max = 2;
    rpc_setup(&f, &config);
    may = false; /* its only place is taken: these have their own */
    rpc_connect(&f, &refused[0]);
    rpc_connect(&f, &refused[1]);
    ASSERT_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_server_adopt(f.server, &fds[0], NULL));
    expect_echo(&f);
    rpc_client_close(&f.client);
    do {
        rpc_turn(&f);
        agx_grpc_server_stats(f.server, &stats);
    } while (stats.conns > 0);
    ASSERT_UINT(2, stats.refused);
    may = true;
    rpc_connect(&f, &f.client);
    expect_echo(&f);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_server_adopt(f.server, &fds[0], NULL));
    close(fds[0]);
    close(fds[1]);
    for (size_t i = 0; i < AGX_ARRAY_LEN(refused); i++)
        rpc_client_close(&refused[i]);
    rpc_teardown(&f);
}

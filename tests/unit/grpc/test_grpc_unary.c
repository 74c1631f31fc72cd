
#include "tests/support/grpc.h"

static void call(struct rpc_fixture *f, struct rpc_request *q, const char *path,
                 struct agx_str message)
{
    rpc_start(&f->client, q, path, &message);
    RPC_UNTIL(f, q->closed);
}

TEST(rpc_unary_call_gets_headers_the_message_and_an_ok_status)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/Echo", AGX_STR("hello"));
    ASSERT_UINT(2, q.n_headers);
    ASSERT_CSTR("200", q.http_status);
    ASSERT_CSTR("application/grpc", q.content_type);
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("hello"), agx_buf_peek(&got));
    ASSERT_UINT(0, q.data.len);
    ASSERT_UINT(NGHTTP2_NO_ERROR, q.error);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_unary_call_with_an_empty_message_gets_an_empty_message)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/Echo", AGX_STR(""));
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_UINT(0, got.len);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_unary_error_comes_in_one_headers_frame_with_message_details_and_trailers)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/Fail", AGX_STR("no \xc3\xa4"));
    ASSERT_UINT(1, q.n_headers);
    ASSERT_CSTR("200", q.http_status);
    ASSERT_CSTR("application/grpc", q.content_type);
    ASSERT_CSTR("5", q.grpc_status);
    ASSERT_CSTR("no %C3%A4", q.grpc_message);
    ASSERT_CSTR("bm8gw6Q", q.details);
    ASSERT_CSTR("yes", q.custom);
    ASSERT_UINT(0, q.data.len);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_error_too_long_for_headers_keeps_its_code_and_the_start_of_its_message)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(20000);
    struct rpc_fixture f;
    struct rpc_request q;

    while (text.len < 10000)
        ASSERT_OK(agx_buf_append(&text, AGX_STR("\x01")));
    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/Fail", agx_buf_peek(&text));
    ASSERT_CSTR("5", q.grpc_status);
    ASSERT_TRUE(agx_str_starts(agx_str_from(q.grpc_message), AGX_STR("%01%01%01")));
    ASSERT_CSTR("", q.details);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_unknown_method_is_unimplemented_and_named)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/None", AGX_STR("x"));
    ASSERT_UINT(1, q.n_headers);
    ASSERT_CSTR("12", q.grpc_status);
    ASSERT_CSTR("unknown method '/t.T/None'", q.grpc_message);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

/* A request with one header that is not the usual one. */
static void call_with(struct rpc_fixture *f, struct rpc_request *q, const char *name,
                      const char *value)
{
    const struct agx_str message = AGX_STR("x");
    nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),
        RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Meta"),
        RPC_NV(":authority", "localhost"),
        RPC_NV("content-type", "application/grpc"),
        RPC_NV(name, value),
    };
    size_t n = AGX_ARRAY_LEN(nv);

    for (size_t i = 0; i + 1 < n; i++) {
        if (nv[i].namelen == strlen(name) && memcmp(nv[i].name, name, nv[i].namelen) == 0) {
            nv[i] = nv[n - 1];
            n--;
        }
    }
    rpc_start_with(&f->client, q, nv, n, &message);
    RPC_UNTIL(f, q->closed);
}

TEST(rpc_request_of_another_content_type_is_415)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, "content-type", "application/json");
    ASSERT_CSTR("415", q.http_status);
    ASSERT_CSTR("", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_with_another_http_method_is_405)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, ":method", "PUT");
    ASSERT_CSTR("405", q.http_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_with_a_compression_is_unimplemented)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, "grpc-encoding", "gzip");
    ASSERT_CSTR("12", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_with_a_malformed_timeout_is_internal)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, "grpc-timeout", "soon");
    ASSERT_CSTR("13", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_may_have_any_authority_or_none)
{
    const struct agx_str message = AGX_STR("x");
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),
        RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Echo"),
        RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, ":authority", "/run/agentix/agentixd.sock");
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), &message);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_that_breaks_http2s_rules_is_reset)
{
    static const char *const bad[][2] = {
        { "connection", "close" }, { "transfer-encoding", "chunked" },
        { "x-key", "a\nb" },       { "x key", "v" },
        { ":unknown", "v" },       { ":path", "" },
    };
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    for (size_t i = 0; i + 1 < AGX_ARRAY_LEN(bad); i++) {
        call_with(&f, &q, bad[i][0], bad[i][1]);
        ASSERT_UINT(NGHTTP2_PROTOCOL_ERROR, q.error);
        ASSERT_UINT(0, q.n_headers);
        rpc_request_done(&q);
    }
    call_with(&f, &q, bad[5][0], bad[5][1]); /* allowed by HTTP/2, but it names nothing */
    ASSERT_CSTR("12", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_request_without_a_path_is_reset)
{
    const struct agx_str message = AGX_STR("x");
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),
        RPC_NV(":scheme", "http"),
        RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), &message);
    RPC_UNTIL(&f, q.closed);
    ASSERT_UINT(NGHTTP2_PROTOCOL_ERROR, q.error);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_handler_sees_metadata_but_not_the_transports_headers)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(1000);
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    call_with(&f, &q, "x-key-bin", "AAEC");
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("x-key-bin=AAEC\n"), agx_buf_peek(&got));
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_message_larger_than_all_windows_arrives_whole_in_both_directions)
{
    _cleanup_buf_ struct agx_buf big = AGX_BUF_INIT((size_t)8 << 20), got = big;
    struct agx_grpc_stats stats;
    struct rpc_fixture f;
    struct rpc_request q;

    ASSERT_OK(agx_buf_reserve(&big, (size_t)4 << 20));
    for (size_t i = 0; i < (size_t)4 << 20; i++)
        big.data[i] = (uint8_t)(i * 31 >> 3);
    big.len = (size_t)4 << 20;
    rpc_setup(&f, NULL);
    call(&f, &q, "/t.T/Echo", agx_buf_peek(&big));
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_TRUE(agx_str_eq(agx_buf_peek(&big), agx_buf_peek(&got)));
    agx_grpc_server_stats(f.server, &stats);
    ASSERT_UINT(0, stats.calls);
    ASSERT_TRUE(stats.bytes < 100000);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_message_over_the_limit_is_resource_exhausted_and_the_connection_goes_on)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct rpc_fixture f;
    struct rpc_request q;

    config.message_max = 10;
    rpc_setup(&f, &config);
    call(&f, &q, "/t.T/Echo", AGX_STR("more than ten bytes"));
    ASSERT_CSTR("8", q.grpc_status);
    rpc_request_done(&q);
    call(&f, &q, "/t.T/Echo", AGX_STR("ten bytes."));
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

static void number_of_messages(unsigned n, const char *status)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Echo", NULL);
    for (unsigned i = 0; i < n; i++)
        rpc_write(&f.client, &q, AGX_STR("one"));
    rpc_write_end(&f.client, &q);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR(status, q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_unary_call_takes_exactly_one_message)
{
    number_of_messages(0, "12");
    number_of_messages(1, "0");
    number_of_messages(2, "12");
}

TEST(rpc_unary_call_that_ends_inside_a_message_is_internal)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Echo", NULL);
    ASSERT_OK(agx_buf_append(&q.body, agx_str_bytes("\0\0\0\0\5ab", 7)));
    rpc_write_end(&f.client, &q);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("13", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_call_answered_later_is_answered)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    const struct agx_str message = AGX_STR("q");
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Hold", &message);
    RPC_UNTIL(&f, f.n_held == 1);
    ASSERT_STR(AGX_STR("q"), agx_buf_peek(&f.held[0].got));
    for (int i = 0; i < 5; i++)
        rpc_turn(&f);
    ASSERT_UINT(0, q.n_headers);
    agx_grpc_call_reply(f.held[0].call, AGX_STR("answer"));
    RPC_UNTIL(&f, q.closed);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("answer"), agx_buf_peek(&got));
    ASSERT_UINT(0, f.held[0].n_ended);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_call_past_its_deadline_ends_for_both_sides)
{
    const struct agx_str message = AGX_STR("q");
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),     RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Hold"),  RPC_NV(":authority", "localhost"),
        RPC_NV("grpc-timeout", "20m"), RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), &message);
    RPC_UNTIL(&f, f.n_held == 1);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("4", q.grpc_status);
    ASSERT_UINT(1, q.n_headers);
    ASSERT_UINT(1, f.held[0].n_ended);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.held[0].code);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_call_that_its_client_cancels_tells_its_handler_once)
{
    const struct agx_str message = AGX_STR("q");
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Hold", &message);
    RPC_UNTIL(&f, f.n_held == 1);
    ASSERT_INT(0, nghttp2_submit_rst_stream(f.client.session, 0, q.stream, NGHTTP2_CANCEL));
    RPC_UNTIL(&f, f.held[0].n_ended == 1);
    ASSERT_INT(AGX_CANCELLED, f.held[0].code);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_calls_of_a_lost_connection_are_cancelled)
{
    const struct agx_str message = AGX_STR("q");
    struct agx_grpc_stats stats;
    struct rpc_request q[3];
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    for (size_t i = 0; i < 3; i++)
        rpc_start(&f.client, &q[i], "/t.T/Hold", &message);
    RPC_UNTIL(&f, f.n_held == 3);
    rpc_client_close(&f.client);
    RPC_UNTIL(&f, f.held[0].n_ended + f.held[1].n_ended + f.held[2].n_ended == 3);
    ASSERT_INT(AGX_CANCELLED, f.held[1].code);
    agx_grpc_server_stats(f.server, &stats);
    ASSERT_UINT(0, stats.conns);
    ASSERT_UINT(0, stats.calls);
    ASSERT_UINT(0, stats.bytes);
    for (size_t i = 0; i < 3; i++)
        rpc_request_done(&q[i]);
    rpc_teardown(&f);
}

TEST(rpc_thousand_calls_at_once_on_one_connection_are_all_answered)
{
    enum { N = 1000 };
    static struct rpc_request q[N];
    const struct agx_str message = AGX_STR("q");
    struct rpc_fixture f;
    size_t closed = 0;

    rpc_setup(&f, NULL);
    for (size_t i = 0; i < N; i++)
        rpc_start(&f.client, &q[i], "/t.T/Hold", &message);
    RPC_UNTIL(&f, f.n_held == N);
    for (size_t i = 0; i < N; i++)
        agx_grpc_call_reply(f.held[i].call, AGX_STR("a"));
    while (closed < N) {
        rpc_turn(&f);
        for (closed = 0; closed < N && q[closed].closed; closed++)
            ASSERT_CSTR("0", q[closed].grpc_status);
    }
    for (size_t i = 0; i < N; i++)
        rpc_request_done(&q[i]);
    rpc_teardown(&f);
}

static bool admit_nobody(void *user, const struct agx_grpc_peer *peer)
{
    *(uid_t *)user = peer->uid;
    return false;
}

TEST(rpc_peer_that_is_not_admitted_gets_permission_denied)
{
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    uid_t asked = 12345678;
    struct rpc_fixture f;
    struct rpc_request q;

    config.admit = admit_nobody;
    config.user = &asked;
    rpc_setup(&f, &config);
    ASSERT_UINT(getuid(), asked);
    call(&f, &q, "/t.T/Echo", AGX_STR("x"));
    ASSERT_CSTR("7", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_method_cannot_be_registered_twice)
{
    static const struct agx_grpc_method again[] = { { .path = "/t.T/Echo" } };
    struct agx_error *err = NULL;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_grpc_server_add(f.server, again, 1, NULL, &err));
    ASSERT_MESSAGE(err, "'/t.T/Echo'");
    agx_error_free(err);
    rpc_teardown(&f);
}

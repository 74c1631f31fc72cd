#include "tests/support/grpc.h"

static const struct agx_grpc_status ok = { .code = AGX_OK };

static struct rpc_held *start(struct rpc_fixture *f, struct rpc_request *q, const char *path)
{
    const struct agx_str message = AGX_STR("q");
    size_t before = f->n_held;

    rpc_start(&f->client, q, path, &message);
    RPC_UNTIL(f, f->n_held == before + 1);
    return &f->held[before];
}

TEST(rpc_stream_messages_arrive_in_order_and_then_the_status)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct rpc_fixture f;
    struct rpc_request q;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Stream");
    agx_grpc_call_begin(h->call);
    RPC_UNTIL(&f, q.n_headers == 1); /* before any message */
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("one")));
    RPC_UNTIL(&f, rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("one"), agx_buf_peek(&got));
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("two")));
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("three")));
    agx_grpc_call_finish(h->call, &ok);
    RPC_UNTIL(&f, q.closed);
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("two"), agx_buf_peek(&got));
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("three"), agx_buf_peek(&got));
    ASSERT_UINT(2, q.n_headers);
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_UINT(0, h->n_ended);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stream_that_fails_after_messages_ends_with_the_error)
{
    struct rpc_fixture f;
    struct rpc_request q;
    struct agx_error *err = NULL;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Stream");
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("one")));
    (void)agx_error_set(&err, AGX_ABORTED, "it broke");
    agx_grpc_call_fail(h->call, &err);
    ASSERT_NULL(err);
    RPC_UNTIL(&f, q.closed);
    ASSERT_UINT(8, q.data.len);
    ASSERT_CSTR("10", q.grpc_status);
    ASSERT_CSTR("it broke", q.grpc_message);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

/* Sends 1 KiB messages until there has to be a pause; returns how many. */
static size_t fill(struct rpc_held *h)
{
    static const char kib[1024];
    size_t n = 1;

    while (agx_grpc_call_send(h->call, agx_str_bytes(kib, sizeof(kib))) == 0)
        n++;
    return n;
}

TEST(rpc_stream_to_a_slow_reader_is_bounded_and_goes_on_when_it_reads)
{
    struct agx_grpc_stats stats;
    struct rpc_fixture f;
    struct rpc_request q;
    struct rpc_held *h;
    size_t sent;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Stream");
    f.client.deaf = true;
    sent = fill(h);
    for (int i = 0; i < 10; i++) { /* what the socket takes leaves; then nothing moves any more */
        rpc_turn(&f);
        if (h->n_writable > 0) {
            h->n_writable = 0;
            sent += fill(h);
        }
    }
    ASSERT_UINT(0, h->n_writable);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_call_send(h->call, AGX_STR("no pause")));
    agx_grpc_server_stats(f.server, &stats);
    ASSERT_TRUE(stats.bytes < 400000);
    f.client.deaf = false;
    RPC_UNTIL(&f, h->n_writable == 1);
    ASSERT_INT(0, agx_grpc_call_send(h->call, AGX_STR("on")));
    agx_grpc_call_finish(h->call, &ok);
    RPC_UNTIL(&f, q.closed);
    ASSERT_UINT(sent * (1024 + 5) + 7, q.data.len);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stream_to_a_stuck_client_holds_up_no_other_client)
{
    const struct agx_str message = AGX_STR("hello");
    struct rpc_client other;
    struct rpc_request q, p;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    h = start(&f, &q, "/t.T/Stream");
    f.client.deaf = true;
    (void)fill(h);
    for (int i = 0; i < 10; i++)
        rpc_turn(&f);
    rpc_connect(&f, &other);
    rpc_start(&other, &p, "/t.T/Echo", &message);
    while (!p.closed) {
        rpc_client_turn(&other);
        rpc_turn(&f);
    }
    ASSERT_CSTR("0", p.grpc_status);
    rpc_client_close(&other);
    rpc_request_done(&p);
    rpc_client_close(&f.client);
    RPC_UNTIL(&f, h->n_ended == 1);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_streams_of_one_connection_do_not_wait_for_one_that_is_not_read)
{
    const struct agx_str message = AGX_STR("hello");
    struct rpc_request q, p;
    struct rpc_fixture f;
    struct rpc_held *h;

    rpc_setup(&f, NULL);
    ASSERT_INT(0, nghttp2_session_set_local_window_size(f.client.session, 0, 0, 1 << 24));
    h = start(&f, &q, "/t.T/Stream");
    /* The client's library gives windows back by itself, so shrink this one. */
    ASSERT_INT(0, nghttp2_session_set_local_window_size(f.client.session, 0, q.stream, 0));
    for (int i = 0; i < 5; i++)
        rpc_turn(&f);
    (void)fill(h);
    rpc_start(&f.client, &p, "/t.T/Echo", &message);
    RPC_UNTIL(&f, p.closed);
    ASSERT_CSTR("0", p.grpc_status);
    rpc_request_done(&p);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_stream_past_its_deadline_with_messages_waiting_is_reset)
{
    const struct agx_str message = AGX_STR("q");
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),      RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Stream"), RPC_NV(":authority", "localhost"),
        RPC_NV("grpc-timeout", "50m"),  RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), &message);
    RPC_UNTIL(&f, f.n_held == 1);
    f.client.deaf = true;
    while (f.held[0].n_ended == 0) {
        if (agx_grpc_call_queued(f.held[0].call) < AGX_GRPC_STREAM_HIGH)
            (void)fill(&f.held[0]);
        rpc_turn(&f);
    }
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, f.held[0].code);
    f.client.deaf = false;
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("", q.grpc_status);
    ASSERT_UINT(NGHTTP2_CANCEL, q.error);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_client_stream_gives_each_message_and_the_clients_end)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Collect", NULL);
    RPC_UNTIL(&f, f.n_held == 1);
    rpc_write(&f.client, &q, AGX_STR("one "));
    RPC_UNTIL(&f, f.held[0].n_messages == 1);
    rpc_write(&f.client, &q, AGX_STR("two "));
    rpc_write(&f.client, &q, AGX_STR("three"));
    rpc_write_end(&f.client, &q);
    RPC_UNTIL(&f, f.held[0].n_half_closed == 1);
    ASSERT_STR(AGX_STR("one two three"), agx_buf_peek(&f.held[0].got));
    agx_grpc_call_reply(f.held[0].call, AGX_STR("got it"));
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_client_stream_that_is_paused_holds_its_client_back_and_loses_nothing)
{
    enum { N = 40, SIZE = 20000 }; /* more than a stream's window */
    static const char piece[SIZE];
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),       RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Collect"), RPC_NV(":authority", "localhost"),
        RPC_NV("x-pause", "1"),          RPC_NV("content-type", "application/grpc"),
    };
    struct agx_grpc_stats stats;
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &q, nv, AGX_ARRAY_LEN(nv), NULL);
    for (int i = 0; i < N; i++)
        rpc_write(&f.client, &q, agx_str_bytes(piece, SIZE));
    rpc_write_end(&f.client, &q);
    for (int i = 0; i < 100; i++)
        rpc_turn(&f);
    ASSERT_UINT(1, f.held[0].n_messages);
    ASSERT_TRUE(q.at < q.body.len);
    agx_grpc_server_stats(f.server, &stats);
    ASSERT_TRUE(stats.bytes < 3 * AGX_GRPC_STREAM_WINDOW);
    for (unsigned i = 1; i <= N; i++) {
        RPC_UNTIL(&f, f.held[0].n_messages == i);
        ASSERT_UINT(0, f.held[0].n_half_closed);
        agx_grpc_call_resume(f.held[0].call);
        ASSERT_UINT(i, f.held[0].n_messages); /* not inside the call */
    }
    RPC_UNTIL(&f, f.held[0].n_half_closed == 1);
    ASSERT_UINT((size_t)N * SIZE, f.held[0].got.len);
    agx_grpc_call_reply(f.held[0].call, AGX_STR(""));
    RPC_UNTIL(&f, q.closed);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_client_stream_that_is_resumed_reads_what_it_holds_before_what_comes)
{
    const nghttp2_nv nv[] = {
        RPC_NV(":method", "POST"),       RPC_NV(":scheme", "http"),
        RPC_NV(":path", "/t.T/Collect"), RPC_NV(":authority", "localhost"),
        RPC_NV("x-pause", "1"),          RPC_NV("content-type", "application/grpc"),
    };
    struct rpc_fixture f;
    struct rpc_request paused, other;

    rpc_setup(&f, NULL);
    rpc_start_with(&f.client, &paused, nv, AGX_ARRAY_LEN(nv), NULL);
    RPC_UNTIL(&f, f.n_held == 1);
    rpc_start(&f.client, &other, "/t.T/Collect", NULL);
    RPC_UNTIL(&f, f.n_held == 2);
    rpc_write(&f.client, &paused, AGX_STR("one "));
    rpc_write(&f.client, &paused, AGX_STR("two "));
    RPC_UNTIL(&f, f.held[0].n_messages == 1);
    /* In one read of the connection: a message whose handler resumes the call, then more of it. */
    f.held[0].pause_each = false;
    f.held[1].resumes = f.held[0].call;
    rpc_write(&f.client, &other, AGX_STR("go on"));
    rpc_client_turn(&f.client);
    rpc_write(&f.client, &paused, AGX_STR("three"));
    rpc_write_end(&f.client, &paused);
    rpc_client_turn(&f.client);
    RPC_UNTIL(&f, f.held[0].n_half_closed == 1 || paused.closed);
    ASSERT_STR(AGX_STR("one two three"), agx_buf_peek(&f.held[0].got));
    agx_grpc_call_reply(f.held[0].call, AGX_STR(""));
    agx_grpc_call_reply(f.held[1].call, AGX_STR(""));
    RPC_UNTIL(&f, paused.closed && other.closed);
    ASSERT_CSTR("0", paused.grpc_status);
    rpc_request_done(&paused);
    rpc_request_done(&other);
    rpc_teardown(&f);
}

TEST(rpc_client_stream_with_a_bad_message_tells_its_handler_and_its_client)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Collect", NULL);
    RPC_UNTIL(&f, f.n_held == 1);
    ASSERT_OK(agx_buf_append(&q.body, agx_str_bytes("\1\0\0\0\0", 5)));
    rpc_write(&f.client, &q, AGX_STR("behind"));
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("13", q.grpc_status);
    ASSERT_UINT(1, f.held[0].n_ended);
    ASSERT_INT(AGX_INTERNAL, f.held[0].code);
    ASSERT_UINT(0, f.held[0].n_messages);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_client_stream_answered_early_tells_the_client_to_stop)
{
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Collect", NULL);
    RPC_UNTIL(&f, f.n_held == 1);
    agx_grpc_call_reply(f.held[0].call, AGX_STR("enough"));
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    ASSERT_UINT(NGHTTP2_NO_ERROR, q.error);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

TEST(rpc_bidi_call_answers_each_message_while_it_goes_on)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct rpc_fixture f;
    struct rpc_request q;

    rpc_setup(&f, NULL);
    rpc_start(&f.client, &q, "/t.T/Bidi", NULL);
    for (int i = 0; i < 3; i++) {
        rpc_write(&f.client, &q, AGX_STR("ping"));
        RPC_UNTIL(&f, rpc_read(&q, &got));
        ASSERT_STR(AGX_STR("ping"), agx_buf_peek(&got));
    }
    rpc_write_end(&f.client, &q);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
}

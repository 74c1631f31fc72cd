/* test_router.c: the rules of the remote call: start and end of calls. */
#include "tests/support/router_world.h"

TEST(unary_result_goes_to_its_caller_once)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id));
    ASSERT_UINT(1, agx_router_running(w.rt));
    ASSERT_OK(router_frame(&w, "result", id, "value", 42));
    ASSERT_UINT(1, w.n_seen);
    ASSERT_INT(AGX_EV_UNARY_RESULT, router_last(&w)->ev);
    ASSERT_TRUE(router_last(&w)->conn == &conn_one);
    ASSERT_UINT(42, router_field(&w, "value").value.u);
    ASSERT_FALSE(router_field(&w, "seq").present);
    ASSERT_UINT(0, agx_router_running(w.rt));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, router_frame(&w, "result", id, "value", 43));
    ASSERT_UINT(1, w.n_seen);
    router_world_done(&w);
}

TEST(two_clients_with_one_call_id_get_their_own_results)
{
    struct router_world w;
    uint64_t first = 0, second = 0;

    router_world_init(&w, NULL);
    router_call(&w, router_join(&w, false, &conn_one), "unary", "same", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &first);
    router_call(&w, router_join(&w, true, &conn_two), "unary", "same", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &second);
    ASSERT_TRUE(first != second);
    ASSERT_OK(router_frame(&w, "result", second, "value", 2));
    ASSERT_TRUE(router_last(&w)->conn == &conn_two);
    ASSERT_UINT(1, router_field(&w, "seq").value.u);
    ASSERT_OK(router_frame(&w, "result", first, "value", 1));
    ASSERT_TRUE(router_last(&w)->conn == &conn_one);
    ASSERT_UINT(1, router_field(&w, "value").value.u);
    router_world_done(&w);
}

TEST(duplicate_call_id_of_one_client_is_refused_and_the_first_goes_on)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    router_call(&w, c, "stream", "a", 0);
    router_assert_error(&w, AGX_EV_STREAM_ERROR, "a", "DuplicateCall");
    ASSERT_OK(router_frame(&w, "result", id, "value", 1));
    ASSERT_INT(AGX_EV_UNARY_RESULT, router_last(&w)->ev);
    router_call(&w, c, "unary", "a", 0);
    ASSERT_UINT(2, router_frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    router_world_done(&w);
}

TEST(bad_requests_are_answered_under_their_call_id)
{
    static const struct {
        const char *bytes, *call_id, *type;
    } bad[] = {
        { "\x80", "", "BadRequest" },
        { "\x81\xa7"
          "call_id\x05",
          "", "BadRequest" },
        { "\x91\x01", "", "BadRequest" },
        { "\xc1", "", "BadRequest" },
        { "\x81\xa7"
          "call_id\xa1x",
          "x", "KeyError" },
        { "\x82\xa7"
          "call_id\xa1x\xa6target\xa0",
          "x", "ValidationError" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa5shape\xa3odd",
          "x", "ValidationError" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa2id\x01",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa4"
          "args\x01",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xb0"
          "callable_payload\xa1p",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa4"
          "args",
          "x", "BadRequest" },
    };
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        agx_router_event(w.rt, c, AGX_STR("unary"), agx_str_from(bad[i].bytes), 1000);
        ASSERT_UINT(i + 1, w.n_seen);
        router_assert_error(&w, AGX_EV_UNARY_ERROR, bad[i].call_id, bad[i].type);
    }
    ASSERT_UINT(0, w.lanes[AGX_LANE_LOOP].len);
    ASSERT_UINT(0, agx_router_running(w.rt));
    router_world_done(&w);
}

TEST(cancel_answers_at_once_and_reaches_the_worker)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0, cancelled = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    router_say(&w, c, "cancel", "a", NULL, 0, NULL, 0);
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "a", "Cancelled");
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, &cancelled));
    ASSERT_UINT(id, cancelled);
    ASSERT_UINT(1, agx_router_running(w.rt));
    /* The worker's own end comes late and is dropped. */
    ASSERT_OK(router_frame(&w, "result", id, "value", 1));
    ASSERT_UINT(1, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    router_say(&w, c, "cancel", "a", NULL, 0, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    router_world_done(&w);
}

TEST(worker_gone_ends_every_call_once)
{
    struct router_world w;
    struct agx_client *c, *d;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    d = router_join(&w, true, &conn_two);
    router_call(&w, c, "unary", "u", 0);
    router_call(&w, d, "stream", "s", 0);
    router_call(&w, d, "bidi:start", "b", 0);
    router_say(&w, c, "cancel", "u", NULL, 0, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    agx_router_worker_gone(w.rt, AGX_STR("WorkerExited"), "killed by signal 9", -9);
    ASSERT_UINT(3, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    agx_router_worker_gone(w.rt, AGX_STR("WorkerExited"), "again", -9);
    ASSERT_UINT(3, w.n_seen);
    router_world_done(&w);
}

TEST(timeout_ends_the_call_and_cancels_it)
{
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "unary", "a", 50);
    router_call(&w, c, "unary", "b", 20);
    ASSERT_UINT(1020, agx_router_tick(w.rt, 1000));
    ASSERT_UINT(1050, agx_router_tick(w.rt, 1020));
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "b", "CallTimeout");
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_UINT(UINT64_MAX, agx_router_tick(w.rt, 1050));
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "a", "CallTimeout");
    router_world_done(&w);
}

TEST(value_larger_than_the_client_takes_is_an_error)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    struct agx_mp_writer m;
    struct router_world w;
    struct agx_client *c;
    char big[500] = { 0 };

    config.legacy_message = 400;
    router_world_init(&w, &config);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 3);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, AGX_STR("stream_item"));
    agx_mp_write_str(&m, AGX_STR("id"));
    agx_mp_write_uint(&m, 1);
    agx_mp_write_str(&m, AGX_STR("value"));
    agx_mp_write_bin(&m, agx_str_bytes(big, sizeof(big)));
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    ASSERT_OK(agx_router_frame(w.rt, agx_buf_peek(&b), NULL));
    router_assert_error(&w, AGX_EV_STREAM_ERROR, "s", "MessageTooLarge");
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    router_world_done(&w);
}

TEST(lane_hint_sends_the_next_call_of_that_callable_by_the_thread_lane)
{
    static const char hint[] = "\x83\xa4type\xa4lane\xa8"
                               "callable\xa7mod::fn\xa4lane\x01";
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    ASSERT_OK(agx_router_frame(w.rt, agx_str_bytes(hint, sizeof(hint) - 1), NULL));
    router_call(&w, c, "unary", "b", 0);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_THREAD, "call", NULL, NULL));
    router_say(&w, c, "cancel", "b", NULL, 0, NULL, 0);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    router_world_done(&w);
}

TEST(too_many_calls_are_refused_and_an_acknowledged_one_makes_room)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    struct router_world w;
    struct agx_client *c;

    config.max_calls = 1;
    router_world_init(&w, &config);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    router_call(&w, c, "unary", "b", 0);
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "b", "TooManyCalls");
    ASSERT_OK(router_frame(&w, "result", 1, "value", 1));
    router_call(&w, c, "unary", "b", 0);
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "b", "TooManyCalls");
    router_say_calls(&w, c, "ack", "a", 1);
    router_call(&w, c, "unary", "b", 0);
    ASSERT_UINT(2, router_frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    router_world_done(&w);
}

TEST(end_all_tells_every_caller_that_the_server_stops)
{
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "unary", "a", 0);
    router_call(&w, c, "stream", "b", 0);
    agx_router_end_all(w.rt, AGX_STR("ServerShutdown"), "the server stops");
    ASSERT_UINT(2, w.n_seen);
    ASSERT_UINT(2, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    router_world_done(&w);
}

TEST(frames_of_a_broken_worker_are_refused_with_a_reason)
{
    static const char *const bad[] = { "\xc1", "\x91\x01", "\x81\xa2id\x01",
                                       "\x81\xa4type\xa6result",
                                       "\x82\xa4type\xa6result\xa2id\x09" };
    struct router_world w;

    router_world_init(&w, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_TRUE(agx_router_frame(w.rt, agx_str_from(bad[i]), &err) < 0);
        ASSERT_MESSAGE(err, "worker");
    }
    ASSERT_OK(agx_router_frame(w.rt, AGX_STR("\x81\xa4type\xa3new"), NULL));
    router_world_done(&w);
}

/* Streams "s" and "t" of a session whose connection takes nothing: two items each, and "t" ends. */

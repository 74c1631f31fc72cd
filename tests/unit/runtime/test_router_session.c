/* test_router_session.c: clients that disconnect and resume. */
#include "runtime/router_internal.h"
#include "tests/support/router_world.h"

TEST(disconnect_without_a_session_cancels_its_calls)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_TRUE(agx_list_is_empty(&w.rt->clients));
    ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_OK(router_frame(&w, "stream_end", id, NULL, 0));
    ASSERT_UINT(0, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    router_world_done(&w);
}

TEST(resume_sends_what_the_client_has_not_seen_and_nothing_twice)
{
    char session[33];
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_OK(router_frame(&w, "stream_item", id, "value", 2));
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_OK(router_frame(&w, "stream_item", id, "value", 3));
    ASSERT_UINT(2, w.n_seen);
    ASSERT_TRUE(router_rejoin(&w, session, &conn_two, &c));
    ASSERT_OK(router_frame(&w, "stream_end", id, NULL, 0));
    ASSERT_UINT(2, w.n_seen); /* held back until the client says what it has */
    router_say_calls(&w, c, "resume", "s", 1);
    ASSERT_UINT(6, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[2].ev);
    ASSERT_INT(AGX_EV_STREAM_ITEM, w.seen[3].ev);
    ASSERT_INT(AGX_EV_STREAM_ITEM, w.seen[4].ev);
    ASSERT_INT(AGX_EV_STREAM_END, w.seen[5].ev);
    ASSERT_TRUE(w.seen[5].conn == &conn_two);
    ASSERT_UINT(4, router_field(&w, "seq").value.u);
    router_say_calls(&w, c, "ack", "s", 4);
    agx_router_disconnect(w.rt, c, 2000);
    ASSERT_TRUE(router_rejoin(&w, session, &conn_one, &c));
    router_say_calls(&w, c, "resume", "s", 4); /* acknowledged: nobody knows it any more */
    ASSERT_UINT(7, w.n_seen);
    router_world_done(&w);
}

TEST(resume_gives_a_bidi_call_the_credit_that_came_while_its_client_was_away)
{
    char session[33];
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "bidi:start", "b", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    router_say(&w, c, "bidi:in", "b", "item", 7, "seq", 1);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_OK(router_frame2(&w, "credit", id, "n", 100, "bytes", 100000));
    ASSERT_UINT(0, w.n_seen);
    ASSERT_TRUE(router_rejoin(&w, session, &conn_two, &c));
    router_say_calls(&w, c, "resume", "b", 0);
    ASSERT_UINT(2, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[0].ev);
    ASSERT_INT(AGX_EV_CREDIT, router_last(&w)->ev);
    ASSERT_UINT(100, router_field(&w, "n").value.u);
    ASSERT_UINT(1, router_field(&w, "seq").value.u);
    router_world_done(&w);
}

TEST(resume_names_unknown_calls_and_drops_those_not_named)
{
    char session[33];
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "unary", "gone", 0);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_TRUE(router_rejoin(&w, session, &conn_one, &c));
    router_say_calls(&w, c, "resume", "never sent", 0);
    ASSERT_INT(AGX_EV_RESUME_DONE, router_last(&w)->ev);
    ASSERT_UINT(0, router_field(&w, "known").value.count);
    ASSERT_UINT(1, router_field(&w, "unknown").value.count);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    router_world_done(&w);
}

TEST(session_ends_with_its_window_and_its_calls_are_cancelled)
{
    char session[33];
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "unary", "a", 0);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_UINT(1000 + AGX_RESUME_MS, agx_router_tick(w.rt, 2000));
    ASSERT_UINT(UINT64_MAX, agx_router_tick(w.rt, 1000 + AGX_RESUME_MS));
    ASSERT_TRUE(agx_list_is_empty(&w.rt->clients));
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_FALSE(router_rejoin(&w, session, &conn_one, &c));
    ASSERT_TRUE(strcmp(session, agx_client_peek_session(c)) != 0);
    router_world_done(&w);
}

TEST(answers_past_the_sessions_bounds_become_unavailable_the_oldest_first)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    char session[33];
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    config.unacked_calls_max = 1;
    router_world_init(&w, &config);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "unary", "old", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    ASSERT_OK(router_frame(&w, "result", id, "value", 1));
    router_call(&w, c, "unary", "new", 0);
    ASSERT_OK(router_frame(&w, "result", id + 1, "value", 2));
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_TRUE(router_rejoin(&w, session, &conn_one, &c));
    router_say_calls(&w, c, "resume", "old", 0);
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "old", "ResultUnavailable");
    ASSERT_UINT(1, router_field(&w, "seq").value.u);
    router_world_done(&w);
}

TEST(call_that_ended_while_its_client_was_away_is_not_replaced_before_the_resume)
{
    char session[33];
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    router_call(&w, c, "unary", "a", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_OK(router_frame(&w, "result", id, "value", 7));
    ASSERT_TRUE(router_rejoin(&w, session, &conn_two, &c));
    router_call(&w, c, "unary", "a", 0);
    router_assert_error(&w, AGX_EV_UNARY_ERROR, "a", "DuplicateCall");
    router_say_calls(&w, c, "resume", "a", 0);
    ASSERT_INT(AGX_EV_UNARY_RESULT, router_last(&w)->ev);
    ASSERT_UINT(7, router_field(&w, "value").value.u);
    router_call(&w, c, "unary", "a", 0);
    ASSERT_UINT(1, agx_router_running(w.rt));
    router_world_done(&w);
}

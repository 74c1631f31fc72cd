/* test_router_flow.c: items, credit, and full queues. */
#include "codec/credit.h"
#include "tests/support/router_world.h"

TEST(stream_items_come_in_order_and_end_last)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (uint64_t i = 0; i < 10; i++) {
        ASSERT_OK(router_frame(&w, "stream_item", id, "value", i));
        ASSERT_INT(AGX_EV_STREAM_ITEM, router_last(&w)->ev);
        ASSERT_UINT(i, router_field(&w, "value").value.u);
        ASSERT_UINT(i + 1, router_field(&w, "seq").value.u);
    }
    ASSERT_OK(router_frame(&w, "stream_end", id, NULL, 0));
    ASSERT_INT(AGX_EV_STREAM_END, router_last(&w)->ev);
    ASSERT_UINT(11, router_field(&w, "seq").value.u);
    router_world_done(&w);
}

TEST(worker_that_sends_past_its_credit_is_refused)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (int i = 0; i < AGX_CREDIT_ITEMS; i++)
        ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, router_frame(&w, "stream_item", id, "value", 1));
    router_say(&w, c, "credit", "s", "n", AGX_CREDIT_ITEMS + 1, "bytes", AGX_CREDIT_BYTES);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "credit", "n", &id));
    ASSERT_UINT(AGX_CREDIT_ITEMS + 1, id);
    router_world_done(&w);
}

TEST(credit_that_is_not_more_is_not_passed_on)
{
    struct router_world w;
    struct agx_client *c;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_say(&w, c, "credit", "s", "n", AGX_CREDIT_ITEMS, "bytes", AGX_CREDIT_BYTES);
    router_say(&w, c, "credit", "s", "n", 3, "bytes", 3);
    router_say(&w, c, "credit", "nobody", "n", 999, "bytes", 999);
    ASSERT_UINT(0, router_frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    router_world_done(&w);
}

TEST(client_without_credit_holds_its_producer_back_while_its_queue_is_full)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0, n = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, false, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (int i = 0; i < AGX_CREDIT_ITEMS / 2; i++)
        ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "credit", "n", &n));
    ASSERT_UINT(AGX_CREDIT_ITEMS / 2 + AGX_CREDIT_ITEMS, n);
    w.queued = AGX_QUEUE_HIGH + 1;
    for (int i = 0; i < AGX_CREDIT_ITEMS; i++)
        ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(2, router_frames(&w, AGX_LANE_LOOP, "credit", "n", &n));
    ASSERT_UINT(AGX_CREDIT_ITEMS / 2 + 2 * AGX_CREDIT_ITEMS, n);
    agx_router_drained(w.rt, c);
    ASSERT_UINT(2, router_frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    router_world_done(&w);
}

TEST(bidi_input_is_passed_on_and_credit_for_it_comes_back)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0, item = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "bidi:start", "b", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    router_say(&w, c, "bidi:in", "b", "item", 7, "seq", 1);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "bidi_in", "item", &item));
    ASSERT_UINT(7, item);
    router_say(&w, c, "bidi:in", "b", "item", 7, "seq", 1); /* sent again after a resume */
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "bidi_in", NULL, NULL));
    ASSERT_OK(router_frame2(&w, "credit", id, "n", 100, "bytes", 100000));
    ASSERT_INT(AGX_EV_CREDIT, router_last(&w)->ev);
    ASSERT_UINT(100, router_field(&w, "n").value.u);
    ASSERT_UINT(1, router_field(&w, "seq").value.u);
    router_say(&w, c, "bidi:end_in", "b", "seq", 2, NULL, 0);
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "bidi_end_in", NULL, NULL));
    router_say(&w, c, "bidi:in", "b", "item", 7, "seq", 9);
    router_assert_error(&w, AGX_EV_BIDI_ERROR, "b", "BadRequest");
    ASSERT_UINT(1, router_frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    router_world_done(&w);
}

TEST(bidi_input_past_its_credit_ends_the_call)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    struct router_world w;
    struct agx_client *c;

    config.input_max = 200;
    router_world_init(&w, &config);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "bidi:start", "b", 0);
    for (uint64_t i = 1; i <= AGX_CREDIT_ITEMS; i++)
        router_say(&w, c, "bidi:in", "b", "item", 1, "seq", i);
    ASSERT_UINT(0, w.n_seen);
    router_say(&w, c, "bidi:in", "b", "item", 1, "seq", AGX_CREDIT_ITEMS + 1);
    router_assert_error(&w, AGX_EV_BIDI_ERROR, "b", "InputOverflow");

    /* A client without credit has bytes to spare, not items. */
    c = router_join(&w, false, &conn_two);
    router_call(&w, c, "bidi:start", "b", 0);
    for (int i = 0; i <= 200; i++)
        router_say(&w, c, "bidi:in", "b", "item", 1, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    router_say(&w, c, "bidi:in", "b", "item", 1, NULL, 0);
    router_assert_error(&w, AGX_EV_BIDI_ERROR, "b", "InputOverflow");
    router_world_done(&w);
}

static struct agx_client *two_streams_behind(struct router_world *w, char session[33])
{
    struct agx_client *c;

    router_world_init(w, NULL);
    c = router_join(w, true, &conn_one);
    (void)snprintf(session, 33, "%s", agx_client_peek_session(c));
    w->queued = AGX_QUEUE_HIGH + 1;
    router_call(w, c, "stream", "s", 0);
    router_call(w, c, "stream", "t", 0);
    for (uint64_t i = 0; i < 2; i++) {
        ASSERT_OK(router_frame(w, "stream_item", 1, "value", i));
        ASSERT_OK(router_frame(w, "stream_item", 2, "value", 10 + i));
    }
    ASSERT_OK(router_frame(w, "stream_end", 2, NULL, 0));
    ASSERT_UINT(0, w->n_seen);
    return c;
}

static void assert_seen(const struct router_world *w, size_t i, enum agx_remote_event ev,
                        const char *call_id)
{
    const struct router_event *s = &w->seen[i];

    ASSERT_TRUE(i < w->n_seen);
    ASSERT_INT(ev, s->ev);
    /* {call_id: one letter, ...} */
    ASSERT_INT(call_id[0], s->payload[10]);
}

TEST(a_full_queue_holds_items_of_a_session_back_until_it_drained_and_takes_calls_in_turn)
{
    char session[33];
    struct router_world w;
    struct agx_client *c = two_streams_behind(&w, session);

    agx_router_drained(w.rt, c);
    ASSERT_UINT(0, w.n_seen); /* still full */
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(5, w.n_seen);
    assert_seen(&w, 0, AGX_EV_STREAM_ITEM, "s");
    assert_seen(&w, 1, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 2, AGX_EV_STREAM_ITEM, "s");
    assert_seen(&w, 3, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 4, AGX_EV_STREAM_END, "t");
    ASSERT_OK(router_frame(&w, "stream_item", 1, "value", 3));
    ASSERT_UINT(6, w.n_seen); /* nothing is before it */
    router_world_done(&w);
}

TEST(a_full_queue_holds_back_neither_results_nor_errors_of_other_calls)
{
    char session[33];
    struct router_world w;
    struct agx_client *c = two_streams_behind(&w, session);

    router_call(&w, c, "unary", "u", 0);
    ASSERT_OK(router_frame(&w, "result", 3, "value", 1));
    ASSERT_UINT(1, w.n_seen);
    assert_seen(&w, 0, AGX_EV_UNARY_RESULT, "u");
    router_world_done(&w);
}

TEST(what_a_full_queue_held_back_comes_after_a_resume)
{
    char session[33];
    struct router_world w;
    struct agx_client *c = two_streams_behind(&w, session);

    agx_router_disconnect(w.rt, c, 1000);
    w.queued = 0;
    ASSERT_TRUE(router_rejoin(&w, session, &conn_two, &c));
    router_say_calls(&w, c, "resume", "t", 0);
    ASSERT_UINT(4, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[0].ev);
    assert_seen(&w, 1, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 2, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 3, AGX_EV_STREAM_END, "t");
    ASSERT_UINT(3, router_field(&w, "seq").value.u);
    router_world_done(&w);
}

TEST(a_cancelled_call_with_something_held_back_ends_when_the_queue_drained)
{
    char session[33];
    struct router_world w;
    struct agx_client *c = two_streams_behind(&w, session);

    router_say(&w, c, "cancel", "s", NULL, 0, NULL, 0);
    ASSERT_UINT(0, w.n_seen);
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(6, w.n_seen);
    assert_seen(&w, 4, AGX_EV_STREAM_ERROR, "s");
    router_world_done(&w);
}

TEST(call_id_is_in_use_until_the_end_of_its_call_has_left_the_full_queue)
{
    struct router_world w;
    struct agx_client *c;
    uint64_t id = 0;

    router_world_init(&w, NULL);
    c = router_join(&w, true, &conn_one);
    router_call(&w, c, "stream", "s", 0);
    router_frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    w.queued = AGX_QUEUE_HIGH + 1;
    ASSERT_OK(router_frame(&w, "stream_item", id, "value", 1));
    ASSERT_OK(router_frame(&w, "stream_end", id, NULL, 0));
    ASSERT_UINT(0, w.n_seen);
    router_call(&w, c, "stream", "s", 0);
    router_assert_error(&w, AGX_EV_STREAM_ERROR, "s", "DuplicateCall");
    ASSERT_UINT(0, agx_router_running(w.rt));
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(3, w.n_seen);
    ASSERT_INT(AGX_EV_STREAM_ITEM, w.seen[1].ev);
    ASSERT_INT(AGX_EV_STREAM_END, router_last(&w)->ev);
    ASSERT_UINT(2, router_field(&w, "seq").value.u);
    router_call(&w, c, "stream", "s", 0); /* not acknowledged, but seen */
    ASSERT_UINT(1, agx_router_running(w.rt));
    ASSERT_OK(router_frame(&w, "stream_end", id + 1, NULL, 0));
    ASSERT_UINT(1, router_field(&w, "seq").value.u);
    router_world_done(&w);
}

#include "codec/remote_flow.h"
#include "tests/support/test.h"

static struct agx_remote_flow make_flow(enum agx_remote_kind kind)
{
    struct agx_remote_flow f;

    agx_remote_flow_init(&f, kind);
    return f;
}

TEST(flow_of_a_unary_call_ends_with_its_result)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_UNARY);

    ASSERT_INT(AGX_FLOW_NOTHING, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, 1, 1));
    ASSERT_FALSE(f.known);
    ASSERT_INT(AGX_FLOW_RESULT, agx_remote_flow_event(&f, AGX_EV_UNARY_RESULT, 1, 1));
    ASSERT_TRUE(f.known && f.closed);
    ASSERT_INT(AGX_FLOW_NOTHING, agx_remote_flow_event(&f, AGX_EV_UNARY_ERROR, 2, 0));
    ASSERT_UINT(1, f.seq);
}

TEST(flow_takes_items_in_order_until_the_end)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_STREAM);

    ASSERT_INT(AGX_FLOW_ITEM, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, 1, 10));
    ASSERT_INT(AGX_FLOW_NOTHING, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, 1, 10));
    ASSERT_INT(AGX_FLOW_ITEM, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, 2, 10));
    ASSERT_UINT(20, f.received.bytes);
    ASSERT_INT(AGX_FLOW_END, agx_remote_flow_event(&f, AGX_EV_STREAM_END, 3, 0));
    ASSERT_INT(AGX_FLOW_NOTHING, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, 4, 10));
}

TEST(flow_with_a_hole_or_without_a_number_is_disorder_and_changes_nothing)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_BIDI);

    ASSERT_INT(AGX_FLOW_DISORDER, agx_remote_flow_event(&f, AGX_EV_BIDI_OUT, 2, 1));
    ASSERT_INT(AGX_FLOW_DISORDER, agx_remote_flow_event(&f, AGX_EV_BIDI_OUT, 0, 1));
    ASSERT_INT(AGX_FLOW_DISORDER, agx_remote_flow_event(&f, AGX_EV_BIDI_END, 2, 0));
    ASSERT_NOT_NULL(agx_flow_fault(AGX_FLOW_DISORDER));
    ASSERT_NULL(agx_flow_fault(AGX_FLOW_ITEM));
    ASSERT_UINT(0, f.seq);
    ASSERT_FALSE(f.closed);
}

TEST(flow_takes_an_error_that_says_that_events_are_lost)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_STREAM);

    ASSERT_INT(AGX_FLOW_ERROR, agx_remote_flow_event(&f, AGX_EV_STREAM_ERROR, 7, 0));
    ASSERT_UINT(7, f.seq);
    ASSERT_TRUE(f.closed);
}

TEST(flow_of_more_items_than_were_granted_is_excess)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_STREAM);

    for (uint64_t i = 1; i <= AGX_CREDIT_ITEMS; i++)
        ASSERT_INT(AGX_FLOW_ITEM, agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, i, 1));
    ASSERT_INT(AGX_FLOW_EXCESS,
               agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, AGX_CREDIT_ITEMS + 1, 1));
    f.taken = f.received;
    ASSERT_TRUE(agx_remote_flow_grant(&f));
    ASSERT_FALSE(agx_remote_flow_grant(&f));
    ASSERT_INT(AGX_FLOW_ITEM,
               agx_remote_flow_event(&f, AGX_EV_STREAM_ITEM, AGX_CREDIT_ITEMS + 1, 1));
}

/* Three items and the end, of which the first three pieces went out. */
static struct agx_remote_flow make_input(void)
{
    struct agx_remote_flow f = make_flow(AGX_REMOTE_BIDI);

    for (int i = 0; i < 3; i++)
        agx_remote_flow_queue_item(&f, 5);
    agx_remote_flow_queue_end(&f);
    f.in_sent = 3;
    return f;
}

TEST(flow_of_input_is_numbered_and_counted)
{
    struct agx_remote_flow f = make_input();

    ASSERT_UINT(4, f.in_queued);
    ASSERT_UINT(3, f.in.n);
    ASSERT_UINT(15, f.in.bytes);
    ASSERT_TRUE(f.in_ended);
    ASSERT_TRUE(agx_remote_flow_may_send(&f));
    f.in.n = AGX_CREDIT_ITEMS;
    ASSERT_FALSE(agx_remote_flow_may_send(&f));
}

TEST(flow_of_input_drops_what_the_server_has_and_never_what_was_not_sent)
{
    struct agx_remote_flow f = make_input();

    ASSERT_UINT(2, agx_remote_flow_credit(&f, 100, AGX_CREDIT_BYTES, 2));
    ASSERT_UINT(100, f.in_granted.n);
    ASSERT_TRUE(f.known);
    ASSERT_UINT(0, agx_remote_flow_acked(&f, 1));
    ASSERT_UINT(1, agx_remote_flow_acked(&f, 99));
    ASSERT_UINT(3, f.in_acked);
}

TEST(flow_of_a_known_call_sends_again_what_the_server_does_not_have)
{
    struct agx_remote_flow f = make_input();

    ASSERT_UINT(1, agx_remote_flow_known(&f, 1));
    ASSERT_UINT(1, f.in_sent);
    ASSERT_UINT(4, f.in_queued);
    ASSERT_FALSE(agx_remote_flow_unknown(&f));
}

TEST(flow_of_a_call_that_never_arrived_begins_again)
{
    struct agx_remote_flow f = make_input();

    ASSERT_TRUE(agx_remote_flow_unknown(&f));
    agx_remote_flow_begin(&f);
    ASSERT_UINT(0, f.in_sent);
}

TEST(acks_are_due_after_many_events_or_large_ones)
{
    ASSERT_UINT(1, agx_ack_weight(0));
    ASSERT_UINT(2, agx_ack_weight(AGX_CLIENT_ACK_WEIGHT));
    ASSERT_FALSE(agx_ack_due(AGX_CLIENT_ACK_EVENTS - 1));
    ASSERT_TRUE(agx_ack_due(AGX_CLIENT_ACK_EVENTS));
}

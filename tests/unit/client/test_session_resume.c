/* test_session_resume.c: calls whose connection is lost. */
#include "agentix/runtime.h"
#include "tests/support/peer.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdlib.h>

TEST(connection_cut_in_a_stream_goes_on_without_loss_or_doubles)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);

    peer_value(p, AGX_EV_STREAM_ITEM, id, 1, AGX_STR("\x01"));
    peer_value(p, AGX_EV_STREAM_ITEM, id, 2, AGX_STR("\x02"));
    peer_flush(p, SIZE_MAX);
    peer_reconnect(p, "s1", true);
    ASSERT_NOT_NULL(strstr(p->hello, "\"session\":\"s1\""));
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_expect_none(p);
    peer_resume_done(p, id, 0, NULL);
    peer_value(p, AGX_EV_STREAM_ITEM, id, 2, AGX_STR("\x02"));
    peer_value(p, AGX_EV_STREAM_ITEM, id, 3, AGX_STR("\x03"));
    peer_value(p, AGX_EV_STREAM_END, id, 4, AGX_STR(""));
    peer_flush(p, SIZE_MAX);
    peer_expect_value(p, call, AGX_STR("\x01"));
    peer_expect_value(p, call, AGX_STR("\x02"));
    peer_expect_value(p, call, AGX_STR("\x03"));
    peer_expect_end(p, call);
}

TEST(call_that_the_server_never_received_is_sent_again)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL, *again = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_BIDI, &id);

    ASSERT_OK(agx_session_send(call, AGX_STR("\x01"), p->now, NULL));
    ASSERT_OK(agx_session_end_input(call, p->now, NULL));
    (void)peer_expect(p, AGX_EV_BIDI_IN);
    (void)peer_expect(p, AGX_EV_BIDI_END_IN);
    peer_reconnect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, NULL, 0, id);
    again = peer_id(peer_expect(p, AGX_EV_BIDI_START));
    ASSERT_CSTR(id, again);
    ASSERT_UINT(1, peer_number(peer_expect(p, AGX_EV_BIDI_IN), "seq"));
    ASSERT_UINT(2, peer_number(peer_expect(p, AGX_EV_BIDI_END_IN), "seq"));
    peer_expect_none(p);
}

TEST(input_that_the_server_has_is_not_sent_again)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_BIDI, &id);

    for (int i = 0; i < 3; i++) {
        ASSERT_OK(agx_session_send(call, AGX_STR("\x01"), p->now, NULL));
        (void)peer_expect(p, AGX_EV_BIDI_IN);
    }
    peer_cut(p);
    /* input goes on while the connection is away, as far as the credit goes */
    ASSERT_OK(agx_session_send(call, AGX_STR("\x02"), p->now, NULL));
    peer_accept(p);
    peer_connect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, id, 2, NULL);
    ASSERT_UINT(3, peer_number(peer_expect(p, AGX_EV_BIDI_IN), "seq"));
    ASSERT_UINT(4, peer_number(peer_expect(p, AGX_EV_BIDI_IN), "seq"));
    peer_expect_none(p);
}

TEST(cancel_that_was_lost_with_the_connection_is_said_again)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_cut(p);
    agx_session_cancel(call, p->now);
    peer_accept(p);
    peer_connect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, id, 0, NULL);
    (void)peer_expect(p, AGX_EV_CANCEL);
}

TEST(cancelled_call_that_the_server_never_received_is_over)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_cut(p);
    agx_session_cancel(call, p->now);
    peer_accept(p);
    peer_connect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, NULL, 0, id);
    peer_expect_failure(p, call, AGX_CANCELLED, "Cancelled");
    peer_expect_none(p);
}

TEST(call_started_while_away_is_sent_after_the_resume)
{
    _cleanup_peer_ struct peer *p = peer_new();

    peer_cut(p);
    (void)peer_start(p, AGX_REMOTE_UNARY, 0);
    peer_accept(p);
    peer_connect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    (void)peer_start(p, AGX_REMOTE_STREAM, 0);
    peer_expect_none(p);
    peer_resume_done(p, NULL, 0, NULL);
    (void)peer_expect(p, AGX_EV_UNARY);
    (void)peer_expect(p, AGX_EV_STREAM);
}

TEST(session_that_is_gone_leaves_sent_calls_without_a_result_and_sends_the_others)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *sent = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_cut(p);
    (void)peer_start(p, AGX_REMOTE_STREAM, 0);
    peer_accept(p);
    peer_connect(p, "s2", false);
    peer_expect_failure(p, sent, AGX_DATA_LOSS, "ResultUnavailable");
    (void)peer_expect(p, AGX_EV_STREAM);
    peer_expect_none(p);
}

TEST(call_that_the_answer_to_resume_leaves_out_has_no_result)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_reconnect(p, "s1", true);
    peer_resume_done(p, NULL, 0, NULL);
    peer_expect_failure(p, call, AGX_DATA_LOSS, "ResultUnavailable");
}

TEST(server_that_stays_away_is_given_up_after_the_window)
{
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_call *call = peer_start(p, AGX_REMOTE_UNARY, 0);
    struct agx_str got;
    int attempts = 0;

    peer_cut(p);
    for (uint64_t end = p->now + 60000; p->now < end;) {
        struct agx_error *err = NULL;

        ASSERT_INT(AGX_TAKE_NOTHING, peer_take(p, call, &got, NULL));
        if (agx_session_attempt(p->s) > 0) {
            attempts++;
            (void)agx_error_set(&err, AGX_UNAVAILABLE, "refused");
            agx_session_lost(p->s, &err, p->now);
        }
        ASSERT_TRUE(agx_session_deadline(p->s) > p->now || agx_session_attempt(p->s) > 0);
        p->now = AGX_MAX(p->now, agx_session_deadline(p->s));
        agx_session_tick(p->s, p->now);
    }
    ASSERT_TRUE(attempts > 20 && attempts < 50);
    peer_expect_failure(p, call, AGX_UNAVAILABLE, NULL);
}

/* What the server could not keep until we came back is lost; its error has the number after. */
TEST(stream_whose_items_the_server_lost_ends_with_its_error)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);

    peer_value(p, AGX_EV_STREAM_ITEM, id, 1, AGX_STR("\x01"));
    peer_flush(p, SIZE_MAX);
    peer_reconnect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, id, 0, NULL);
    peer_error(p, AGX_EV_STREAM_ERROR, id, 5, "ResultUnavailable", false, INT_MIN);
    peer_flush(p, SIZE_MAX);
    peer_expect_value(p, call, AGX_STR("\x01"));
    peer_expect_failure(p, call, AGX_DATA_LOSS, "ResultUnavailable");
}

/* It had the call once: the request must not run a second time. */
TEST(call_that_the_server_knew_and_forgot_is_not_sent_again)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_reconnect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, id, 0, NULL);
    peer_flush(p, SIZE_MAX);
    peer_reconnect(p, "s1", true);
    (void)peer_expect(p, AGX_EV_RESUME);
    peer_resume_done(p, NULL, 0, id);
    peer_flush(p, SIZE_MAX);
    peer_expect_failure(p, call, AGX_DATA_LOSS, "ResultUnavailable");
    peer_expect_none(p);
}

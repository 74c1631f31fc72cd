/*
 * test_session.c: the client's rules against a scripted server, without sockets. Each test ends
 * with the session freed; under ASan memory that it did not free is a finding.
 */
#include "agentix/runtime.h"
#include "client/session.h"
#include "codec/credit.h"
#include "tests/support/peer.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

TEST(session_says_hello_with_token_and_protocol)
{
    _cleanup_peer_ struct peer *p = peer_new();

    ASSERT_CSTR("{\"agentix\":{\"proto\":1,\"token\":\"secret\",\"max_message\":1048576}}",
                p->hello);
}

TEST(unary_call_gives_its_result_and_is_acknowledged_after_100_ms)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);
    struct agx_str got;

    ASSERT_INT(AGX_TAKE_NOTHING, peer_take(p, call, &got, NULL));
    ASSERT_NULL(agx_session_next(p->s));
    peer_value(p, AGX_EV_UNARY_RESULT, id, 1, AGX_STR("\x2a"));
    peer_flush(p, 1);
    ASSERT_TRUE(agx_session_next(p->s) == call);
    ASSERT_NULL(agx_session_next(p->s));
    peer_expect_value(p, call, AGX_STR("\x2a"));
    peer_expect_end(p, call);
    ASSERT_NULL(agx_session_release(call, p->now));
    peer_expect_none(p);
    ASSERT_UINT(p->now + 100, agx_session_deadline(p->s));
    agx_session_tick(p->s, p->now += 100);
    (void)peer_expect(p, AGX_EV_ACK);
    peer_expect_none(p);
}

TEST(request_carries_target_arguments_and_timeout)
{
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_str payload;

    (void)peer_start(p, AGX_REMOTE_STREAM, 5000);
    payload = peer_expect(p, AGX_EV_STREAM);
    ASSERT_UINT(5000, peer_number(payload, "timeout_ms"));
    ASSERT_NOT_NULL(memmem(payload.ptr, payload.len, "\xa6target\xa4m::f", 12));
    ASSERT_NOT_NULL(memmem(payload.ptr, payload.len, "\xa6kwargs\x81\xa1n\x01", 11));
}

TEST(call_with_arguments_that_are_no_array_is_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_call_request q = { .target = AGX_STR("m::f"), .args = AGX_STR("\x01") };
    struct agx_call *call = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_call(p->s, &q, p->now, &call, &err));
    ASSERT_MESSAGE(err, "args: must be of type array");
    q.args = AGX_STR("\x92\x01");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_call(p->s, &q, p->now, &call, NULL));
    q.args = AGX_STR("");
    q.target = AGX_STR("");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_call(p->s, &q, p->now, &call, NULL));
    ASSERT_NULL(call);
    peer_expect_none(p);
}

TEST(errors_of_the_server_have_code_type_traceback_and_returncode)
{
    static const struct {
        const char *type;
        bool cancelled;
        enum agx_code code;
    } cases[] = {
        { "ValueError", false, AGX_UNKNOWN },
        { "Cancelled", true, AGX_CANCELLED },
        { "CallTimeout", false, AGX_DEADLINE_EXCEEDED },
        { "WorkerUnavailable", false, AGX_UNAVAILABLE },
        { "ResultUnavailable", false, AGX_DATA_LOSS },
        { "MessageTooLarge", false, AGX_RESOURCE_EXHAUSTED },
        { "BadRequest", false, AGX_INVALID_ARGUMENT },
    };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_call *call;
    struct agx_str got;
    int code = 0;
    char *id;

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        call = peer_start_known(p, AGX_REMOTE_UNARY, &id);
        peer_error(p, AGX_EV_UNARY_ERROR, id, 1, cases[i].type, cases[i].cancelled, INT_MIN);
        peer_flush(p, SIZE_MAX);
        peer_expect_failure(p, call, cases[i].code, cases[i].type);
        agx_session_release(call, p->now);
        free(id);
    }
    call = peer_start_known(p, AGX_REMOTE_UNARY, &id);
    peer_error(p, AGX_EV_UNARY_ERROR, id, 1, "WorkerExited", false, -9);
    peer_flush(p, SIZE_MAX);
    free(id);
    ASSERT_CODE(AGX_ABORTED, peer_take(p, call, &got, &err));
    ASSERT_MESSAGE(err, "m::f: WorkerExited: it went wrong");
    ASSERT_CSTR("Traceback (most recent call last)", agx_error_traceback(err));
    ASSERT_TRUE(agx_error_returncode(err, &code));
    ASSERT_INT(-9, code);
}

TEST(stream_gives_items_in_order_then_its_end)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);
    struct agx_str got;

    peer_value(p, AGX_EV_STREAM_ITEM, id, 1, AGX_STR("\x01"));
    peer_value(p, AGX_EV_STREAM_ITEM, id, 2, AGX_STR("\x02"));
    peer_flush(p, 3);
    peer_expect_value(p, call, AGX_STR("\x01"));
    peer_expect_value(p, call, AGX_STR("\x02"));
    ASSERT_INT(AGX_TAKE_NOTHING, peer_take(p, call, &got, NULL));
    peer_value(p, AGX_EV_STREAM_END, id, 3, AGX_STR(""));
    peer_flush(p, SIZE_MAX);
    peer_expect_end(p, call);
    peer_expect_end(p, call);
}

TEST(stream_that_failed_gives_its_items_before_the_error)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);

    peer_value(p, AGX_EV_STREAM_ITEM, id, 1, AGX_STR("\x01"));
    peer_error(p, AGX_EV_STREAM_ERROR, id, 2, "KeyError", false, INT_MIN);
    peer_flush(p, SIZE_MAX);
    peer_expect_value(p, call, AGX_STR("\x01"));
    peer_expect_failure(p, call, AGX_UNKNOWN, "KeyError");
    peer_expect_failure(p, call, AGX_UNKNOWN, "KeyError");
}

TEST(stream_grants_credit_when_half_a_window_is_taken)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);
    struct agx_str credit;

    for (uint64_t i = 1; i <= 64; i++)
        peer_value(p, AGX_EV_STREAM_ITEM, id, i, AGX_STR("\x07"));
    peer_flush(p, SIZE_MAX);
    (void)peer_expect(p, AGX_EV_ACK);
    for (int i = 0; i < 31; i++)
        peer_expect_value(p, call, AGX_STR("\x07"));
    peer_expect_none(p);
    peer_expect_value(p, call, AGX_STR("\x07"));
    credit = peer_expect(p, AGX_EV_CREDIT);
    ASSERT_UINT(32 + 256, peer_number(credit, "n"));
    ASSERT_UINT(AGX_CREDIT_BYTES + 32, peer_number(credit, "bytes"));
}

TEST(server_that_sends_more_than_it_was_granted_loses_the_connection)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;

    (void)peer_start_known(p, AGX_REMOTE_STREAM, &id);
    for (uint64_t i = 1; i <= 65; i++)
        peer_value(p, AGX_EV_STREAM_ITEM, id, i, AGX_STR("\x07"));
    peer_flush(p, SIZE_MAX);
    ASSERT_UINT(0, agx_session_attempt(p->s));
}

TEST(event_out_of_its_order_or_malformed_ends_the_connection)
{
    static const struct agx_str bad[] = { { "\x01", 1 }, { "\xc1", 1 }, { "", 0 } };

    for (size_t i = 0; i <= AGX_ARRAY_LEN(bad); i++) {
        _cleanup_peer_ struct peer *p = peer_new();
        _cleanup_free_ char *id = NULL;

        (void)peer_start_known(p, AGX_REMOTE_STREAM, &id);
        if (i < AGX_ARRAY_LEN(bad))
            peer_emit(p, AGX_EV_STREAM_ITEM, bad[i]);
        else
            peer_value(p, AGX_EV_STREAM_ITEM, id, 2, AGX_STR("\x07"));
        peer_flush(p, SIZE_MAX);
        ASSERT_UINT(0, agx_session_attempt(p->s));
    }
}

TEST(event_of_an_unknown_call_or_name_is_ignored)
{
    _cleanup_peer_ struct peer *p = peer_new();

    peer_value(p, AGX_EV_UNARY_RESULT, "nobody", 1, AGX_STR("\x07"));
    peer_text(p, AGX_STR("42[\"news\",{\"a\":1}]"));
    peer_text(p, AGX_STR("40/log,{\"sid\":\"z\"}"));
    peer_flush(p, SIZE_MAX);
    ASSERT_INT(1, agx_session_state(p->s, NULL));
}

TEST(bidi_input_waits_for_credit_and_is_numbered)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_BIDI, &id);

    for (uint64_t i = 1; i <= 64; i++) {
        ASSERT_TRUE(agx_session_can_send(call));
        ASSERT_OK(agx_session_send(call, AGX_STR("\x05"), p->now, NULL));
        ASSERT_UINT(i, peer_number(peer_expect(p, AGX_EV_BIDI_IN), "seq"));
    }
    ASSERT_FALSE(agx_session_can_send(call));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_session_send(call, AGX_STR("\x05"), p->now, &err));
    peer_credit(p, id, 65, 70000, 64);
    peer_flush(p, SIZE_MAX);
    ASSERT_TRUE(agx_session_next(p->s) == call);
    ASSERT_TRUE(agx_session_can_send(call));
    ASSERT_OK(agx_session_send(call, AGX_STR("\x05"), p->now, NULL));
    ASSERT_UINT(65, peer_number(peer_expect(p, AGX_EV_BIDI_IN), "seq"));
    ASSERT_OK(agx_session_end_input(call, p->now, NULL));
    ASSERT_OK(agx_session_end_input(call, p->now, NULL));
    ASSERT_UINT(66, peer_number(peer_expect(p, AGX_EV_BIDI_END_IN), "seq"));
    peer_expect_none(p);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_session_send(call, AGX_STR("\x05"), p->now, NULL));
}

TEST(bidi_item_larger_than_the_window_goes_alone)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL, *big = calloc(1, 100005);
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_BIDI, &id);

    memcpy(big, "\xc6\x00\x01\x86\xa0", 5); /* 100,000 bytes */
    ASSERT_OK(agx_session_send(call, agx_str_bytes(big, 100005), p->now, NULL));
    (void)peer_expect(p, AGX_EV_BIDI_IN);
    ASSERT_FALSE(agx_session_can_send(call));
}

TEST(input_to_a_unary_call_or_malformed_is_refused)
{
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_call *unary = peer_start(p, AGX_REMOTE_UNARY, 0),
                    *bidi = peer_start(p, AGX_REMOTE_BIDI, 0);

    ASSERT_FALSE(agx_session_can_send(unary));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_send(unary, AGX_STR("\x05"), p->now, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_end_input(unary, p->now, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_send(bidi, AGX_STR("\x92\x01"), p->now, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_session_send(bidi, AGX_STR("\x01\x01"), p->now, NULL));
}

TEST(cancel_asks_the_server_and_its_answer_ends_the_call)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);
    struct agx_str got;

    agx_session_cancel(call, p->now);
    agx_session_cancel(call, p->now);
    (void)peer_expect(p, AGX_EV_CANCEL);
    peer_expect_none(p);
    ASSERT_INT(AGX_TAKE_NOTHING, peer_take(p, call, &got, NULL));
    peer_error(p, AGX_EV_STREAM_ERROR, id, 1, "Cancelled", true, INT_MIN);
    peer_flush(p, SIZE_MAX);
    peer_expect_failure(p, call, AGX_CANCELLED, "Cancelled");
}

TEST(call_freed_while_it_runs_is_cancelled_and_its_end_acknowledged)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_STREAM, &id);

    agx_session_release(call, p->now);
    (void)peer_expect(p, AGX_EV_CANCEL);
    peer_value(p, AGX_EV_STREAM_ITEM, id, 1, AGX_STR("\x01"));
    peer_error(p, AGX_EV_STREAM_ERROR, id, 2, "Cancelled", true, INT_MIN);
    peer_flush(p, SIZE_MAX);
    ASSERT_NULL(agx_session_next(p->s));
    agx_session_tick(p->s, p->now += 100);
    (void)peer_expect(p, AGX_EV_ACK);
    /* only the server's silence is waited for */
    ASSERT_UINT(p->now - 100 + 45000, agx_session_deadline(p->s));
}

TEST(deadline_ends_the_call_and_cancels_it)
{
    _cleanup_peer_ struct peer *p = peer_new();
    struct agx_call *call = peer_start(p, AGX_REMOTE_UNARY, 50);
    _cleanup_free_ char *id = peer_id(peer_expect(p, AGX_EV_UNARY));

    ASSERT_UINT(p->now + 50, agx_session_deadline(p->s));
    agx_session_tick(p->s, p->now += 49);
    ASSERT_NULL(agx_session_next(p->s));
    agx_session_tick(p->s, p->now += 1);
    ASSERT_TRUE(agx_session_next(p->s) == call);
    peer_expect_failure(p, call, AGX_DEADLINE_EXCEEDED, "CallTimeout");
    (void)peer_expect(p, AGX_EV_CANCEL);
    /* the answer that comes all the same changes nothing */
    peer_value(p, AGX_EV_UNARY_RESULT, id, 1, AGX_STR("\x07"));
    peer_flush(p, SIZE_MAX);
    peer_expect_failure(p, call, AGX_DEADLINE_EXCEEDED, "CallTimeout");
}

TEST(call_before_the_connection_is_sent_when_it_stands)
{
    _cleanup_peer_ struct peer *p = peer_new_dialing();

    (void)peer_start(p, AGX_REMOTE_UNARY, 0);
    peer_accept(p);
    peer_expect_none(p);
    peer_connect(p, "s1", false);
    (void)peer_expect(p, AGX_EV_UNARY);
}

TEST(first_connection_that_fails_ends_the_calls_and_the_next_call_tries_again)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *why = NULL;
    _cleanup_peer_ struct peer *p = peer_new_dialing();
    struct agx_call *call;

    call = peer_start(p, AGX_REMOTE_UNARY, 0);
    (void)agx_error_set(&err, AGX_UNAVAILABLE, "connect 'x': refused");
    agx_session_lost(p->s, &err, p->now);
    ASSERT_UINT(0, agx_session_attempt(p->s));
    ASSERT_CODE(AGX_UNAVAILABLE, agx_session_state(p->s, &why));
    ASSERT_MESSAGE(why, "refused");
    peer_expect_failure(p, call, AGX_UNAVAILABLE, NULL);
    agx_session_release(call, p->now);
    (void)peer_start(p, AGX_REMOTE_UNARY, 0);
    ASSERT_UINT(2, agx_session_attempt(p->s));
}

TEST(server_that_does_not_answer_in_time_is_unavailable)
{
    _cleanup_peer_ struct peer *p = peer_new_dialing();
    struct agx_call *call;

    call = peer_start(p, AGX_REMOTE_UNARY, 0);
    agx_session_dialed(p->s, p->now);
    ASSERT_UINT(p->now + 1000, agx_session_deadline(p->s));
    agx_session_tick(p->s, p->now += 1000);
    peer_expect_failure(p, call, AGX_UNAVAILABLE, NULL);
}

TEST(server_that_refuses_the_token_is_unauthenticated)
{
    _cleanup_peer_ struct peer *p = peer_new_dialing();
    char answer[] = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    struct agx_call *call;

    call = peer_start(p, AGX_REMOTE_UNARY, 0);
    agx_session_dialed(p->s, p->now);
    agx_session_read(p->s, (uint8_t *)answer, sizeof(answer) - 1, p->now);
    peer_expect_failure(p, call, AGX_UNAUTHENTICATED, NULL);
}

TEST(server_that_refuses_connect_is_unauthenticated)
{
    _cleanup_peer_ struct peer *p = peer_new_dialing();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    peer_accept(p);
    peer_text(p, AGX_STR("44{\"message\":\"missing or wrong token\"}"));
    peer_flush(p, SIZE_MAX);
    ASSERT_CODE(AGX_UNAUTHENTICATED, agx_session_state(p->s, &err));
    ASSERT_MESSAGE(err, "missing or wrong token");
}

TEST(server_of_another_protocol_is_a_failed_precondition)
{
    _cleanup_peer_ struct peer *p = peer_new_dialing();

    peer_accept(p);
    peer_text(p, AGX_STR("40{\"sid\":\"abc\"}"));
    peer_flush(p, SIZE_MAX);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_session_state(p->s, NULL));
}

TEST(pings_of_both_layers_are_answered)
{
    _cleanup_peer_ struct peer *p = peer_new();

    peer_text(p, AGX_STR("2"));
    agx_session_read(p->s, p->out.data, p->out.len, p->now);
    agx_buf_clear(&p->out);
    ASSERT_UINT(2 + 4 + 1, agx_session_pending(p->s).len); /* a masked frame with "3" */
    peer_flush(p, SIZE_MAX);
    ASSERT_OK(agx_ws_append(&p->out, AGX_WS_PING, AGX_STR("abcd"), NULL));
    agx_session_read(p->s, p->out.data, p->out.len, p->now);
    ASSERT_UINT(2 + 4 + 4, agx_session_pending(p->s).len);
}

TEST(server_that_falls_silent_is_given_up)
{
    _cleanup_peer_ struct peer *p = peer_new();

    ASSERT_UINT(p->now + 45000, agx_session_deadline(p->s));
    agx_session_tick(p->s, p->now += 45000);
    ASSERT_UINT(0, agx_session_attempt(p->s));
    ASSERT_INT(0, agx_session_state(p->s, NULL));
    agx_session_tick(p->s, p->now);
    ASSERT_UINT(2, agx_session_attempt(p->s));
}

TEST(goodbye_acknowledges_and_closes)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *id = NULL;
    struct agx_call *call = peer_start_known(p, AGX_REMOTE_UNARY, &id);

    peer_value(p, AGX_EV_UNARY_RESULT, id, 1, AGX_STR("\x2a"));
    peer_flush(p, SIZE_MAX);
    agx_session_release(call, p->now);
    agx_session_goodbye(p->s);
    (void)peer_expect(p, AGX_EV_ACK);
}

TEST(request_larger_than_the_server_takes_fails_here)
{
    _cleanup_peer_ struct peer *p = peer_new();
    _cleanup_free_ char *big = calloc(1, 1048570);
    struct agx_call_request q = { .target = AGX_STR("m::f") };
    struct agx_call *call = NULL;

    memcpy(big, "\x91\xc6\x00\x0f\xff\xf4", 6); /* one bin of 1,048,564 bytes */
    q.args = agx_str_bytes(big, 1048570);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_session_call(p->s, &q, p->now, &call, NULL));
}

#include "codec/eio_session.h"
#include "tests/support/test.h"

static const struct agx_eio_open terms = { .ping_interval_ms = 25000, .ping_timeout_ms = 20000 };

#define OPEN_TEXT                                                                                  \
    "0{\"sid\":\"abc\",\"upgrades\":[\"websocket\"],\"pingTimeout\":20000,\"pingInterval\":25000}"

static int recv_text(struct agx_eio_session *s, enum agx_eio_transport via, const char *text,
                     uint64_t now_ms, struct agx_eio_action *ret)
{
    struct agx_eio_packet p;

    ASSERT_OK(agx_eio_decode_text(agx_str_from(text), &p, NULL));
    return agx_eio_session_recv(s, via, &p, now_ms, ret, NULL);
}

/* The packet comes, and gives that action (and that packet to send by that transport). */
static void expect(struct agx_eio_session *s, enum agx_eio_transport via, const char *text,
                   uint64_t now_ms, enum agx_eio_action_kind kind)
{
    struct agx_eio_action a;

    ASSERT_OK(recv_text(s, via, text, now_ms, &a));
    ASSERT_INT(kind, a.kind);
}

static void expect_send(const struct agx_eio_action *a, enum agx_eio_transport via,
                        const char *text)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);

    ASSERT_OK(agx_eio_encode(&b, &a->packet));
    ASSERT_STR(agx_str_from(text), agx_buf_peek(&b));
    ASSERT_INT(via, a->via);
}

TEST(server_pings_one_interval_after_the_last_pong)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_server(&s, &terms, AGX_EIO_WEBSOCKET, 1000);
    ASSERT_UINT(26000, s.deadline_ms);
    ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&s, 25999).kind);
    a = agx_eio_session_tick(&s, 26000);
    ASSERT_INT(AGX_EIO_ACT_SEND, a.kind);
    expect_send(&a, AGX_EIO_WEBSOCKET, "2");
    ASSERT_UINT(46000, s.deadline_ms);
    expect(&s, AGX_EIO_WEBSOCKET, "3", 30000, AGX_EIO_ACT_NONE);
    ASSERT_UINT(55000, s.deadline_ms);
    ASSERT_INT(AGX_EIO_ACT_SEND, agx_eio_session_tick(&s, 55000).kind);
}

TEST(server_drops_a_client_that_does_not_answer_even_if_it_talks)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_server(&s, &terms, AGX_EIO_WEBSOCKET, 0);
    (void)agx_eio_session_tick(&s, 25000);
    expect(&s, AGX_EIO_WEBSOCKET, "42[\"e\"]", 40000, AGX_EIO_ACT_DELIVER);
    expect(&s, AGX_EIO_WEBSOCKET, "2", 40000, AGX_EIO_ACT_NONE); /* only servers ping */
    ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&s, 44999).kind);
    ASSERT_INT(AGX_EIO_ACT_TIMED_OUT, agx_eio_session_tick(&s, 45000).kind);
    ASSERT_INT(AGX_EIO_STATE_CLOSED, s.state);
    ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&s, 99999999).kind);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_WEBSOCKET, "3", 45001, &a));
}

TEST(server_upgrades_by_probe_and_upgrade_and_polls_until_then)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_server(&s, &terms, AGX_EIO_POLLING, 0);
    expect(&s, AGX_EIO_POLLING, "40{}", 1, AGX_EIO_ACT_DELIVER);
    ASSERT_OK(recv_text(&s, AGX_EIO_WEBSOCKET, "2probe", 2, &a));
    ASSERT_INT(AGX_EIO_ACT_PROBED, a.kind);
    expect_send(&a, AGX_EIO_WEBSOCKET, "3probe");
    ASSERT_INT(AGX_EIO_STATE_UPGRADING, s.state);
    ASSERT_INT(AGX_EIO_POLLING, agx_eio_session_via(&s));
    expect(&s, AGX_EIO_POLLING, "42[\"e\"]", 3, AGX_EIO_ACT_DELIVER);
    expect(&s, AGX_EIO_WEBSOCKET, "5", 4, AGX_EIO_ACT_UPGRADED);
    ASSERT_INT(AGX_EIO_WEBSOCKET, agx_eio_session_via(&s));
    expect(&s, AGX_EIO_WEBSOCKET, "42[\"e\"]", 5, AGX_EIO_ACT_DELIVER);
    expect(&s, AGX_EIO_POLLING, "42[\"e\"]", 6, AGX_EIO_ACT_DELIVER); /* was under way */
    a = agx_eio_session_tick(&s, 25000);
    expect_send(&a, AGX_EIO_WEBSOCKET, "2");
}

TEST(server_goes_on_polling_when_an_upgrade_fails)
{
    static const char *const wrong[] = { "40{}", "2", "5", "3probe", "1" };
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_server(&s, &terms, AGX_EIO_POLLING, 0);
    for (size_t i = 0; i < AGX_ARRAY_LEN(wrong); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_WEBSOCKET, wrong[i], 1, &a));
        ASSERT_INT(AGX_EIO_STATE_POLLING, s.state);
    }
    expect(&s, AGX_EIO_WEBSOCKET, "2probe", 2, AGX_EIO_ACT_PROBED);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_WEBSOCKET, "40{}", 3, &a));
    ASSERT_INT(AGX_EIO_STATE_POLLING, s.state);
    expect(&s, AGX_EIO_WEBSOCKET, "2probe", 4, AGX_EIO_ACT_PROBED);
    agx_eio_session_probe_failed(&s);
    ASSERT_INT(AGX_EIO_STATE_POLLING, s.state);
    expect(&s, AGX_EIO_POLLING, "40{}", 5, AGX_EIO_ACT_DELIVER);
    agx_eio_session_probe_failed(&s); /* nothing to fail */
    ASSERT_INT(AGX_EIO_STATE_POLLING, s.state);
}

TEST(packet_without_a_place_closes_the_session_with_a_message)
{
    static const char *const wrong[] = { "0{}", "5" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(wrong); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_eio_session s;
        struct agx_eio_packet p;
        struct agx_eio_action a;

        agx_eio_session_init_server(&s, &terms, AGX_EIO_WEBSOCKET, 0);
        ASSERT_OK(agx_eio_decode_text(agx_str_from(wrong[i]), &p, NULL));
        ASSERT_CODE(AGX_INVALID_ARGUMENT,
                    agx_eio_session_recv(&s, AGX_EIO_WEBSOCKET, &p, 1, &a, &err));
        ASSERT_MESSAGE(err, "no place in this session");
        ASSERT_INT(AGX_EIO_STATE_CLOSED, s.state);
    }
}

TEST(close_packet_closes_the_session)
{
    struct agx_eio_session s;

    agx_eio_session_init_server(&s, &terms, AGX_EIO_POLLING, 0);
    expect(&s, AGX_EIO_POLLING, "6", 1, AGX_EIO_ACT_NONE);
    expect(&s, AGX_EIO_POLLING, "1", 1, AGX_EIO_ACT_CLOSED);
    ASSERT_INT(AGX_EIO_STATE_CLOSED, s.state);
    ASSERT_UINT(UINT64_MAX, s.deadline_ms);
}

TEST(client_opens_upgrades_and_answers_pings)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_client(&s, 5000, 0);
    ASSERT_OK(recv_text(&s, AGX_EIO_POLLING, OPEN_TEXT, 10, &a));
    ASSERT_INT(AGX_EIO_ACT_OPENED, a.kind);
    ASSERT_STR(AGX_STR("abc"), a.open.sid);
    ASSERT_TRUE(a.open.upgrade_websocket);
    ASSERT_UINT(45010, s.deadline_ms);
    a = agx_eio_session_probe(&s);
    expect_send(&a, AGX_EIO_WEBSOCKET, "2probe");
    expect(&s, AGX_EIO_POLLING, "6", 11, AGX_EIO_ACT_NONE);
    ASSERT_OK(recv_text(&s, AGX_EIO_WEBSOCKET, "3probe", 12, &a));
    ASSERT_INT(AGX_EIO_ACT_UPGRADED, a.kind);
    expect_send(&a, AGX_EIO_WEBSOCKET, "5");
    ASSERT_OK(recv_text(&s, AGX_EIO_WEBSOCKET, "2", 13, &a));
    ASSERT_INT(AGX_EIO_ACT_SEND, a.kind);
    expect_send(&a, AGX_EIO_WEBSOCKET, "3");
}

TEST(client_gives_up_after_interval_and_timeout_of_silence)
{
    struct agx_eio_session s;

    agx_eio_session_init_client(&s, 5000, 0);
    expect(&s, AGX_EIO_WEBSOCKET, OPEN_TEXT, 0, AGX_EIO_ACT_OPENED);
    ASSERT_INT(AGX_EIO_STATE_WEBSOCKET, s.state);
    ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&s, 44999).kind);
    expect(&s, AGX_EIO_WEBSOCKET, "42[\"e\"]", 44999, AGX_EIO_ACT_DELIVER);
    ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&s, 89998).kind);
    ASSERT_INT(AGX_EIO_ACT_TIMED_OUT, agx_eio_session_tick(&s, 89999).kind);
}

TEST(client_without_an_open_packet_times_out_and_refuses_all_else)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_client(&s, 5000, 100);
    ASSERT_INT(AGX_EIO_ACT_TIMED_OUT, agx_eio_session_tick(&s, 5100).kind);
    agx_eio_session_init_client(&s, 5000, 100);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_POLLING, "40{}", 101, &a));
    ASSERT_INT(AGX_EIO_STATE_CLOSED, s.state);
    agx_eio_session_init_client(&s, 5000, 100);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_POLLING, "0{}", 101, &a));
    ASSERT_INT(AGX_EIO_STATE_CLOSED, s.state);
}

TEST(client_goes_on_polling_when_the_probe_is_not_answered)
{
    struct agx_eio_session s;
    struct agx_eio_action a;

    agx_eio_session_init_client(&s, 5000, 0);
    expect(&s, AGX_EIO_POLLING, OPEN_TEXT, 0, AGX_EIO_ACT_OPENED);
    (void)agx_eio_session_probe(&s);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, recv_text(&s, AGX_EIO_WEBSOCKET, "3", 1, &a));
    ASSERT_INT(AGX_EIO_STATE_POLLING, s.state);
    expect(&s, AGX_EIO_POLLING, "2", 2, AGX_EIO_ACT_SEND);
}

/* A server and a client with a wire between them: neither gives up as long as both tick. */
TEST(server_and_client_keep_each_other_alive)
{
    struct agx_eio_session server, client;
    struct agx_eio_action a;
    unsigned pings = 0;

    agx_eio_session_init_server(&server, &terms, AGX_EIO_WEBSOCKET, 0);
    agx_eio_session_init_client(&client, 5000, 0);
    expect(&client, AGX_EIO_WEBSOCKET, OPEN_TEXT, 0, AGX_EIO_ACT_OPENED);
    for (uint64_t now = 0; now < 1000000; now += 1000) {
        ASSERT_INT(AGX_EIO_ACT_NONE, agx_eio_session_tick(&client, now).kind);
        a = agx_eio_session_tick(&server, now);
        if (a.kind == AGX_EIO_ACT_NONE)
            continue;
        ASSERT_OK(agx_eio_session_recv(&client, AGX_EIO_WEBSOCKET, &a.packet, now, &a, NULL));
        ASSERT_INT(AGX_EIO_ACT_SEND, a.kind);
        ASSERT_OK(agx_eio_session_recv(&server, AGX_EIO_WEBSOCKET, &a.packet, now, &a, NULL));
        pings++;
    }
    ASSERT_UINT(39, pings);
}

#include "codec/eio_open.h"
#include "tests/support/test.h"

TEST(open_packet_encodes_and_decodes_as_the_peer_writes_it)
{
    static const char text[] =
        "{\"sid\":\"ZfxOKbn_ojMvHoR-AAAA\",\"upgrades\":[\"websocket\"],\"pingTimeout\":20000,"
        "\"pingInterval\":25000,\"maxPayload\":1000000}";
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(256);
    struct agx_eio_open o;

    ASSERT_OK(agx_eio_open_decode(agx_str_from(text), &o, NULL));
    ASSERT_STR(AGX_STR("ZfxOKbn_ojMvHoR-AAAA"), o.sid);
    ASSERT_TRUE(o.upgrade_websocket);
    ASSERT_UINT(20000, o.ping_timeout_ms);
    ASSERT_UINT(25000, o.ping_interval_ms);
    ASSERT_UINT(1000000, o.max_payload);
    ASSERT_OK(agx_eio_open_encode(&b, &o));
    ASSERT_STR(agx_str_from(text), agx_buf_peek(&b));
}

TEST(open_packet_in_another_order_with_unknown_members_decodes)
{
    struct agx_eio_open o;

    ASSERT_OK(agx_eio_open_decode(
        AGX_STR(" { \"x\" : {\"sid\":[1]}, \"pingInterval\":2000,\"pingTimeout\":1000,"
                "\"upgrades\":[\"webtransport\"], \"sid\":\"a\" }"),
        &o, NULL));
    ASSERT_STR(AGX_STR("a"), o.sid);
    ASSERT_FALSE(o.upgrade_websocket);
    ASSERT_UINT(0, o.max_payload);
}

TEST(open_packet_that_is_wrong_is_invalid_and_names_the_member)
{
#define REST ",\"upgrades\":[],\"pingTimeout\":1,\"pingInterval\":1}"
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "malformed" },
        { "[]", "not an object" },
        { "{}", "lacks 'sid'" },
        { "{\"sid\":\"a\"" REST "x", "malformed" },
        { "{\"sid\":\"\"" REST, "'sid'" },
        { "{\"sid\":7" REST, "'sid'" },
        { "{\"sid\":\"a b\"" REST, "'sid'" },
        { "{\"sid\":\"a&b\"" REST, "'sid'" },
        { "{\"sid\":\"\\u0061\"" REST, "'sid'" },
        { "{\"sid\":\"a\",\"sid\":\"b\"" REST, "'sid'" },
        { "{\"sid\":\"a\",\"upgrades\":{},\"pingTimeout\":1,\"pingInterval\":1}", "'upgrades'" },
        { "{\"sid\":\"a\",\"upgrades\":[1],\"pingTimeout\":1,\"pingInterval\":1}", "'upgrades'" },
        { "{\"sid\":\"a\",\"upgrades\":[],\"pingTimeout\":0,\"pingInterval\":1}", "'pingTimeout'" },
        { "{\"sid\":\"a\",\"upgrades\":[],\"pingTimeout\":1.5,\"pingInterval\":1}",
          "'pingTimeout'" },
        { "{\"sid\":\"a\",\"upgrades\":[],\"pingTimeout\":1,\"pingInterval\":4294967296}",
          "'pingInterval'" },
        { "{\"sid\":\"a\",\"upgrades\":[],\"pingTimeout\":1}", "lacks 'pingInterval'" },
        { "{\"maxPayload\":-1,\"sid\":\"a\"" REST, "'maxPayload'" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_eio_open o;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_eio_open_decode(agx_str_from(bad[i].text), &o, &err));
        ASSERT_MESSAGE(err, bad[i].words);
    }
}

TEST(open_packet_past_max_is_resource_exhausted_and_appends_nothing)
{
    const struct agx_eio_open o = { AGX_STR("abc"), true, 1, 2, 3 };

    for (size_t max = 0; max < 85; max++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(max);

        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_open_encode(&b, &o));
        ASSERT_UINT(0, b.len);
    }
}

#include "tests/support/wire.h"
#include "wire/status_details.h"

TEST(status_with_a_reason_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_status s = { .code = AGX_NOT_FOUND,
                            .message = AGX_STR("sandbox \xc3\xa4 was not found"),
                            .reason = AGX_REASON_SANDBOX_NOT_FOUND,
                            .id = "\xc3\xa4" };
    struct agx_status_view v;

    ASSERT_OK(agx_status_encode(&out, &s));
    ASSERT_OK(agx_status_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_INT(AGX_NOT_FOUND, v.code);
    ASSERT_CSTR("sandbox \xc3\xa4 was not found", v.message);
    ASSERT_CSTR("SANDBOX_NOT_FOUND", v.reason);
    ASSERT_CSTR("agents-sandbox", v.domain);
    ASSERT_UINT(1, v.metadata.len);
    ASSERT_CSTR("\xc3\xa4", agx_pairs_get(&v.metadata, "sandbox_id"));
    agx_status_view_done(&v);
}

TEST(status_of_an_expired_sequence_has_the_number_too)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_status s = { .code = AGX_OUT_OF_RANGE,
                            .message = AGX_STR("m"),
                            .reason = AGX_REASON_SEQUENCE_EXPIRED,
                            .id = "box-1",
                            .from_sequence = UINT64_MAX };
    struct agx_status_view v;

    ASSERT_OK(agx_status_encode(&out, &s));
    ASSERT_OK(agx_status_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("SANDBOX_EVENT_SEQUENCE_EXPIRED", v.reason);
    ASSERT_UINT(2, v.metadata.len);
    ASSERT_CSTR("box-1", agx_pairs_get(&v.metadata, "sandbox_id"));
    ASSERT_CSTR("18446744073709551615", agx_pairs_get(&v.metadata, "from_sequence"));
    agx_status_view_done(&v);
}

TEST(status_for_every_reason_names_it_and_its_id)
{
    for (int reason = 1; reason < AGX_REASON_COUNT; reason++) {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_status s = { .code = AGX_ABORTED, .reason = reason, .id = "an-id" };
        struct agx_status_view v;

        ASSERT_OK(agx_status_encode(&out, &s));
        ASSERT_OK(agx_status_view_decode(&v, agx_buf_peek(&out), NULL));
        ASSERT_CSTR(agx_reason_name(reason), v.reason);
        ASSERT_CSTR("an-id", agx_pairs_get(&v.metadata, agx_reason_id_key(reason)));
        ASSERT_CSTR("", v.message);
        agx_status_view_done(&v);
    }
}

TEST(status_without_an_error_info_has_no_reason)
{
    struct agx_status_view v;

    /* code: 5, details { type_url: "a/b" value: "x" } */
    ASSERT_OK(agx_status_view_decode(&v, AGX_STR("\x08\x05\x1a\x08\x0a\x03\x61/b\x12\x01x"), NULL));
    ASSERT_INT(5, v.code);
    ASSERT_NULL(v.reason);
    ASSERT_UINT(0, v.metadata.len);
    agx_status_view_done(&v);
}

TEST(status_that_is_none_is_the_servers_fault)
{
    struct agx_status_view v;

    ASSERT_CODE(AGX_INTERNAL, agx_status_view_decode(&v, AGX_STR("\x0a\x01x"), NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_status_view_decode(&v, AGX_STR("\x12\x01\xff"), NULL));
    /* details { type_url: "x/google.rpc.ErrorInfo" value: "\x0a" } */
    ASSERT_CODE(AGX_INTERNAL,
                agx_status_view_decode(
                    &v, AGX_STR("\x1a\x1b\x0a\x16x/google.rpc.ErrorInfo\x12\x01\x0a"), NULL));
    ASSERT_NULL(v.reason);
}

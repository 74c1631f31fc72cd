#include "codec/sio.h"
#include "tests/support/test.h"

static const struct agx_sio_limits defaults = AGX_SIO_LIMITS_INIT;

TEST(packet_of_each_type_decodes_and_encodes_to_the_same_text)
{
    static const struct {
        const char *text;
        struct agx_sio_packet want;
    } cases[] = {
        { "0", { AGX_SIO_CONNECT, false, 0, 0, { "/", 1 }, { "", 0 } } },
        { "0{}", { AGX_SIO_CONNECT, false, 0, 0, { "/", 1 }, { "{}", 2 } } },
        { "0/a,", { AGX_SIO_CONNECT, false, 0, 0, { "/a", 2 }, { "", 0 } } },
        { "0/a,{}", { AGX_SIO_CONNECT, false, 0, 0, { "/a", 2 }, { "{}", 2 } } },
        { "1", { AGX_SIO_DISCONNECT, false, 0, 0, { "/", 1 }, { "", 0 } } },
        { "2[\"e\",1]", { AGX_SIO_EVENT, false, 0, 0, { "/", 1 }, { "[\"e\",1]", 7 } } },
        { "2[7]", { AGX_SIO_EVENT, false, 0, 0, { "/", 1 }, { "[7]", 3 } } },
        { "212[\"e\"]", { AGX_SIO_EVENT, true, 12, 0, { "/", 1 }, { "[\"e\"]", 5 } } },
        { "2/a,0[\"e\"]", { AGX_SIO_EVENT, true, 0, 0, { "/a", 2 }, { "[\"e\"]", 5 } } },
        { "218446744073709551615[\"e\"]",
          { AGX_SIO_EVENT, true, UINT64_MAX, 0, { "/", 1 }, { "[\"e\"]", 5 } } },
        { "312[]", { AGX_SIO_ACK, true, 12, 0, { "/", 1 }, { "[]", 2 } } },
        { "4\"no\"", { AGX_SIO_CONNECT_ERROR, false, 0, 0, { "/", 1 }, { "\"no\"", 4 } } },
        { "4/a,{\"message\":\"no\"}",
          { AGX_SIO_CONNECT_ERROR, false, 0, 0, { "/a", 2 }, { "{\"message\":\"no\"}", 16 } } },
        { "51-/a,3[\"e\",{}]",
          { AGX_SIO_BINARY_EVENT, true, 3, 1, { "/a", 2 }, { "[\"e\",{}]", 8 } } },
        { "50-[\"e\"]", { AGX_SIO_BINARY_EVENT, false, 0, 0, { "/", 1 }, { "[\"e\"]", 5 } } },
        { "62-3[{},{}]", { AGX_SIO_BINARY_ACK, true, 3, 2, { "/", 1 }, { "[{},{}]", 7 } } },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        const struct agx_sio_packet *want = &cases[i].want;
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
        struct agx_sio_packet p;

        ASSERT_OK(agx_sio_decode(agx_str_from(cases[i].text), &defaults, &p, NULL));
        ASSERT_INT(want->type, p.type);
        ASSERT_INT(want->has_id, p.has_id);
        ASSERT_UINT(want->id, p.id);
        ASSERT_UINT(want->attachments, p.attachments);
        ASSERT_STR(want->nsp, p.nsp);
        ASSERT_STR(want->data, p.data);
        ASSERT_OK(agx_sio_encode(&b, &p));
        ASSERT_STR(agx_str_from(cases[i].text), agx_buf_peek(&b));
    }
}

TEST(namespace_may_end_with_the_packet_and_slash_may_be_written_out)
{
    struct agx_sio_packet p;

    ASSERT_OK(agx_sio_decode(AGX_STR("0/admin"), &defaults, &p, NULL));
    ASSERT_STR(AGX_STR("/admin"), p.nsp);
    ASSERT_OK(agx_sio_decode(AGX_STR("2/,[\"e\"]"), &defaults, &p, NULL));
    ASSERT_STR(AGX_STR("/"), p.nsp);
}

TEST(packet_that_is_malformed_is_invalid_with_a_message)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "empty" },
        { "7", "type 0x37" },
        { "x", "type" },
        { "0[]", "object" },
        { "0null", "object" },
        { "0{", "malformed JSON" },
        { "0{}x", "malformed JSON" },
        { "05{}", "unexpected ack id" },
        { "0admin,{}", "malformed JSON" },
        { "1{}", "unexpected data" },
        { "11", "unexpected ack id" },
        { "2", "no data" },
        { "212", "no data" },
        { "2{}", "array" },
        { "2[]", "name" },
        { "2[null]", "name" },
        { "2[{}]", "name" },
        { "2[[\"e\"]]", "name" },
        { "201[\"e\"]", "bad ack id" },
        { "218446744073709551616[\"e\"]", "bad ack id" },
        { "2-1[\"e\"]", "malformed JSON" },
        { "3[]", "no ack id" },
        { "31", "no data" },
        { "31{}", "array" },
        { "4", "no data" },
        { "41", "unexpected ack id" },
        { "4[]", "object or a string" },
        { "5[\"e\"]", "attachments" },
        { "5-[\"e\"]", "attachments" },
        { "51[\"e\"]", "attachments" },
        { "501-[\"e\"]", "attachments" },
        { "599999999999999999999-[\"e\"]", "attachments" },
        { "51-[]", "name" },
        { "61-[{}]", "no ack id" },
        { "2/\xff,[\"e\"]", "UTF-8" },
        { "2[\"\xff\"]", "UTF-8" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_sio_packet p;

        if (agx_sio_decode(agx_str_from(bad[i].text), &defaults, &p, &err) != -AGX_INVALID_ARGUMENT)
            FAIL("'%s' was accepted", bad[i].text);
        ASSERT_MESSAGE(err, bad[i].words);
    }
}

TEST(packet_past_a_limit_is_resource_exhausted_and_at_it_fits)
{
    const struct agx_sio_limits limits = { .header_max = 12, .attachments_max = 2, .depth_max = 2 };
    static const struct {
        const char *good, *bad, *words;
    } cases[] = {
        { "2[\"1234567\"]", "2[\"123456789\"]", "limit of 12" },
        { "52-[\"e\"]", "53-[\"e\"]", "3 attachments, more than 2" },
        { "2[\"e\",[]]", "2[\"e\",[[]]]", "deeper than 2" },
    };
    struct agx_sio_packet p;

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_OK(agx_sio_decode(agx_str_from(cases[i].good), &limits, &p, NULL));
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                    agx_sio_decode(agx_str_from(cases[i].bad), &limits, &p, &err));
        ASSERT_MESSAGE(err, cases[i].words);
    }
}

TEST(encode_past_max_is_resource_exhausted_and_appends_nothing)
{
    const struct agx_sio_packet p = { AGX_SIO_BINARY_EVENT, true, 12, 1, AGX_STR("/a"),
                                      AGX_STR("[\"e\"]") };

    for (size_t max = 0; max < 13; max++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(max), c = AGX_BUF_INIT(max * 2);

        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_sio_encode(&b, &p));
        ASSERT_UINT(0, b.len);
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_sio_encode_binary_event(&c, AGX_STR("e")));
        ASSERT_UINT(0, c.len);
    }
}

TEST(binary_event_encodes_and_decodes_without_a_parser)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
    struct agx_str name;

    ASSERT_OK(agx_sio_encode_binary_event(&b, AGX_STR("unary:result")));
    ASSERT_STR(AGX_STR("51-[\"unary:result\",{\"_placeholder\":true,\"num\":0}]"),
               agx_buf_peek(&b));
    ASSERT_TRUE(agx_sio_decode_binary_event(agx_buf_peek(&b), &name));
    ASSERT_STR(AGX_STR("unary:result"), name);
}

TEST(binary_event_with_a_name_to_escape_is_left_to_the_general_path)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
    struct agx_sio_packet p;
    struct agx_str name;

    ASSERT_OK(agx_sio_encode_binary_event(&b, AGX_STR("a\"b")));
    ASSERT_FALSE(agx_sio_decode_binary_event(agx_buf_peek(&b), &name));
    ASSERT_OK(agx_sio_decode(agx_buf_peek(&b), &defaults, &p, NULL));
    ASSERT_STR(AGX_STR("[\"a\\\"b\",{\"_placeholder\":true,\"num\":0}]"), p.data);
}

TEST(binary_event_of_any_other_form_is_left_to_the_general_path)
{
    static const char *const other[] = {
        "",
        "51-[\"",
        "51-[\",{\"_placeholder\":true,\"num\":0}]",
        "52-[\"e\",{\"_placeholder\":true,\"num\":0}]",
        "51-1[\"e\",{\"_placeholder\":true,\"num\":0}]",
        "51-[\"e\",{\"_placeholder\":true,\"num\":1}]",
        "51-[\"e\", {\"_placeholder\":true,\"num\":0}]",
        "51-[\"e\",\"f\",{\"_placeholder\":true,\"num\":0}]",
        "51-[\"e\\\",{\"_placeholder\":true,\"num\":0}]",
        "51-[\"\n\",{\"_placeholder\":true,\"num\":0}]",
    };
    struct agx_str name;

    for (size_t i = 0; i < AGX_ARRAY_LEN(other); i++)
        ASSERT_FALSE(agx_sio_decode_binary_event(agx_str_from(other[i]), &name));
}

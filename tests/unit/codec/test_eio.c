#include "codec/eio.h"
#include "tests/support/test.h"

TEST(packet_of_each_type_decodes_and_encodes_to_the_same_text)
{
    static const struct {
        const char *text;
        enum agx_eio_type type;
        const char *data;
    } cases[] = {
        { "0{}", AGX_EIO_OPEN, "{}" },
        { "1", AGX_EIO_CLOSE, "" },
        { "2", AGX_EIO_PING, "" },
        { "2probe", AGX_EIO_PING, "probe" },
        { "3probe", AGX_EIO_PONG, "probe" },
        { "40{}", AGX_EIO_MESSAGE, "0{}" },
        { "4\xc3\xa9", AGX_EIO_MESSAGE, "\xc3\xa9" },
        { "5", AGX_EIO_UPGRADE, "" },
        { "6", AGX_EIO_NOOP, "" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
        struct agx_eio_packet p;

        ASSERT_OK(agx_eio_decode_text(agx_str_from(cases[i].text), &p, NULL));
        ASSERT_INT(cases[i].type, p.type);
        ASSERT_FALSE(p.binary);
        ASSERT_STR(agx_str_from(cases[i].data), p.data);
        ASSERT_OK(agx_eio_encode(&b, &p));
        ASSERT_STR(agx_str_from(cases[i].text), agx_buf_peek(&b));
    }
}

TEST(binary_message_is_a_message_packet_without_a_digit)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
    struct agx_eio_packet p = agx_eio_decode_binary(AGX_STR("\x00\xff"));

    ASSERT_INT(AGX_EIO_MESSAGE, p.type);
    ASSERT_TRUE(p.binary);
    ASSERT_OK(agx_eio_encode(&b, &p));
    ASSERT_STR(AGX_STR("\x00\xff"), agx_buf_peek(&b));
}

TEST(packet_that_is_empty_unknown_or_no_utf8_is_invalid)
{
    static const struct {
        struct agx_str text;
        const char *words;
    } bad[] = {
        { { "", 0 }, "empty" },
        { { "7", 1 }, "0x37" },
        { { "b", 1 }, "type" },
        { { "\x1e", 1 }, "type" },
        { { "4\xff", 2 }, "UTF-8" },
        { { "\xff", 1 }, "0xff" },
        { { "4\xed\xa0\x80", 4 }, "UTF-8" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_eio_packet p;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_eio_decode_text(bad[i].text, &p, &err));
        ASSERT_MESSAGE(err, bad[i].words);
    }
}

TEST(probe_is_told_from_a_plain_ping)
{
    struct agx_eio_packet ping = { AGX_EIO_PING, false, AGX_STR("") },
                          probe = { AGX_EIO_PING, false, AGX_EIO_PROBE };

    ASSERT_FALSE(agx_eio_is_probe(&ping, AGX_EIO_PING));
    ASSERT_TRUE(agx_eio_is_probe(&probe, AGX_EIO_PING));
    ASSERT_FALSE(agx_eio_is_probe(&probe, AGX_EIO_PONG));
}

TEST(encode_past_max_is_resource_exhausted_and_appends_nothing)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(4);
    struct agx_eio_packet p = { AGX_EIO_MESSAGE, false, AGX_STR("abcd") };

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_eio_encode(&b, &p));
    ASSERT_UINT(0, b.len);
    p.binary = true;
    ASSERT_OK(agx_eio_encode(&b, &p));
}

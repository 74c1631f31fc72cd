#include "codec/grpc_meta.h"

#include "tests/support/test.h"

static void check_message(struct agx_str text, struct agx_str value)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);

    ASSERT_OK(agx_grpc_message_encode(&b, text));
    ASSERT_STR(value, agx_buf_peek(&b));
    agx_buf_clear(&b);
    ASSERT_OK(agx_grpc_message_decode(&b, value));
    ASSERT_STR(text, agx_buf_peek(&b));
}

TEST(message_escapes_percent_and_what_is_not_printable_ascii)
{
    check_message(AGX_STR(""), AGX_STR(""));
    check_message(AGX_STR(" plain ~ text"), AGX_STR(" plain ~ text"));
    check_message(AGX_STR("100%"), AGX_STR("100%25"));
    check_message(AGX_STR("a\nb\0c\x7f"), AGX_STR("a%0Ab%00c%7F"));
    check_message(AGX_STR("\xc3\xa9\xe2\x82\xac"), AGX_STR("%C3%A9%E2%82%AC"));
}

TEST(message_decode_passes_malformed_escapes_through)
{
    static const struct {
        const char *value, *text;
    } cases[] = {
        { "%", "%" },         { "100%", "100%" },
        { "%4", "%4" },       { "%zz", "%zz" },
        { "%4g!", "%4g!" },   { "%%41", "%A" },
        { "%41", "A" },       { "%e2%82%ac", "\xe2\x82\xac" },
        { "\xe9t", "\xe9t" }, { "a%2", "a%2" },
        { "%C3", "\xc3" },    { "%+1", "%+1" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);

        ASSERT_OK(agx_grpc_message_decode(&b, agx_str_from(cases[i].value)));
        ASSERT_STR(agx_str_from(cases[i].text), agx_buf_peek(&b));
    }
}

TEST(message_that_does_not_fit_leaves_the_buffer_as_it_was)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(6);

    ASSERT_OK(agx_buf_append(&b, AGX_STR("kept")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_message_encode(&b, AGX_STR("\n")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_message_decode(&b, AGX_STR("%0A")));
    ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&b));
}

TEST(timeout_parse_knows_every_unit)
{
    static const struct {
        const char *value;
        uint64_t ns;
    } cases[] = {
        { "0n", 0 },
        { "1n", 1 },
        { "3u", 3000 },
        { "100m", 100000000 },
        { "5S", 5000000000 },
        { "2M", 120000000000 },
        { "1H", 3600000000000 },
        { "99999999n", 99999999 },
        { "00000007S", 7000000000 },
        { "5124095H", 18446742000000000000u },
        { "5124096H", UINT64_MAX },
        { "99999999H", UINT64_MAX },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        uint64_t ns = 42;

        ASSERT_OK(agx_grpc_timeout_parse(agx_str_from(cases[i].value), &ns, NULL));
        ASSERT_UINT(cases[i].ns, ns);
    }
}

TEST(timeout_parse_of_bad_text_is_internal_and_names_it)
{
    static const char *const bad[] = { "",    "m",   "5",    "5s",   "-5S", "+5S", "5 S",
                                       " 5S", "5SS", "5.5S", "0x5S", "5h",  "S5" };
    uint64_t ns = 42;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INTERNAL, agx_grpc_timeout_parse(agx_str_from(bad[i]), &ns, &err));
        ASSERT_MESSAGE(err, "malformed grpc-timeout '");
        ASSERT_MESSAGE(err, bad[i]);
        ASSERT_UINT(42, ns);
    }
}

TEST(timeout_parse_of_nine_digits_is_internal)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint64_t ns;

    ASSERT_CODE(AGX_INTERNAL, agx_grpc_timeout_parse(AGX_STR("100000000n"), &ns, &err));
    ASSERT_MESSAGE(err, "malformed grpc-timeout of 10 characters");
}

TEST(timeout_format_takes_the_nearest_unit_that_is_not_below)
{
    static const struct {
        uint64_t ns;
        const char *value;
    } cases[] = {
        { 0, "0H" },
        { 1, "1n" },
        { 99999999, "99999999n" },
        { 100000000, "100m" },
        { 100000001, "100001u" },
        { 5000000000, "5S" },
        { 4999000001, "4999001u" },
        { 60000000000, "1M" },
        { 61000000000, "61S" },
        { 99999999000, "99999999u" },
        { 99999999001, "100S" },
        { 7200000000000, "2H" },
        { UINT64_MAX, "5124096H" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);

        ASSERT_OK(agx_grpc_timeout_format(&b, cases[i].ns));
        ASSERT_STR(agx_str_from(cases[i].value), agx_buf_peek(&b));
    }
}

TEST(bin_value_is_written_without_padding)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);

    ASSERT_OK(agx_grpc_bin_encode(&b, AGX_STR("\0\xff")));
    ASSERT_STR(AGX_STR("AP8"), agx_buf_peek(&b));
}

TEST(bin_next_takes_padded_and_bare_values_between_commas)
{
    struct agx_str rest = AGX_STR("Zm8=,Zm8, Zg==\t,,Zm9v");
    static const char *const want[] = { "fo", "fo", "f", "", "foo" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(want); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);

        ASSERT_INT(1, agx_grpc_bin_next(&rest, &b, NULL));
        ASSERT_STR(agx_str_from(want[i]), agx_buf_peek(&b));
    }
    ASSERT_INT(0, agx_grpc_bin_next(&rest, NULL, NULL));
}

TEST(bin_next_of_what_is_not_base64_is_invalid_and_goes_on_behind_it)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str rest = AGX_STR("Z*8,Zm8");

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_grpc_bin_next(&rest, &b, &err));
    ASSERT_MESSAGE(err, "base64");
    ASSERT_UINT(0, b.len);
    ASSERT_INT(1, agx_grpc_bin_next(&rest, &b, NULL));
    ASSERT_STR(AGX_STR("fo"), agx_buf_peek(&b));
}

TEST(key_is_valid_for_lower_case_digits_and_three_signs)
{
    static const char *const bad[] = {
        "", "X-Trace", "x trace", ":path", "x\xc3\xa9", "x/y", "x,y"
    };

    ASSERT_TRUE(agx_grpc_key_is_valid(AGX_STR("x-trace_id.v1-bin")));
    ASSERT_FALSE(agx_grpc_key_is_valid(AGX_STR("x\0y")));
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_FALSE(agx_grpc_key_is_valid(agx_str_from(bad[i])));
}

TEST(key_suffix_and_prefix_say_binary_and_reserved)
{
    ASSERT_TRUE(agx_grpc_key_is_bin(AGX_STR("grpc-status-details-bin")));
    ASSERT_TRUE(agx_grpc_key_is_bin(AGX_STR("-bin")));
    ASSERT_FALSE(agx_grpc_key_is_bin(AGX_STR("bin")));
    ASSERT_FALSE(agx_grpc_key_is_bin(AGX_STR("x-bin-y")));
    ASSERT_TRUE(agx_grpc_key_is_reserved(AGX_STR("grpc-timeout")));
    ASSERT_FALSE(agx_grpc_key_is_reserved(AGX_STR("grpc")));
    ASSERT_FALSE(agx_grpc_key_is_reserved(AGX_STR("x-grpc-timeout")));
}

TEST(status_round_trips_for_every_code)
{
    for (int code = AGX_OK; code <= AGX_UNAUTHENTICATED; code++) {
        const char *text = agx_grpc_status_text((enum agx_code)code);

        ASSERT_INT(code, agx_grpc_status_parse(agx_str_from(text)));
    }
    ASSERT_CSTR("16", agx_grpc_status_text(AGX_UNAUTHENTICATED));
    ASSERT_CSTR("2", agx_grpc_status_text((enum agx_code)17));
}

TEST(status_parse_of_what_is_no_code_is_unknown)
{
    static const char *const bad[] = { "", "17", "-1", "x", "1 ", "99999999999999999999" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_INT(AGX_UNKNOWN, agx_grpc_status_parse(agx_str_from(bad[i])));
}

TEST(content_type_is_ok_for_grpc_with_proto_and_parameters_only)
{
    static const char *const good[] = { "application/grpc", "application/grpc+proto",
                                        "application/grpc;charset=utf-8",
                                        "application/grpc+proto ; a=b", "Application/GRPC" };
    static const char *const bad[] = { "",
                                       "application/grpc-web",
                                       "application/grpc+json",
                                       "application/grpcx",
                                       "application/json",
                                       "text/html" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++)
        ASSERT_TRUE(agx_grpc_content_type_is_ok(agx_str_from(good[i])));
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_FALSE(agx_grpc_content_type_is_ok(agx_str_from(bad[i])));
    ASSERT_FALSE(agx_grpc_content_type_is_ok((struct agx_str){ NULL, 0 }));
}

TEST(encoding_check_refuses_compression_as_unimplemented)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_grpc_encoding_check(AGX_STR(""), NULL));
    ASSERT_OK(agx_grpc_encoding_check(AGX_STR("identity"), NULL));
    ASSERT_CODE(AGX_UNIMPLEMENTED, agx_grpc_encoding_check(AGX_STR("gzip"), &err));
    ASSERT_MESSAGE(err, "'gzip'");
}

#include "codec/mp_json.h"
#include "tests/support/test.h"

/* The JSON of msgpack bytes, or a failed test. */
static void expect_json(const char *want, struct agx_str msgpack)
{
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(10000);
    struct agx_mp_reader r;

    ASSERT_OK(agx_mp_reader_init(&r, msgpack, &limits, NULL));
    ASSERT_OK(agx_mp_to_json(&r, &out, NULL));
    ASSERT_TRUE(agx_mp_at_end(&r));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

/* JSON to msgpack and back gives `want`. */
static void expect_round(const char *json, const char *want)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf mp = AGX_BUF_INIT(10000);

    ASSERT_OK(agx_mp_from_json(&mp, agx_str_from(json), AGX_DEPTH_MAX, &err));
    expect_json(want, agx_buf_peek(&mp));
}

static void expect_failure(const char *json, enum agx_code code, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf mp = AGX_BUF_INIT(10000);

    ASSERT_OK(agx_buf_push(&mp, 7));
    ASSERT_CODE(code, agx_mp_from_json(&mp, agx_str_from(json), AGX_DEPTH_MAX, &err));
    ASSERT_MESSAGE(err, words);
    ASSERT_UINT(1, mp.len);
}

TEST(mp_json_scalars_come_back_as_they_were)
{
    expect_round("null", "null");
    expect_round(" true ", "true");
    expect_round("false", "false");
    expect_round("0", "0");
    expect_round("-1", "-1");
    expect_round("18446744073709551615", "18446744073709551615");
    expect_round("-9223372036854775808", "-9223372036854775808");
    expect_round("0.1", "0.1");
    expect_round("1e300", "1e+300");
    expect_round("1.0", "1.0");
    expect_round("\"a\\u00e9\\n\\\"\"", "\"a\xc3\xa9\\u000a\\\"\"");
}

TEST(mp_json_containers_come_back_as_they_were)
{
    expect_round("[]", "[]");
    expect_round("{}", "{}");
    expect_round("[1, [2, []], {\"a\": {\"b\": [null]}}]", "[1,[2,[]],{\"a\":{\"b\":[null]}}]");
}

TEST(mp_json_bytes_and_special_floats_have_their_own_objects)
{
    expect_json("{\"$bytes\":\"AAH/\"}", AGX_STR("\xc4\x03\x00\x01\xff"));
    expect_round("{\"$bytes\": \"AAH/\"}", "{\"$bytes\":\"AAH/\"}");
    expect_round("[{\"$float\":\"nan\"},{\"$float\":\"inf\"},{\"$float\":\"-inf\"}]",
                 "[{\"$float\":\"nan\"},{\"$float\":\"inf\"},{\"$float\":\"-inf\"}]");
    /* however they are spelled */
    expect_round("{\"\\u0024bytes\":\"AA\\u0048/\"}", "{\"$bytes\":\"AAH/\"}");
    expect_round("{\"$flo\\u0061t\":\"\\u006ean\"}", "{\"$float\":\"nan\"}");
    /* only an object of exactly that form is special */
    expect_round("{\"$bytes\":1}", "{\"$bytes\":1}");
    expect_round("{\"$bytes\":\"AA==\",\"x\":1}", "{\"$bytes\":\"AA==\",\"x\":1}");
}

TEST(mp_json_text_that_is_no_utf8_is_bytes)
{
    expect_json("{\"$bytes\":\"/w==\"}", AGX_STR("\xa1\xff"));
}

TEST(mp_json_keys_that_are_no_text_become_text)
{
    expect_json("{\"1\":true,\"null\":false}", AGX_STR("\x82\x01\xc3\xc0\xc2"));
}

TEST(mp_json_key_that_is_a_container_is_refused)
{
    const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(10000);
    struct agx_mp_reader r;

    ASSERT_OK(agx_mp_reader_init(&r, AGX_STR("\x81\x90\x01"), &limits, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_mp_to_json(&r, &out, &err));
    ASSERT_MESSAGE(err, "key of a map is of type array");
    ASSERT_UINT(0, out.len);
    ASSERT_TRUE(r.at == r.start);
}

TEST(mp_json_extensions_are_arrays_models_or_bytes)
{
    expect_json("{\"$ndarray\":{\"dtype\":\"<u2\",\"shape\":[1],\"data\":\"AQI=\"}}",
                AGX_STR("\xc7\x08\x01<u2|1\0\x01\x02"));
    expect_json("{\"a\":1}", AGX_STR("\xd6\x02\x81\xa1\x61\x01"));
    expect_json("{\"$ext\":[-1,\"AAAAAA==\"]}", AGX_STR("\xd6\xff\0\0\0\0"));
}

TEST(mp_json_malformed_text_is_refused_and_leaves_the_buffer)
{
    expect_failure("", AGX_INVALID_ARGUMENT, "value expected");
    expect_failure("[1,", AGX_INVALID_ARGUMENT, "value expected");
    expect_failure("{\"a\":1} x", AGX_INVALID_ARGUMENT, "offset");
    expect_failure("{\"$bytes\":\"?\"}", AGX_INVALID_ARGUMENT, "$bytes");
    expect_failure("{\"$bytes\":\"AA\\uAAAA\"}", AGX_INVALID_ARGUMENT, "$bytes");
    expect_failure("{\"$float\":\"one\"}", AGX_INVALID_ARGUMENT, "$float");
    expect_failure("18446744073709551616", AGX_OUT_OF_RANGE, "64 bits");
    expect_failure("-9223372036854775809", AGX_OUT_OF_RANGE, "64 bits");
    expect_failure("1e999", AGX_OUT_OF_RANGE, "range");
}

TEST(mp_json_too_deep_is_resource_exhausted)
{
    char text[300];

    memset(text, '[', AGX_DEPTH_MAX + 1);
    memset(text + AGX_DEPTH_MAX + 1, ']', AGX_DEPTH_MAX + 1);
    text[2 * (AGX_DEPTH_MAX + 1)] = '\0';
    expect_failure(text, AGX_RESOURCE_EXHAUSTED, "deep");
}

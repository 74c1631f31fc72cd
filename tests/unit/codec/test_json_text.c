#include "codec/json_text.h"
#include "tests/support/test.h"

static void check_quote(struct agx_str text, const char *quoted)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(256), back = AGX_BUF_INIT(256);
    struct agx_str q;

    ASSERT_OK(agx_json_text_quote(&b, text));
    q = agx_buf_peek(&b);
    ASSERT_STR(agx_str_from(quoted), q);
    ASSERT_OK(agx_json_text_unquote(&back, (struct agx_str){ q.ptr + 1, q.len - 2 }, NULL));
    ASSERT_STR(text, agx_buf_peek(&back));
}

TEST(quote_escapes_what_json_asks_for_and_unquote_reads_it_back)
{
    check_quote(AGX_STR(""), "\"\"");
    check_quote(AGX_STR("unary:result"), "\"unary:result\"");
    check_quote(AGX_STR("a\"b\\c"), "\"a\\\"b\\\\c\"");
    check_quote(AGX_STR("\n\x1f\0z"), "\"\\u000a\\u001f\\u0000z\"");
    check_quote(AGX_STR("\xc3\xa9\xf0\x9f\x98\x80/"), "\"\xc3\xa9\xf0\x9f\x98\x80/\"");
}

TEST(unquote_reads_every_escape)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);

    ASSERT_OK(agx_json_text_unquote(
        &b, AGX_STR("\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00."), NULL));
    ASSERT_STR(AGX_STR("\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80."), agx_buf_peek(&b));
}

TEST(unquote_of_a_bad_escape_is_invalid_and_appends_nothing)
{
    static const char *const bad[] = {
        "x\\",     "x\\q", "x\\u12", "x\\u12g4", "x\\ud800", "x\\ud800\\n1234", "x\\ud800\\u0041",
        "x\\udc00"
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_OK(agx_buf_append(&b, AGX_STR("kept")));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_text_unquote(&b, agx_str_from(bad[i]), &err));
        ASSERT_MESSAGE(err, "escape");
        ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&b));
    }
}

TEST(quote_and_unquote_past_max_are_resource_exhausted_and_append_nothing)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_buf_append(&b, AGX_STR("kept")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_json_text_quote(&b, AGX_STR("abc")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_json_text_quote(&b, AGX_STR("\n")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_json_text_unquote(&b, AGX_STR("ab\\ud83d\\ude00"), &err));
    ASSERT_MESSAGE(err, "too long");
    ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&b));
    ASSERT_OK(agx_json_text_quote(&b, AGX_STR("ab")));
}

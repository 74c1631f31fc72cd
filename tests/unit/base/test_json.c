#include "base/json.h"
#include "base/limits.h"
#include "tests/support/test.h"

static int parse(struct agx_str text, json_t **ret, struct agx_error **err)
{
    return agx_json_parse(text, AGX_JSON_MAX, AGX_DEPTH_MAX, ret, err);
}

static void check_same(const char *text, const char *want)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    _cleanup_json_ json_t *v = NULL;

    ASSERT_OK(parse(agx_str_from(text), &v, NULL));
    ASSERT_OK(agx_json_write(v, &b, NULL));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&b));
}

TEST(json_round_trips_compactly_and_in_order)
{
    check_same(" { \"b\" : [ 1 , 2.5, null ] ,\n\"a\":\"\\u00e4\\n\" } ",
               "{\"b\":[1,2.5,null],\"a\":\"\xc3\xa4\\n\"}");
    check_same("true", "true");
    check_same("\"x\"", "\"x\"");
    check_same("-9223372036854775808", "-9223372036854775808");
    check_same("[[],{}]", "[[],{}]");
}

TEST(json_parse_of_bad_text_says_what_and_where_and_quotes_nothing)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "the end of the text at byte" },
        { "{\"secret\":", "the end of the text at byte 10" },
        { "{\"secret\":1} x", "more than one value" },
        { "{\"secret\":1,\"secret\":2}", "a member for the second time" },
        { "[\"secret\\u0000\"]", "a NUL in a string" },
        { "{\"secret\\u0000\":1}", "a NUL in a string" },
        { "[\"secret\xff\"]", "text that is not UTF-8" },
        { "[secret]", "a syntax error at byte" },
        { "[1,]", "a syntax error" },
        { "{'a':1}", "a syntax error" },
        { "[01]", "a syntax error" },
        { "[NaN]", "a syntax error" },
        { "[\"\\ud800\"]", "a syntax error" },
        { "[99999999999999999999]", "a number that is too large" },
        { "[1e999]", "a number that is too large" },
        { "[\"a\nb\"]", "a syntax error" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        json_t *v = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, parse(agx_str_from(bad[i].text), &v, &err));
        ASSERT_MESSAGE(err, bad[i].why);
        ASSERT_NULL(strstr(err->message, "secret"));
        ASSERT_NULL(v);
    }
}

TEST(json_deeper_than_the_limit_is_resource_exhausted_and_at_it_parses)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_json_ json_t *v = NULL, *brackets = NULL;
    json_t *none = NULL;

    ASSERT_OK(agx_json_parse(AGX_STR("[{\"a\":[]}]"), 100, 3, &v, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_json_parse(AGX_STR("[{\"a\":[[]]}]"), 100, 3, &none, &err));
    ASSERT_MESSAGE(err, "nested deeper than 3 at byte 7");
    /* Brackets in strings do not count, also behind an escaped quote. */
    ASSERT_OK(agx_json_parse(AGX_STR("[\"[[\\\"[[\\\\\",[],[]]"), 100, 2, &brackets, NULL));
    ASSERT_NULL(none);
}

TEST(json_longer_than_the_limit_is_resource_exhausted)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_json_ json_t *v = NULL;

    ASSERT_OK(agx_json_parse(AGX_STR("[1,2]"), 5, 3, &v, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_json_parse(AGX_STR("[1,23]"), 5, 3, &v, &err));
    ASSERT_MESSAGE(err, "6 bytes is longer than 5");
}

TEST(json_write_past_the_buffers_max_keeps_its_content)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_json_ json_t *v = NULL;

    ASSERT_OK(parse(AGX_STR("[1,2,3]"), &v, NULL));
    ASSERT_OK(agx_buf_append(&b, AGX_STR("ab")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_json_write(v, &b, &err));
    ASSERT_MESSAGE(err, "no room for JSON in 6 bytes");
    ASSERT_STR(AGX_STR("ab"), agx_buf_peek(&b));
}

#define MEMBERS "{\"s\":\"text\",\"i\":5,\"b\":true,\"n\":null,\"o\":{},\"a\":[],\"f\":1.5}"

TEST(json_get_gives_members_of_the_right_type)
{
    _cleanup_json_ json_t *v = NULL;
    json_t *inner = NULL;
    struct agx_str s;
    int64_t i;
    bool b = false;

    ASSERT_OK(parse(AGX_STR(MEMBERS), &v, NULL));
    ASSERT_OK(agx_json_get_str(v, "s", &s, NULL));
    ASSERT_STR(AGX_STR("text"), s);
    ASSERT_OK(agx_json_get_int(v, "i", 5, 5, &i, NULL));
    ASSERT_INT(5, i);
    ASSERT_OK(agx_json_get_bool(v, "b", &b, NULL));
    ASSERT_TRUE(b);
    ASSERT_OK(agx_json_get_object(v, "o", &inner, NULL));
    ASSERT_TRUE(json_is_object(inner));
    ASSERT_OK(agx_json_get_array(v, "a", &inner, NULL));
    ASSERT_TRUE(json_is_array(inner));
    ASSERT_TRUE(agx_json_has(v, "s"));
    ASSERT_FALSE(agx_json_has(v, "n"));
    ASSERT_FALSE(agx_json_has(v, "none"));
    ASSERT_FALSE(agx_json_has(inner, "s"));
}

/* Each getter on a member of the wrong type: the message names member and type. */
static void check_wrong(const json_t *v, const char *key, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *str = NULL, *num = NULL, *boolean = NULL,
                                                *obj = NULL, *arr = NULL;
    json_t *inner = NULL;
    struct agx_str s;
    int64_t i;
    bool b;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_str(v, key, &s, &str));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_int(v, key, 0, 9, &i, &num));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_bool(v, key, &b, &boolean));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_object(v, key, &inner, &obj));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_array(v, key, &inner, &arr));
    ASSERT_MESSAGE(str, words);
    ASSERT_MESSAGE(num, words);
    ASSERT_MESSAGE(boolean, words);
    ASSERT_MESSAGE(obj, words);
    ASSERT_MESSAGE(arr, words);
    ASSERT_NULL(inner);
}

TEST(json_get_of_a_wrong_member_names_it_and_the_types)
{
    _cleanup_(agx_error_freep) struct agx_error *type = NULL, *range = NULL;
    _cleanup_json_ json_t *v = NULL;
    struct agx_str s;
    int64_t i = 7;

    ASSERT_OK(parse(AGX_STR(MEMBERS), &v, NULL));
    check_wrong(v, "n", "member 'n' is null, expected a");
    check_wrong(v, "f", "member 'f' is a fraction, expected a");
    check_wrong(v, "none", "member 'none' is missing");
    check_wrong(json_object_get(v, "a"), "x", "expected an object with member 'x'");
    check_wrong(NULL, "x", "expected an object with member 'x'");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_str(v, "i", &s, &type));
    ASSERT_MESSAGE(type, "member 'i' is a number, expected a string");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_get_int(v, "i", 6, 9, &i, &range));
    ASSERT_MESSAGE(range, "member 'i' is 5, expected 6 to 9");
    ASSERT_INT(7, i);
}

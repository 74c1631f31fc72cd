#include "core/json_optional.h"
#include "tests/support/test.h"

static json_t *object_of(const char *text)
{
    json_t *object = json_loads(text, 0, NULL);

    ASSERT_NOT_NULL(object);
    return object;
}

TEST(json_optional_that_is_missing_or_null_leaves_what_was_there)
{
    _cleanup_json_ json_t *o = object_of("{\"null\":null}");
    _cleanup_free_ char *text = strdup("before");
    struct agx_words words = { 0 };

    ASSERT_OK(agx_json_optional_text(o, "none", &text, NULL));
    ASSERT_OK(agx_json_optional_text(o, "null", &text, NULL));
    ASSERT_CSTR("before", text);
    ASSERT_OK(agx_json_optional_words(o, "none", &words, NULL));
    ASSERT_OK(agx_json_optional_words(o, "null", &words, NULL));
    ASSERT_UINT(0, words.len);
}

TEST(json_optional_that_is_there_is_copied)
{
    _cleanup_json_ json_t *o = object_of("{\"a\":\"one\",\"l\":[\"x\",\"\",\"z\"]}");
    _cleanup_free_ char *text = NULL;
    _cleanup_(agx_words_done) struct agx_words words = { 0 };

    ASSERT_OK(agx_json_optional_text(o, "a", &text, NULL));
    ASSERT_CSTR("one", text);
    ASSERT_OK(agx_json_optional_words(o, "l", &words, NULL));
    ASSERT_UINT(3, words.len);
    ASSERT_CSTR("x", words.items[0]);
    ASSERT_CSTR("", words.items[1]);
    ASSERT_CSTR("z", words.items[2]);
}

TEST(json_optional_of_another_type_is_named)
{
    _cleanup_json_ json_t *o = object_of("{\"a\":7,\"s\":\"x\",\"l\":[\"x\",7]}");
    _cleanup_(agx_words_done) struct agx_words words = { 0 };
    char *text = NULL;
    struct agx_error *err = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_optional_text(o, "a", &text, &err));
    ASSERT_MESSAGE(err, "'a'");
    agx_error_freep(&err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_optional_words(o, "s", &words, &err));
    ASSERT_MESSAGE(err, "'s'");
    agx_error_freep(&err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_json_optional_words(o, "l", &words, &err));
    ASSERT_MESSAGE(err, "'l'");
    agx_error_freep(&err);
    ASSERT_NULL(text);
}

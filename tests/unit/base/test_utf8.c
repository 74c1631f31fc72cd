#include "base/utf8.h"
#include "tests/support/test.h"

TEST(utf8_of_each_length_is_valid)
{
    ASSERT_TRUE(agx_utf8_valid(AGX_STR("")));
    ASSERT_TRUE(agx_utf8_valid((struct agx_str){ NULL, 0 }));
    ASSERT_TRUE(agx_utf8_valid(AGX_STR("plain ASCII text of some length, with a NUL \0 in it")));
    ASSERT_TRUE(
        agx_utf8_valid(AGX_STR("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80")));
    ASSERT_TRUE(agx_utf8_valid(AGX_STR("\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf")));
}

TEST(utf8_overlong_surrogate_cut_off_and_too_large_are_invalid)
{
    static const char *const bad[] = {
        "\x80",         "\xc0\xaf",     "\xc1\xbf",         "\xc2",
        "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
        "\xf5\x80",     "abcdefgh\xff", "\xe2\x82",         "\xf0\x9f\x98",
        "\xc2 ",        "\xe2\x82x"
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_FALSE(agx_utf8_valid(agx_str_from(bad[i])));
}

TEST(utf8_sequence_is_the_length_of_the_first_character)
{
    ASSERT_UINT(1, agx_utf8_sequence(AGX_STR("ab")));
    ASSERT_UINT(1, agx_utf8_sequence(AGX_STR("\0")));
    ASSERT_UINT(2, agx_utf8_sequence(AGX_STR("\xc3\xa4z")));
    ASSERT_UINT(4, agx_utf8_sequence(AGX_STR("\xf0\x9f\x98\x80")));
    ASSERT_UINT(0, agx_utf8_sequence(AGX_STR("\xf0\x9f\x98")));
    ASSERT_UINT(0, agx_utf8_sequence(AGX_STR("\x80")));
}

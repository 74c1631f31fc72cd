#include "core/ident.h"
#include "tests/support/test.h"

TEST(ident_check_takes_letters_digits_dashes_and_underscores)
{
    static const char *const good[] = {
        "abcd", "0000", "a--b", "A_-9", "9a5f0c3e-4b1d-4e7a-8c2f-0123456789ab",
    };
    char longest[AGX_IDENT_MAX];

    for (size_t i = 0; i < AGX_ARRAY_LEN(good); i++)
        ASSERT_OK(agx_ident_check("sandbox_id", agx_str_from(good[i]), NULL));
    memset(longest, 'x', sizeof(longest));
    ASSERT_OK(agx_ident_check("sandbox_id", agx_str_bytes(longest, sizeof(longest)), NULL));
}

TEST(ident_check_of_a_short_id_says_how_long_it_must_be)
{
    static const char *const bad[] = { "", "a", "abc", "-", "///" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT,
                    agx_ident_check("sandbox_id", agx_str_from(bad[i]), &err));
        ASSERT_CSTR("sandbox_id must be at least 4 characters", err->message);
    }
}

TEST(ident_check_of_other_characters_names_the_field)
{
    static const struct agx_str bad[] = {
        AGX_STR("-abc"),
        AGX_STR("abc-"),
        AGX_STR("_abc"),
        AGX_STR("abc_"),
        AGX_STR("a.bc"),
        AGX_STR("a/bc"),
        AGX_STR("a bc"),
        AGX_STR("ab\0c"),
        AGX_STR("\xc3\xa4"
                "bcd"),
        AGX_STR("../../"),
        AGX_STR("abc\n"),
    };
    char longer[AGX_IDENT_MAX + 1];

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_ident_check("exec_id", bad[i], &err));
        ASSERT_MESSAGE(err, "exec_id must be 4 to 200 letters");
    }
    memset(longer, 'x', sizeof(longer));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_ident_check("exec_id", agx_str_bytes(longer, sizeof(longer)), NULL));
}

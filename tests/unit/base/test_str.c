#include "base/str.h"
#include "tests/support/test.h"

TEST(str_split_yields_each_part_and_ends)
{
    struct agx_str rest = AGX_STR("a,,b"), part;

    ASSERT_TRUE(agx_str_split(&rest, ',', &part));
    ASSERT_STR(AGX_STR("a"), part);
    ASSERT_TRUE(agx_str_split(&rest, ',', &part));
    ASSERT_STR(AGX_STR(""), part);
    ASSERT_TRUE(agx_str_split(&rest, ',', &part));
    ASSERT_STR(AGX_STR("b"), part);
    ASSERT_FALSE(agx_str_split(&rest, ',', &part));
}

TEST(str_compare_without_case_and_in_constant_time)
{
    ASSERT_TRUE(agx_str_eq_nocase(AGX_STR("Content-TYPE"), AGX_STR("content-type")));
    ASSERT_FALSE(agx_str_eq_nocase(AGX_STR("a["), AGX_STR("a{")));
    ASSERT_TRUE(agx_str_eq_secret(AGX_STR("token"), AGX_STR("token")));
    ASSERT_FALSE(agx_str_eq_secret(AGX_STR("token"), AGX_STR("tokem")));
    ASSERT_FALSE(agx_str_eq_secret(AGX_STR("token"), AGX_STR("toke")));
}

TEST(str_trim_find_and_starts)
{
    ASSERT_STR(AGX_STR("x y"), agx_str_trim(AGX_STR(" \tx y\t ")));
    ASSERT_STR(AGX_STR(""), agx_str_trim(AGX_STR(" \t ")));
    ASSERT_UINT(1, agx_str_find(AGX_STR("a:b"), ':'));
    ASSERT_UINT(3, agx_str_find(AGX_STR("a:b"), ';'));
    ASSERT_TRUE(agx_str_starts(AGX_STR("abc"), AGX_STR("ab")));
    ASSERT_FALSE(agx_str_starts(AGX_STR("a"), AGX_STR("ab")));
}

TEST(parse_u64_accepts_up_to_max_and_nothing_else)
{
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "99999999999999999999999"
    };
    uint64_t v = 7;

    ASSERT_TRUE(agx_parse_u64(AGX_STR("18446744073709551615"), UINT64_MAX, &v));
    ASSERT_UINT(UINT64_MAX, v);
    ASSERT_TRUE(agx_parse_u64(AGX_STR("0"), 0, &v));
    ASSERT_UINT(0, v);
    ASSERT_TRUE(agx_parse_u64(AGX_STR("255"), 255, &v));
    ASSERT_FALSE(agx_parse_u64(AGX_STR("256"), 255, &v));
    ASSERT_FALSE(agx_parse_u64(AGX_STR("9"), 5, &v));
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_FALSE(agx_parse_u64(agx_str_from(bad[i]), UINT64_MAX, &v));
    ASSERT_UINT(255, v);
}

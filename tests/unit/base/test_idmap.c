#include "base/idmap.h"
#include "tests/support/test.h"

static void check_lines(uint32_t own, const char *want)
{
    char text[AGX_IDMAP_TEXT];

    ASSERT_UINT(strlen(want), agx_idmap_lines(own, text));
    ASSERT_CSTR(want, text);
}

TEST(idmap_gives_the_user_his_own_number_and_all_others_those_set_apart)
{
    check_lines(1000, "0 1 1000\n1000 0 1\n1001 1001 64535\n");
    ASSERT_UINT(1, agx_idmap_outer(1000, 0));
    ASSERT_UINT(1000, agx_idmap_outer(1000, 999));
    ASSERT_UINT(0, agx_idmap_outer(1000, 1000));
    ASSERT_UINT(1001, agx_idmap_outer(1000, 1001));
    ASSERT_UINT(65535, agx_idmap_outer(1000, 65535));
}

TEST(idmap_of_a_user_at_either_end_has_no_empty_line)
{
    check_lines(0, "0 0 1\n1 1 65535\n");
    check_lines(65535, "0 1 65535\n65535 0 1\n");
    ASSERT_UINT(0, agx_idmap_outer(0, 0));
    ASSERT_UINT(65535, agx_idmap_outer(65535, 65534));
}

TEST(idmap_of_a_user_above_the_range_is_without_him)
{
    check_lines(70000, "0 1 65536\n");
    ASSERT_UINT(1, agx_idmap_outer(70000, 0));
    ASSERT_UINT(65536, agx_idmap_outer(70000, 65535));
}

TEST(idmap_of_an_id_that_no_sandbox_has_is_nobody)
{
    ASSERT_UINT(65534, agx_idmap_outer(1000, 65536));
    ASSERT_UINT(65534, agx_idmap_outer(1000, 4000000000U));
    ASSERT_UINT(65535, agx_idmap_outer(70000, 65536));
}

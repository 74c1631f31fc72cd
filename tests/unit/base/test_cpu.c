#include "base/cpu.h"
#include "tests/support/test.h"

static void check(const char *text, int64_t want)
{
    int64_t m = 7;

    ASSERT_OK(agx_cpu_parse(agx_str_from(text), &m, NULL));
    ASSERT_INT(want, m);
}

TEST(cpu_parse_gives_thousandths_of_a_core)
{
    check("2", 2000);
    check("0.5", 500);
    check(".25", 250);
    check("1e-3", 1);
    check("0x1p-1", 500);
    check("1.9999", 1999);
    check("0.001", 1);
}

TEST(cpu_parse_of_other_text_is_an_error)
{
    static const char *const bad[] = { "",     "two", "inf", "NaN", "+Inf", "0",  "-1", "0.0009",
                                       "500m", " 1",  "1 ",  "1_0", "0x1",  "1e", ".",  "1e999" };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    int64_t m = 7;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cpu_parse(agx_str_from(bad[i]), &m, NULL));
    ASSERT_CODE(AGX_OUT_OF_RANGE, agx_cpu_parse(AGX_STR("1e17"), &m, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_cpu_parse(AGX_STR("two"), &m, &err));
    ASSERT_MESSAGE(err, "cpu amount 'two' is not a finite number");
    ASSERT_INT(7, m);
}

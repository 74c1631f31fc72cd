#include "base/duration.h"
#include "tests/support/test.h"

#define MS INT64_C(1000000)
#define S (1000 * MS)

static void check_parse(const char *text, int64_t want)
{
    int64_t ns = 7;

    ASSERT_OK(agx_duration_parse(agx_str_from(text), &ns, NULL));
    ASSERT_INT(want, ns);
}

TEST(duration_parse_reads_what_go_reads)
{
    check_parse("0", 0);
    check_parse("-0", 0);
    check_parse("1h30m", 5400 * S);
    check_parse("1.5s", 1500 * MS);
    check_parse(".5s", 500 * MS);
    check_parse("5.s", 5 * S);
    check_parse("+5s", 5 * S);
    check_parse("-300ms", -300 * MS);
    check_parse("10ns", 10);
    check_parse("11us", 11000);
    check_parse("12\xc2\xb5s", 12000);
    check_parse("12\xce\xbcs", 12000);
    check_parse("3h30m1.5s", 12601 * S + 500 * MS);
    check_parse("10.5s4m", 250 * S + 500 * MS);
    check_parse("39h9m14.425s", 140954 * S + 425 * MS);
    check_parse("52763797000ns", 52763797000);
    check_parse("0.3333333333333333333h", 1200 * S);
    check_parse("0.100000000000000000000h", 360 * S);
    check_parse("0.830103483285477580700h", 2988372539827);
    check_parse("9007199254740993ns", 9007199254740993);
    check_parse("9223372036854775807ns", INT64_MAX);
    check_parse("9223372036854775.807us", INT64_MAX);
    check_parse("9223372036s854ms775us807ns", INT64_MAX);
    check_parse("-9223372036854775808ns", INT64_MIN);
    check_parse("-9223372036s854ms775us808ns", INT64_MIN);
}

TEST(duration_parse_of_other_text_is_invalid_and_says_why)
{
    static const char *const bad[] = { "",     "3",  "-",   "s",    ".",    "-.",       ".s",
                                       "+.s",  "1d", "1 s", " 1s",  "1s ",  "1h-30m",   "1e3s",
                                       "0x1s", "1S", "1sm", "--1s", "1m30", "\xc2\xb5s" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int64_t ns = 7;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_duration_parse(agx_str_from(bad[i]), &ns, &err));
        ASSERT_MESSAGE(err, "duration '");
        ASSERT_INT(7, ns);
    }
}

TEST(duration_parse_past_292_years_is_out_of_range)
{
    static const char *const large[] = { "9223372036854775808ns",     "9223372036854775.808us",
                                         "-9223372036854775809ns",    "2562048h",
                                         "9223372036854ms775us809ns", "99999999999999999999999h",
                                         "2562047h47m16.854775808s" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(large); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int64_t ns;

        ASSERT_CODE(AGX_OUT_OF_RANGE, agx_duration_parse(agx_str_from(large[i]), &ns, &err));
        ASSERT_MESSAGE(err, "is too long");
    }
}

static void check_format(int64_t ns, const char *want)
{
    char text[AGX_DURATION_TEXT_SIZE];

    ASSERT_CSTR(want, agx_duration_format(ns, text));
    check_parse(text, ns);
}

TEST(duration_format_prints_what_go_prints_and_reads_back)
{
    check_format(0, "0s");
    check_format(1, "1ns");
    check_format(1100, "1.1\xc2\xb5s");
    check_format(2200000, "2.2ms");
    check_format(300 * MS, "300ms");
    check_format(3300 * MS, "3.3s");
    check_format(60 * S, "1m0s");
    check_format(245 * S, "4m5s");
    check_format(245001 * MS, "4m5.001s");
    check_format(18367001 * MS, "5h6m7.001s");
    check_format(480 * S + 1, "8m0.000000001s");
    check_format(5400 * S, "1h30m0s");
    check_format(-1500 * MS, "-1.5s");
    check_format(INT64_MAX, "2562047h47m16.854775807s");
    check_format(INT64_MIN, "-2562047h47m16.854775808s");
}

#include "base/size.h"
#include "tests/support/test.h"

static void check(const char *text, int64_t want)
{
    int64_t bytes = 7;

    ASSERT_OK(agx_size_parse(agx_str_from(text), &bytes, NULL));
    ASSERT_INT(want, bytes);
}

TEST(size_parse_reads_what_docker_reads)
{
    check("32", 32);
    check("32b", 32);
    check("32B", 32);
    check("1k", 1024);
    check("1K", 1024);
    check("1kb", 1024);
    check("1KiB", 1024);
    check("512m", 512 << 20);
    check("4g", INT64_C(4) << 30);
    check("1.5 GiB", INT64_C(3) << 29);
    check("2t", INT64_C(2) << 40);
    check("3 PB", INT64_C(3) << 50);
    check(".5k", 512);
    check("32.", 32);
    check("1e3", 1000);
    check("1e3k", 1024000);
    check("0x1p4k", 16384);
    check("+5", 5);
    check("1.9", 1);
    check("5 ", 5);
    check("9007199254740993", 9007199254740993);
    check("9223372036854775807", INT64_MAX);
}

TEST(size_parse_of_other_text_is_invalid_and_says_why)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        { "", "number" },        { "abc", "number" },   { "k", "number" },    { "-1g", "one byte" },
        { "0", "one byte" },     { "0.5", "one byte" }, { "0g", "one byte" }, { "1x", "unit" },
        { "1kib2", "number" },   { "1kbb", "unit" },    { "1bb", "unit" },    { "1ib", "unit" },
        { "1kiib", "unit" },     { "1  k", "number" },  { " 1k", "number" },  { "1k ", "number" },
        { "inf", "number" },     { "nan", "number" },   { "1_0k", "number" }, { "0x10", "number" },
        { "1.2.3", "number" },   { "1e", "unit" },      { "1,5g", "number" }, { "1e999", "number" },
        { "1\xc2\xb5", "unit" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int64_t bytes = 7;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_size_parse(agx_str_from(bad[i].text), &bytes, &err));
        ASSERT_MESSAGE(err, bad[i].why);
        ASSERT_INT(7, bytes);
    }
}

TEST(size_parse_past_an_int64_is_out_of_range)
{
    static const char *const large[] = { "9223372036854775808", "8192p", "1e30", "9000000p" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(large); i++) {
        int64_t bytes;

        ASSERT_CODE(AGX_OUT_OF_RANGE, agx_size_parse(agx_str_from(large[i]), &bytes, NULL));
    }
}

static void check_format(int64_t bytes, const char *want)
{
    char text[AGX_SIZE_TEXT_SIZE];

    ASSERT_CSTR(want, agx_size_format(bytes, text));
    check(text, bytes);
}

TEST(size_format_takes_the_largest_unit_and_reads_back)
{
    char text[AGX_SIZE_TEXT_SIZE];

    check_format(1, "1");
    check_format(1000, "1000");
    check_format(1024, "1k");
    check_format(1536, "1536");
    check_format(512 << 20, "512m");
    check_format(INT64_C(1) << 62, "4096p");
    check_format(INT64_MAX, "9223372036854775807");
    ASSERT_CSTR("0", agx_size_format(0, text));
}

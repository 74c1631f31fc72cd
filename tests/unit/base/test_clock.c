#include "base/clock.h"
#include "tests/support/test.h"

#include <time.h>

static void check(int64_t ns, const char *want)
{
    char text[AGX_CLOCK_TEXT_SIZE];

    ASSERT_CSTR(want, agx_clock_format(ns, text));
}

TEST(clock_text_is_rfc3339_in_utc)
{
    check(0, "1970-01-01T00:00:00.000Z");
    check(INT64_C(951782399999999999), "2000-02-28T23:59:59.999Z");
    check(INT64_C(951782400000000000), "2000-02-29T00:00:00.000Z");
    check(-1, "1969-12-31T23:59:59.999Z");
    check(INT64_MAX, "2262-04-11T23:47:16.854Z");
    check(INT64_MIN, "1677-09-21T00:12:43.145Z");
}

TEST(clock_monotonic_goes_forward_in_each_unit)
{
    uint64_t ns = agx_clock_ns(), us = agx_clock_us(), ms = agx_clock_ms();

    ASSERT_TRUE(us >= ns / 1000 && us - ns / 1000 < 10000000);
    ASSERT_TRUE(ms >= us / 1000 && ms - us / 1000 < 10000);
    ASSERT_TRUE(agx_clock_ns() >= ns);
}

TEST(clock_wall_is_the_systems_time)
{
    int64_t s = agx_clock_wall_ns() / 1000000000 - (int64_t)time(NULL);

    ASSERT_TRUE(s >= -2 && s <= 2);
}

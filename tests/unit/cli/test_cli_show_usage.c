/* Output of a sandbox's resource usage for people. */
#include "cli/show_usage.h"

#include "tests/support/test.h"

#include "base/banned.h"

static void is(const struct agx_resource_usage *use, const char *companion, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);

    ASSERT_OK(agx_show_usage(&out, companion, use));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

TEST(each_sort_of_use_is_a_line)
{
    struct agx_resource_usage u = {
        .known = (1U << AGX_USAGE_COUNT) - 1,
        .figures = { [AGX_USAGE_CPU_NS] = 61500999999,
                     [AGX_USAGE_MEMORY] = 64000000,
                     [AGX_USAGE_MEMORY_PEAK] = 80000000,
                     [AGX_USAGE_MEMORY_LIMIT] = 512000000,
                     [AGX_USAGE_PIDS] = 3,
                     [AGX_USAGE_PIDS_LIMIT] = 4096,
                     [AGX_USAGE_IO_READ] = 1200000,
                     [AGX_USAGE_DISK] = 20480,
                     [AGX_USAGE_DISK_LIMIT] = 1000000000,
                     [AGX_USAGE_RX] = 4500,
                     [AGX_USAGE_RX_PACKETS] = 12,
                     [AGX_USAGE_TX] = 700,
                     [AGX_USAGE_TX_PACKETS] = 9 },
    };

    is(&u, NULL,
       "cpu=61.500s\n"
       "memory=64.0 MB of 512.0 MB, peak 80.0 MB\n"
       "pids=3 of 4096\n"
       "io=1.2 MB read, 0 B written\n"
       "disk=20.5 kB of 1.0 GB\n"
       "network=4.5 kB received (12 packets), 700 B sent (9 packets)\n");
}

TEST(figures_that_are_missing_are_not_displayed)
{
    struct agx_resource_usage u = { 0 };

    is(&u, NULL, "");
    agx_resource_usage_set(&u, AGX_USAGE_DISK, 0);
    is(&u, NULL, "disk=0 B\n");
    agx_resource_usage_set(&u, AGX_USAGE_MEMORY, 1000);
    agx_resource_usage_set(&u, AGX_USAGE_MEMORY_PEAK, 2000);
    agx_resource_usage_set(&u, AGX_USAGE_PIDS_LIMIT,
                           4096); /* without what it limits it says nothing */
    is(&u, NULL, "memory=1.0 kB, peak 2.0 kB\ndisk=0 B\n");
}

TEST(lines_of_a_companion_have_its_name_in_front)
{
    struct agx_resource_usage u = { 0 };

    agx_resource_usage_set(&u, AGX_USAGE_CPU_NS, 1000000);
    agx_resource_usage_set(&u, AGX_USAGE_PIDS, 1);
    is(&u, "cache", "cache.cpu=0.001s\ncache.pids=1\n");
    is(&u, "ev\x1bil", "ev\\u{1b}il.cpu=0.001s\nev\\u{1b}il.pids=1\n");
}

/* Resource usage from an engine's statistics. */
#include "backend/docker/resource_usage_json.h"
#include "base/limits.h"
#include "tests/support/test.h"

#include "base/banned.h"

static struct agx_resource_usage stats_of(const char *text)
{
    _cleanup_json_ json_t *json = NULL;
    struct agx_resource_usage u = { 0 };

    ASSERT_OK(agx_json_parse(agx_str_from(text), AGX_JSON_MAX, AGX_DEPTH_MAX, &json, NULL));
    agx_docker_usage_stats(json, &u);
    return u;
}

TEST(statistics_of_control_groups_of_version_1)
{
    struct agx_resource_usage u =
        stats_of("{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":1500}},"
                 "\"memory_stats\":{\"usage\":4096,\"max_usage\":8192,\"limit\":16000000000},"
                 "\"pids_stats\":{\"current\":3,\"limit\":4096},"
                 "\"blkio_stats\":{\"io_service_bytes_recursive\":[{\"op\":\"Read\",\"value\":10},"
                 "{\"op\":\"Write\",\"value\":20},{\"op\":\"Total\",\"value\":30},"
                 "{\"op\":\"Read\",\"value\":1}]},"
                 "\"networks\":{\"eth0\":{\"rx_bytes\":100,\"rx_packets\":1,\"tx_bytes\":200,"
                 "\"tx_packets\":2},\"eth1\":{\"rx_bytes\":1,\"rx_packets\":1,\"tx_bytes\":1,"
                 "\"tx_packets\":1}}}");

    ASSERT_UINT(1500, u.figures[AGX_USAGE_CPU_NS]);
    ASSERT_UINT(4096, u.figures[AGX_USAGE_MEMORY]);
    ASSERT_UINT(8192, u.figures[AGX_USAGE_MEMORY_PEAK]);
    ASSERT_UINT(3, u.figures[AGX_USAGE_PIDS]);
    ASSERT_UINT(11, u.figures[AGX_USAGE_IO_READ]);
    ASSERT_UINT(20, u.figures[AGX_USAGE_IO_WRITTEN]);
    ASSERT_UINT(101, u.figures[AGX_USAGE_RX]);
    ASSERT_UINT(2, u.figures[AGX_USAGE_RX_PACKETS]);
    ASSERT_UINT(201, u.figures[AGX_USAGE_TX]);
    ASSERT_UINT(3, u.figures[AGX_USAGE_TX_PACKETS]);
    /* The limit that an engine tells may be the host's memory. */
    ASSERT_FALSE(agx_resource_usage_has(&u, AGX_USAGE_MEMORY_LIMIT));
    ASSERT_FALSE(agx_resource_usage_has(&u, AGX_USAGE_DISK));
}

TEST(statistics_of_control_groups_of_version_2)
{
    struct agx_resource_usage u =
        stats_of("{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":7}},"
                 "\"memory_stats\":{\"usage\":4096,\"stats\":{\"anon\":1}},"
                 "\"pids_stats\":{\"current\":1},"
                 "\"blkio_stats\":{\"io_service_bytes_recursive\":[{\"op\":\"read\",\"value\":5},"
                 "{\"op\":\"write\",\"value\":6}]}}");

    ASSERT_UINT(5, u.figures[AGX_USAGE_IO_READ]);
    ASSERT_UINT(6, u.figures[AGX_USAGE_IO_WRITTEN]);
    ASSERT_FALSE(agx_resource_usage_has(&u, AGX_USAGE_MEMORY_PEAK));
    ASSERT_FALSE(agx_resource_usage_has(&u, AGX_USAGE_RX)); /* it has no network */
}

TEST(a_form_without_figures_has_none)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        ("{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":0}},\"memory_stats\":{},"
         "\"pids_stats\":{},\"blkio_stats\":{\"io_service_bytes_recursive\":null}}"),
        "{\"cpu_stats\":[1],\"memory_stats\":7,\"networks\":[1,2]}",
        "{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":-4}},\"memory_stats\":{\"usage\":5}}",
        "{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":\"many\"}}}",
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++)
        ASSERT_UINT(0, stats_of(texts[i]).known);
}

TEST(values_of_the_wrong_kind_are_left_out)
{
    struct agx_resource_usage u =
        stats_of("{\"cpu_stats\":{\"cpu_usage\":{\"total_usage\":1}},"
                 "\"memory_stats\":{\"usage\":-1,\"max_usage\":1.5},"
                 "\"blkio_stats\":{\"io_service_bytes_recursive\":[7,{\"op\":3},"
                 "{\"op\":\"read\",\"value\":\"x\"}]},\"networks\":{\"eth0\":7}}");

    ASSERT_UINT(1U << AGX_USAGE_CPU_NS, u.known);
}

TEST(the_size_of_the_writable_layer_is_its_disk)
{
    _cleanup_json_ json_t *with = json_pack("{s:i, s:i}", "SizeRw", 4096, "SizeRootFs", 70000);
    _cleanup_json_ json_t *without = json_object();
    struct agx_resource_usage u = { 0 };

    agx_docker_usage_size(without, &u);
    ASSERT_UINT(0, u.known);
    agx_docker_usage_size(NULL, &u);
    ASSERT_UINT(0, u.known);
    agx_docker_usage_size(with, &u);
    ASSERT_UINT(4096, u.figures[AGX_USAGE_DISK]);
}

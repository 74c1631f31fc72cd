/* resource_usage_json.c: parses a container's statistics; for hosts with cgroups of either version.
 */
#include "backend/docker/resource_usage_json.h"

#include <strings.h>

#include "base/banned.h"

/* A number of `object`, which may be missing, as everything here. */
static bool number_of(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *n = json_object_get(object, key);

    if (!json_is_integer(n) || json_integer_value(n) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(n);
    return true;
}

static void resource_usage_json_take(struct agx_resource_usage *use,
                                     enum agx_resource_usage_figure f, const json_t *object,
                                     const char *key)
{
    uint64_t n;

    if (number_of(object, key, &n))
        agx_resource_usage_set(use, f, n);
}

static void resource_usage_json_add(struct agx_resource_usage *use,
                                    enum agx_resource_usage_figure f, const json_t *object,
                                    const char *key)
{
    uint64_t n;

    if (number_of(object, key, &n))
        agx_resource_usage_set(use, f, use->figures[f] + n);
}

/* [{"op": "Read", "value": 4096}, ...], one or more for each device; upper or lower case depends on
 * the host's cgroup version. */
static void add_io(struct agx_resource_usage *use, const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *op = json_string_value(json_object_get(one, "op"));

        if (op && strcasecmp(op, "read") == 0)
            resource_usage_json_add(use, AGX_USAGE_IO_READ, one, "value");
        else if (op && strcasecmp(op, "write") == 0)
            resource_usage_json_add(use, AGX_USAGE_IO_WRITTEN, one, "value");
    }
}

/* One entry per interface, by its name inside; loopback is not among them. */
static void add_links(struct agx_resource_usage *use, json_t *links)
{
    const char *name;
    const json_t *link;

    json_object_foreach(links, name, link)
    {
        resource_usage_json_add(use, AGX_USAGE_RX, link, "rx_bytes");
        resource_usage_json_add(use, AGX_USAGE_RX_PACKETS, link, "rx_packets");
        resource_usage_json_add(use, AGX_USAGE_TX, link, "tx_bytes");
        resource_usage_json_add(use, AGX_USAGE_TX_PACKETS, link, "tx_packets");
    }
}

void agx_docker_usage_stats(const json_t *stats, struct agx_resource_usage *use)
{
    const json_t *cpu = json_object_get(stats, "cpu_stats");
    const json_t *memory = json_object_get(stats, "memory_stats");
    const json_t *blkio = json_object_get(stats, "blkio_stats");
    uint64_t ns;

    /* For a stopped container an engine sends the structure without figures: all 0. */
    if (!number_of(json_object_get(cpu, "cpu_usage"), "total_usage", &ns) || ns == 0)
        return;
    agx_resource_usage_set(use, AGX_USAGE_CPU_NS, ns);
    resource_usage_json_take(use, AGX_USAGE_MEMORY, memory, "usage");
    resource_usage_json_take(use, AGX_USAGE_MEMORY_PEAK, memory, "max_usage");
    resource_usage_json_take(use, AGX_USAGE_PIDS, json_object_get(stats, "pids_stats"), "current");
    add_io(use, json_object_get(blkio, "io_service_bytes_recursive"));
    add_links(use, json_object_get(stats, "networks"));
}

void agx_docker_usage_size(const json_t *container, struct agx_resource_usage *use)
{
    resource_usage_json_take(use, AGX_USAGE_DISK, container, "SizeRw");
}

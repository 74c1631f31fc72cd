/* use_json.c: parses a container's statistics; for hosts with cgroups of either version. */
#include "backend/docker/use_json.h"

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

static void take(struct agx_use *use, enum agx_use_figure f, const json_t *object, const char *key)
{
    uint64_t n;

    if (number_of(object, key, &n))
        agx_use_set(use, f, n);
}

static void add(struct agx_use *use, enum agx_use_figure f, const json_t *object, const char *key)
{
    uint64_t n;

    if (number_of(object, key, &n))
        agx_use_set(use, f, use->figures[f] + n);
}

/* [{"op": "Read", "value": 4096}, ...], one or more for each device; upper or lower case depends on
 * the host's cgroup version. */
static void add_io(struct agx_use *use, const json_t *list)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        const char *op = json_string_value(json_object_get(one, "op"));

        if (op && strcasecmp(op, "read") == 0)
            add(use, AGX_USE_IO_READ, one, "value");
        else if (op && strcasecmp(op, "write") == 0)
            add(use, AGX_USE_IO_WRITTEN, one, "value");
    }
}

/* One entry per interface, by its name inside; loopback is not among them. */
static void add_links(struct agx_use *use, json_t *links)
{
    const char *name;
    const json_t *link;

    json_object_foreach(links, name, link)
    {
        add(use, AGX_USE_RX, link, "rx_bytes");
        add(use, AGX_USE_RX_PACKETS, link, "rx_packets");
        add(use, AGX_USE_TX, link, "tx_bytes");
        add(use, AGX_USE_TX_PACKETS, link, "tx_packets");
    }
}

void agx_docker_use_stats(const json_t *stats, struct agx_use *use)
{
    const json_t *cpu = json_object_get(stats, "cpu_stats");
    const json_t *memory = json_object_get(stats, "memory_stats");
    const json_t *blkio = json_object_get(stats, "blkio_stats");
    uint64_t ns;

    /* For a stopped container an engine sends the structure without figures: all 0. */
    if (!number_of(json_object_get(cpu, "cpu_usage"), "total_usage", &ns) || ns == 0)
        return;
    agx_use_set(use, AGX_USE_CPU_NS, ns);
    take(use, AGX_USE_MEMORY, memory, "usage");
    take(use, AGX_USE_MEMORY_PEAK, memory, "max_usage");
    take(use, AGX_USE_PIDS, json_object_get(stats, "pids_stats"), "current");
    add_io(use, json_object_get(blkio, "io_service_bytes_recursive"));
    add_links(use, json_object_get(stats, "networks"));
}

void agx_docker_use_size(const json_t *container, struct agx_use *use)
{
    take(use, AGX_USE_DISK, container, "SizeRw");
}

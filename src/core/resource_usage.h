/*
 * resource_usage.h: resource usage of one part of a sandbox (the sandbox itself, or a companion).
 * Each figure may be missing, when the backend cannot report it; missing is not 0.
 */
#ifndef AGX_CORE_RESOURCE_USAGE_H
#define AGX_CORE_RESOURCE_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of agentix.v1.SandboxUse: a figure's field number is its enum value plus one. */
enum agx_resource_usage_figure {
    AGX_USAGE_CPU_NS, /* CPU time since its start */
    AGX_USAGE_MEMORY, /* bytes, like the rest except pids and packets; with page cache */
    AGX_USAGE_MEMORY_PEAK,
    AGX_USAGE_MEMORY_LIMIT,
    AGX_USAGE_PIDS, /* processes and threads */
    AGX_USAGE_PIDS_LIMIT,
    AGX_USAGE_IO_READ, /* from and to disks */
    AGX_USAGE_IO_WRITTEN,
    AGX_USAGE_DISK, /* what it wrote, as allocated on the host */
    AGX_USAGE_DISK_LIMIT,
    AGX_USAGE_RX, /* received on all interfaces except loopback */
    AGX_USAGE_RX_PACKETS,
    AGX_USAGE_TX, /* sent */
    AGX_USAGE_TX_PACKETS,
    AGX_USAGE_COUNT,
};

struct agx_resource_usage {
    uint32_t known; /* a bit for each figure that is present */
    uint64_t figures[AGX_USAGE_COUNT];
};

static inline void agx_resource_usage_set(struct agx_resource_usage *u,
                                          enum agx_resource_usage_figure f, uint64_t value)
{
    u->known |= 1U << f;
    u->figures[f] = value;
}

static inline bool agx_resource_usage_has(const struct agx_resource_usage *u,
                                          enum agx_resource_usage_figure f)
{
    return u->known & 1U << f;
}

#endif

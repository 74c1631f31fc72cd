/*
 * use.h: resource usage of one part of a sandbox (the sandbox itself, or a companion). Each figure
 * may be missing, when the backend cannot report it; missing is not 0.
 */
#ifndef AGX_CORE_USE_H
#define AGX_CORE_USE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of agentix.v1.SandboxUse: a figure's field number is its enum value plus one. */
enum agx_use_figure {
    AGX_USE_CPU_NS, /* CPU time since its start */
    AGX_USE_MEMORY, /* bytes, like the rest except pids and packets; with page cache */
    AGX_USE_MEMORY_PEAK,
    AGX_USE_MEMORY_LIMIT,
    AGX_USE_PIDS, /* processes and threads */
    AGX_USE_PIDS_LIMIT,
    AGX_USE_IO_READ, /* from and to disks */
    AGX_USE_IO_WRITTEN,
    AGX_USE_DISK, /* what it wrote, as allocated on the host */
    AGX_USE_DISK_LIMIT,
    AGX_USE_RX, /* received on all interfaces except loopback */
    AGX_USE_RX_PACKETS,
    AGX_USE_TX, /* sent */
    AGX_USE_TX_PACKETS,
    AGX_USE_COUNT,
};

struct agx_use {
    uint32_t known; /* a bit for each figure that is present */
    uint64_t figures[AGX_USE_COUNT];
};

static inline void agx_use_set(struct agx_use *u, enum agx_use_figure f, uint64_t value)
{
    u->known |= 1U << f;
    u->figures[f] = value;
}

static inline bool agx_use_has(const struct agx_use *u, enum agx_use_figure f)
{
    return u->known & 1U << f;
}

#endif

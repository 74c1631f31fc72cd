/*
 * use.h: what one part of a sandbox (itself, or a companion) uses: figures, each of which may be
 * missing. One that a backend cannot say is not there, which is something else than 0.
 */
#ifndef AGX_CORE_USE_H
#define AGX_CORE_USE_H

#include <stdbool.h>
#include <stdint.h>

/* In the order of agentix.v1.SandboxUse: the number of a field is its figure's and one. */
enum agx_use_figure {
    AGX_USE_CPU_NS, /* processor time since it was started */
    AGX_USE_MEMORY, /* in bytes, as all that follow but pids and packets; with page cache */
    AGX_USE_MEMORY_PEAK,
    AGX_USE_MEMORY_LIMIT,
    AGX_USE_PIDS, /* processes and threads */
    AGX_USE_PIDS_LIMIT,
    AGX_USE_IO_READ, /* from and to disks */
    AGX_USE_IO_WRITTEN,
    AGX_USE_DISK, /* what it wrote, as the host's disk has it */
    AGX_USE_DISK_LIMIT,
    AGX_USE_RX, /* received, by all its links but loopback */
    AGX_USE_RX_PACKETS,
    AGX_USE_TX, /* sent */
    AGX_USE_TX_PACKETS,
    AGX_USE_COUNT,
};

struct agx_use {
    uint32_t known; /* the bit of each figure that is there */
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

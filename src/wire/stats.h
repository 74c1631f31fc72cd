/* stats.h: the daemon's statistics, GetStatsResponse. The names are those of
 * agentix/v1/control.proto. */
#ifndef AGX_WIRE_STATS_H
#define AGX_WIRE_STATS_H

#include "base/buf.h"
#include "core/event.h"

struct agx_stats {
    char *version, *backend; /* owned after decoding */
    uint64_t uptime_ns;
    uint32_t pid;
    uint64_t rss_bytes;
    uint64_t sandboxes[AGX_STATE_COUNT]; /* in each state */
    uint64_t active_execs;
    uint64_t subscribers;
    uint64_t longest_turn_ns;
    struct {
        uint64_t connections, calls, bytes, calls_started, connections_calmed;
    } rpc;
    struct {
        uint64_t commits, batches, refused, failed, bytes, group_max;
        uint64_t map_bytes, file_bytes, map_growths;
    } store;
};

/* Appends a GetStatsResponse. */
int agx_stats_encode(struct agx_buf *out, const struct agx_stats *s) AGX_MUST_CHECK;
int agx_stats_decode(struct agx_stats *s, struct agx_str bytes,
                     struct agx_error **err) AGX_MUST_CHECK;
void agx_stats_done(struct agx_stats *s);

#endif

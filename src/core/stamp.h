/*
 * stamp.h: a moment, kept so that a span from it can be measured even after a restart.
 *
 * The wall clock is what people read, but it jumps when somebody sets it; the monotonic clock does
 * not, but starts again when the host boots. A stamp has both, and says which boot it belongs to.
 */
#ifndef AGX_CORE_STAMP_H
#define AGX_CORE_STAMP_H

#include <stdint.h>

struct agx_stamp {
    int64_t wall_ns;  /* since 1970 */
    uint64_t mono_ns; /* since the boot */
    uint64_t boot;    /* the same number for all of one boot of the host, another for the next */
};

/* How long ago `then` was, never negative: by the monotonic clock where both are of one boot, by
 * the wall clock otherwise, which is all there is. */
static inline uint64_t agx_stamp_age_ns(const struct agx_stamp *then, const struct agx_stamp *now)
{
    if (then->boot == now->boot)
        return now->mono_ns > then->mono_ns ? now->mono_ns - then->mono_ns : 0;
    return now->wall_ns > then->wall_ns ? (uint64_t)now->wall_ns - (uint64_t)then->wall_ns : 0;
}

#endif

/*
 * stamp.h: a point in time from which elapsed time can be measured even after a restart.
 *
 * The wall clock is for people, but it jumps when it is set; the monotonic clock does not, but it
 * restarts when the host boots. A stamp has both, and identifies its boot.
 */
#ifndef AGX_CORE_STAMP_H
#define AGX_CORE_STAMP_H

#include <stdint.h>

struct agx_stamp {
    int64_t wall_ns;  /* since 1970 */
    uint64_t mono_ns; /* since the boot */
    uint64_t boot;    /* identifies the boot of the host */
};

/* Time since `then`, never negative: by the monotonic clock if both are of the same boot, otherwise
 * by the wall clock. */
static inline uint64_t agx_stamp_age_ns(const struct agx_stamp *then, const struct agx_stamp *now)
{
    if (then->boot == now->boot)
        return now->mono_ns > then->mono_ns ? now->mono_ns - then->mono_ns : 0;
    return now->wall_ns > then->wall_ns ? (uint64_t)now->wall_ns - (uint64_t)then->wall_ns : 0;
}

#endif

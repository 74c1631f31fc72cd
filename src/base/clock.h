/*
 * clock.h: what time it is. Timeouts and intervals use the monotonic clock, which no one sets; the
 * wall clock is only for what people read.
 */
#ifndef AGX_BASE_CLOCK_H
#define AGX_BASE_CLOCK_H

#include <stdint.h>

/* Room for "2026-01-31T23:59:59.999Z" and its NUL. */
#define AGX_CLOCK_TEXT_SIZE 25

/* Since some fixed point in the past; never goes back. */
uint64_t agx_clock_ns(void);
uint64_t agx_clock_us(void);
uint64_t agx_clock_ms(void);

/* Since 1970, UTC; jumps whenever somebody sets the clock. */
int64_t agx_clock_wall_ns(void);

/* A wall time as RFC 3339 text in UTC, cut to milliseconds. Returns `out`. */
char *agx_clock_format(int64_t wall_ns, char out[AGX_CLOCK_TEXT_SIZE]);

#endif

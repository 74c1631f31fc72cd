/*
 * clock.h: time. Timeouts and intervals use the monotonic clock, which is never set; the wall clock
 * is only for timestamps that people read.
 */
#ifndef AGX_BASE_CLOCK_H
#define AGX_BASE_CLOCK_H

#include <stdint.h>

/* Room for "2026-01-31T23:59:59.999Z" and its NUL. */
#define AGX_CLOCK_TEXT_SIZE 25

/* Nanoseconds since some fixed point in the past; never decreases. */
uint64_t agx_clock_ns(void);
uint64_t agx_clock_us(void);
uint64_t agx_clock_ms(void);

/* Nanoseconds since 1970, UTC; jumps when the clock is set. */
int64_t agx_clock_wall_ns(void);

/* A wall time as RFC 3339 text in UTC, cut to milliseconds. Returns `out`. */
char *agx_clock_format(int64_t wall_ns, char out[AGX_CLOCK_TEXT_SIZE]);

#endif

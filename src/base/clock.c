/* clock.c: the two clocks and the text form of the wall's. */
#include "base/clock.h"

#include "base/banned.h"

enum { NS_PER_MS = 1000 * 1000, NS_PER_S = 1000 * 1000 * 1000 };

uint64_t agx_clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail: the clock exists, &t is ours */
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t agx_clock_us(void)
{
    return agx_clock_ns() / 1000;
}

uint64_t agx_clock_ms(void)
{
    return agx_clock_ns() / NS_PER_MS;
}

int64_t agx_clock_wall_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

char *agx_clock_format(int64_t wall_ns, char out[AGX_CLOCK_TEXT_SIZE])
{
    int64_t rest = wall_ns % NS_PER_S;
    time_t seconds = (time_t)(wall_ns / NS_PER_S);
    struct tm tm = { 0 };
    size_t n;

    if (rest < 0) { /* before 1970 the division rounds the wrong way */
        rest += NS_PER_S;
        seconds--;
    }
    (void)gmtime_r(&seconds, &tm); /* 64-bit nanoseconds stay in the years 1677 to 2262 */
    n = strftime(out, AGX_CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(out + n, AGX_CLOCK_TEXT_SIZE - n, ".%03uZ", (unsigned)(rest / NS_PER_MS) % 1000);
    return out;
}

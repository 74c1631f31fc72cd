/*
 * duration.c: Go's durations. Values are built without their sign, up to 2^63, so that the most
 * negative one can be read and printed too.
 */
#include "base/duration.h"

#include "base/banned.h"
#include "base/macros.h"

#define MAGNITUDE_MAX (UINT64_C(1) << 63)

static const struct unit {
    const char *name;
    uint64_t ns;
} units[] = {
    { "ns", 1 },
    { "us", 1000 },
    { "\xc2\xb5s", 1000 }, /* U+00B5, the micro sign */
    { "\xce\xbcs", 1000 }, /* U+03BC, the Greek letter */
    { "ms", 1000 * 1000 },
    { "s", UINT64_C(1000000000) },
    { "m", UINT64_C(60000000000) },
    { "h", UINT64_C(3600000000000) },
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number with a fraction: value = whole + fraction / scale. */
struct number {
    uint64_t whole, fraction;
    double scale;
};

/* Cuts a number off the front of *in. False: there is none. *too_large: it does not fit. */
static bool take_number(struct agx_str *in, struct number *ret, bool *too_large)
{
    struct number n = { .scale = 1 };
    bool digits = false, full = false;

    for (; in->len > 0 && is_digit(in->ptr[0]); *in = agx_str_skip(*in, 1), digits = true) {
        unsigned d = (unsigned)(in->ptr[0] - '0');

        if (n.whole > (MAGNITUDE_MAX - d) / 10) {
            *too_large = true;
            return false;
        }
        n.whole = n.whole * 10 + d;
    }
    if (in->len > 0 && in->ptr[0] == '.') {
        *in = agx_str_skip(*in, 1);
        for (; in->len > 0 && is_digit(in->ptr[0]); *in = agx_str_skip(*in, 1), digits = true) {
            unsigned d = (unsigned)(in->ptr[0] - '0');

            /* Digits that do not fit are below a nanosecond of any unit: dropped. */
            full = full || n.fraction > (MAGNITUDE_MAX - 10) / 10;
            if (!full) {
                n.fraction = n.fraction * 10 + d;
                n.scale *= 10;
            }
        }
    }
    *ret = n;
    return digits;
}

/* Cuts the unit off the front of *in; NULL for none or an unknown one. */
static const struct unit *take_unit(struct agx_str *in)
{
    size_t n = 0;

    while (n < in->len && in->ptr[n] != '.' && !is_digit(in->ptr[n]))
        n++;
    for (size_t i = 0; i < AGX_ARRAY_LEN(units); i++) {
        if (agx_str_eq(agx_str_from(units[i].name), (struct agx_str){ in->ptr, n })) {
            *in = agx_str_skip(*in, n);
            return &units[i];
        }
    }
    return NULL;
}

/* Adds number * unit to *sum; false on overflow. */
static bool duration_add(uint64_t *sum, const struct number *n, const struct unit *u)
{
    uint64_t v;

    if (n->whole > MAGNITUDE_MAX / u->ns)
        return false;
    v = n->whole * u->ns;
    /* A fraction is less than one unit, at most 3.6e12: a double holds that to the nanosecond. */
    v += (uint64_t)((double)n->fraction * ((double)u->ns / n->scale));
    if (v > MAGNITUDE_MAX || *sum > MAGNITUDE_MAX - v)
        return false;
    *sum += v;
    return true;
}

static int duration_fail(struct agx_error **err, enum agx_code code, struct agx_str text,
                         const char *why)
{
    /* The text comes from outside: quote only the beginning. */
    text.len = AGX_MIN(text.len, (size_t)40);
    return agx_error_set(err, code, "duration '%.*s' %s", AGX_STR_ARG(text), why);
}

int agx_duration_parse(struct agx_str text, int64_t *ret_ns, struct agx_error **err)
{
    struct agx_str in = text;
    bool negative = in.len > 0 && in.ptr[0] == '-', too_large = false;
    uint64_t sum = 0;

    if (negative || (in.len > 0 && in.ptr[0] == '+'))
        in = agx_str_skip(in, 1);
    if (in.len == 0)
        return duration_fail(err, AGX_INVALID_ARGUMENT, text, "is empty");
    if (agx_str_eq(in, AGX_STR("0")))
        in.len = 0;
    while (in.len > 0) {
        const struct unit *u;
        struct number n;

        if (!take_number(&in, &n, &too_large) && !too_large)
            return duration_fail(err, AGX_INVALID_ARGUMENT, text, "lacks a number");
        if (too_large)
            return duration_fail(err, AGX_OUT_OF_RANGE, text, "is too long");
        u = take_unit(&in);
        if (!u)
            return duration_fail(err, AGX_INVALID_ARGUMENT, text,
                                 "lacks a unit (ns, us, ms, s, m, h)");
        if (!duration_add(&sum, &n, u))
            return duration_fail(err, AGX_OUT_OF_RANGE, text, "is too long");
    }
    if (!negative && sum > INT64_MAX)
        return duration_fail(err, AGX_OUT_OF_RANGE, text, "is too long");
    *ret_ns = (int64_t)(negative ? -sum : sum);
    return 0;
}

/* "<whole>.<fraction>" of v / unit without zeros at the end; unit is a power of ten. */
static int format_decimal(char *out, size_t size, uint64_t v, uint64_t unit)
{
    uint64_t fraction = v % unit;
    int n, digits = 0;

    for (uint64_t u = unit; u > 1; u /= 10)
        digits++;
    for (; fraction > 0 && fraction % 10 == 0; fraction /= 10)
        digits--;
    n = snprintf(out, size, "%llu", (unsigned long long)(v / unit));
    if (fraction > 0)
        n += snprintf(out + n, size - (size_t)n, ".%0*llu", digits, (unsigned long long)fraction);
    return n;
}

char *agx_duration_format(int64_t ns, char out[AGX_DURATION_TEXT_SIZE])
{
    enum { SECOND = 1000000000 };
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, s = v / SECOND;
    char *end = out + AGX_DURATION_TEXT_SIZE, *at = out;
    const char *unit = "s";

    if (ns < 0)
        *at++ = '-';
    if (s >= 3600)
        at += snprintf(at, (size_t)(end - at), "%lluh", (unsigned long long)(s / 3600));
    if (s >= 60)
        at += snprintf(at, (size_t)(end - at), "%llum", (unsigned long long)(s / 60 % 60));
    if (v == 0 || v >= SECOND) {
        at += format_decimal(at, (size_t)(end - at), v % (UINT64_C(60) * SECOND), SECOND);
    } else { /* below a second, the unit that leaves a whole part */
        uint64_t u = v >= 1000000 ? 1000000 : v >= 1000 ? 1000 : 1;

        unit = u == 1000000 ? "ms" : u == 1000 ? "\xc2\xb5s" : "ns";
        at += format_decimal(at, (size_t)(end - at), v, u);
    }
    (void)snprintf(at, (size_t)(end - at), "%s", unit);
    return out;
}

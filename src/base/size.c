/* size.c: amounts of memory and disk. */
#include "base/size.h"

#include "base/banned.h"
#include "base/macros.h"
#include "base/number.h"

#include <inttypes.h>

static const char unit_letters[] = "kmgtp";

static int size_fail(struct agx_error **err, enum agx_code code, struct agx_str text,
                     const char *why)
{
    text.len = AGX_MIN(text.len, (size_t)40);
    return agx_error_set(err, code, "size '%.*s' %s", AGX_STR_ARG(text), why);
}

/* The power of 1024 that a unit stands for, or -1. */
static int power_of(struct agx_str unit)
{
    char c = unit.len > 0 ? (char)(unit.ptr[0] | 0x20) : 'b'; /* lower case */
    const char *at = strchr(unit_letters, c);
    struct agx_str rest = unit.len > 0 ? agx_str_skip(unit, 1) : unit;

    if (c == 'b')
        return rest.len == 0 ? 0 : -1;
    if (c == '\0' || !at)
        return -1;
    if (rest.len == 0 || agx_str_eq_nocase(rest, AGX_STR("b")) ||
        agx_str_eq_nocase(rest, AGX_STR("ib")))
        return (int)(at - unit_letters) + 1;
    return -1;
}

/* Where the number ends: after the last digit, point or blank. */
static size_t number_end(struct agx_str s)
{
    size_t n = s.len;

    while (n > 0 && !(s.ptr[n - 1] >= '0' && s.ptr[n - 1] <= '9') && s.ptr[n - 1] != '.' &&
           s.ptr[n - 1] != ' ')
        n--;
    return n;
}

int agx_size_parse(struct agx_str text, int64_t *ret_bytes, struct agx_error **err)
{
    size_t end = number_end(text);
    struct agx_str number = { text.ptr, end };
    int power = power_of(agx_str_skip(text, end));
    uint64_t whole;
    double v;

    if (number.len > 0 && number.ptr[number.len - 1] == ' ')
        number.len--;
    /* A double cannot hold every whole number of bytes, so those are parsed as integers. */
    if (power >= 0 && agx_parse_u64(number, (uint64_t)INT64_MAX >> (10 * power), &whole)) {
        whole <<= 10 * power;
        if (whole == 0)
            return size_fail(err, AGX_INVALID_ARGUMENT, text, "is less than one byte");
        *ret_bytes = (int64_t)whole;
        return 0;
    }
    if (!agx_parse_double(number, &v))
        return size_fail(err, AGX_INVALID_ARGUMENT, text, "does not begin with a number");
    if (power < 0)
        return size_fail(err, AGX_INVALID_ARGUMENT, text, "has a unit other than b, k, m, g, t, p");
    v *= (double)(UINT64_C(1) << (10 * power));
    if (v < 1)
        return size_fail(err, AGX_INVALID_ARGUMENT, text, "is less than one byte");
    if (v >= 0x1p63)
        return size_fail(err, AGX_OUT_OF_RANGE, text, "is too large");
    *ret_bytes = (int64_t)v;
    return 0;
}

char *agx_size_format(int64_t bytes, char out[AGX_SIZE_TEXT_SIZE])
{
    size_t unit = 0;

    while (bytes != 0 && bytes % 1024 == 0 && unit < sizeof(unit_letters) - 1) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, AGX_SIZE_TEXT_SIZE, "%" PRId64 "%.*s", bytes, unit > 0,
                   unit > 0 ? &unit_letters[unit - 1] : "");
    return out;
}

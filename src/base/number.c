/* number.c: reads floats strictly: our own grammar accepts them, strtod only converts. */
#include "base/number.h"

#include "base/banned.h"

#include <math.h>

enum { TEXT_MAX = 100 };

static bool is_digit(char c, bool hex)
{
    return (c >= '0' && c <= '9') || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

static size_t take_digits(struct agx_str *in, bool hex)
{
    size_t n = 0;

    while (n < in->len && is_digit(in->ptr[n], hex))
        n++;
    *in = agx_str_skip(*in, n);
    return n;
}

/* Cuts one character off the front if it is one of the two. */
static bool take_either(struct agx_str *in, char a, char b)
{
    if (in->len == 0 || (in->ptr[0] != a && in->ptr[0] != b))
        return false;
    *in = agx_str_skip(*in, 1);
    return true;
}

static bool is_number(struct agx_str in)
{
    bool hex;
    size_t digits;

    (void)take_either(&in, '+', '-');
    hex = in.len > 2 && in.ptr[0] == '0' && (in.ptr[1] == 'x' || in.ptr[1] == 'X');
    if (hex)
        in = agx_str_skip(in, 2);
    digits = take_digits(&in, hex);
    if (take_either(&in, '.', '.'))
        digits += take_digits(&in, hex);
    if (digits == 0)
        return false;
    if (hex ? take_either(&in, 'p', 'P') : take_either(&in, 'e', 'E')) {
        (void)take_either(&in, '+', '-');
        return take_digits(&in, false) > 0 && in.len == 0;
    }
    return !hex && in.len == 0;
}

bool agx_parse_double(struct agx_str s, double *ret)
{
    char text[TEXT_MAX + 1];
    double v;

    if (s.len > TEXT_MAX || !is_number(s))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    v = strtod(text, NULL); /* our programs never leave the C locale, so '.' is the point */
    if (!isfinite(v))
        return false;
    *ret = v;
    return true;
}

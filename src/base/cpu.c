/* cpu.c: amounts of CPU. */
#include "base/cpu.h"

#include "base/banned.h"
#include "base/macros.h"
#include "base/number.h"

static int cpu_fail(struct agx_error **err, enum agx_code code, struct agx_str text,
                    const char *why)
{
    text.len = AGX_MIN(text.len, (size_t)40);
    return agx_error_set(err, code, "cpu amount '%.*s' %s", AGX_STR_ARG(text), why);
}

int agx_cpu_parse(struct agx_str text, int64_t *ret_millicores, struct agx_error **err)
{
    double v;

    if (!agx_parse_double(text, &v))
        return cpu_fail(err, AGX_INVALID_ARGUMENT, text, "is not a finite number");
    v *= 1000;
    if (v < 1)
        return cpu_fail(err, AGX_INVALID_ARGUMENT, text, "is below 0.001");
    if (v >= 0x1p63)
        return cpu_fail(err, AGX_OUT_OF_RANGE, text, "is too large");
    *ret_millicores = (int64_t)v;
    return 0;
}

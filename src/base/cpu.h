/* cpu.h: amounts of CPU as users write them, in cores: "2", "0.5", "1e-1". */
#ifndef AGX_BASE_CPU_H
#define AGX_BASE_CPU_H

#include "base/error.h"
#include "base/str.h"

/*
 * Thousandths of a core, rounded down, at least 1. -AGX_INVALID_ARGUMENT for text that is not a
 * number or below a thousandth; -AGX_OUT_OF_RANGE past an int64_t.
 */
int agx_cpu_parse(struct agx_str text, int64_t *ret_millicores,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif

/* cpu.h: amounts of processor time as people write them: "2", "0.5", "1e-1" of a core. */
#ifndef AGX_BASE_CPU_H
#define AGX_BASE_CPU_H

#include "base/error.h"
#include "base/str.h"

/*
 * Thousandths of a core, cut to a whole number, always 1 or more. -AGX_INVALID_ARGUMENT for what is
 * no number or below a thousandth; -AGX_OUT_OF_RANGE past an int64_t.
 */
int agx_cpu_parse(struct agx_str text, int64_t *ret_millicores,
                  struct agx_error **err) AGX_MUST_CHECK;

#endif

/* number.h: parses fractional numbers. For whole numbers see agx_parse_u64 in str.h. */
#ifndef AGX_BASE_NUMBER_H
#define AGX_BASE_NUMBER_H

#include "base/str.h"

/*
 * A number in Go's float syntax: decimal ("1", ".5", "1.5e3") or hexadecimal with exponent
 * ("0x1p-2"), with an optional sign. No blanks, underscores or infinity, nothing past the range of
 * a double, at most 100 characters. Otherwise false, and *ret is unchanged.
 */
bool agx_parse_double(struct agx_str s, double *ret);

#endif

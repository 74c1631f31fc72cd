/* number.h: fractional numbers in text from outside. Whole ones: agx_parse_u64 in str.h. */
#ifndef AGX_BASE_NUMBER_H
#define AGX_BASE_NUMBER_H

#include "base/str.h"

/*
 * A number as Go writes a float: decimal ("1", ".5", "1.5e3") or hexadecimal with its exponent
 * ("0x1p-2"), with a sign or none. No blanks, no underscores, no infinity; past the range of a
 * double or longer than 100 characters is refused too. False then, and *ret is as it was.
 */
bool agx_parse_double(struct agx_str s, double *ret);

#endif

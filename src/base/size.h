/*
 * size.h: amounts of memory and disk as people write them ("512m", "1.5 GiB", "4096").
 *
 * A number, a blank or none, a unit or none: b, k, m, g, t, p, in either case, each of the last
 * five also with "b" or "ib" behind it. All are powers of 1024, as in Docker.
 */
#ifndef AGX_BASE_SIZE_H
#define AGX_BASE_SIZE_H

#include "base/error.h"
#include "base/str.h"

/* Room for the longest, "9223372036854775807", and its NUL. */
#define AGX_SIZE_TEXT_SIZE 24

/*
 * Bytes, cut to a whole number, always 1 or more. -AGX_INVALID_ARGUMENT for other texts and for
 * what comes to zero or less; -AGX_OUT_OF_RANGE past an int64_t.
 */
int agx_size_parse(struct agx_str text, int64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

/* The largest unit that divides it ("512m", "1000"); reads back as the same. Returns `out`. */
char *agx_size_format(int64_t bytes, char out[AGX_SIZE_TEXT_SIZE]);

#endif

/*
 * size.h: amounts of memory and disk as users write them ("512m", "1.5 GiB", "4096").
 *
 * A number, an optional blank, an optional unit: b, k, m, g, t, p, in either case, the last five
 * optionally followed by "b" or "ib". All are powers of 1024, as in Docker.
 */
#ifndef AGX_BASE_SIZE_H
#define AGX_BASE_SIZE_H

#include "base/error.h"
#include "base/str.h"

/* Room for the longest, "9223372036854775807", and its NUL. */
#define AGX_SIZE_TEXT_SIZE 24

/*
 * Bytes, rounded down, at least 1. -AGX_INVALID_ARGUMENT for other texts and for zero or less;
 * -AGX_OUT_OF_RANGE past an int64_t.
 */
int agx_size_parse(struct agx_str text, int64_t *ret_bytes, struct agx_error **err) AGX_MUST_CHECK;

/* In the largest unit that divides it ("512m", "1000"); parses back exactly. Returns `out`. */
char *agx_size_format(int64_t bytes, char out[AGX_SIZE_TEXT_SIZE]);

#endif

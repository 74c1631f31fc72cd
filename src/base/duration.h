/*
 * duration.h: durations in Go's syntax ("1h30m", "1.5s", "300ms"), in nanoseconds.
 *
 * A text is an optional sign, then one or more numbers, each with an optional fraction and with a
 * unit: ns, us (or with a micro sign), ms, s, m, h. "0" needs no unit.
 */
#ifndef AGX_BASE_DURATION_H
#define AGX_BASE_DURATION_H

#include "base/error.h"
#include "base/str.h"

/* Room for the longest, "-2562047h47m16.854775808s", and its NUL. */
#define AGX_DURATION_TEXT_SIZE 32

/* -AGX_INVALID_ARGUMENT for other texts; -AGX_OUT_OF_RANGE past 292 years. */
int agx_duration_parse(struct agx_str text, int64_t *ret_ns, struct agx_error **err) AGX_MUST_CHECK;

/* As Go prints it: "1h30m0s", "1.5s", "300ms", "0s". Returns `out`. */
char *agx_duration_format(int64_t ns, char out[AGX_DURATION_TEXT_SIZE]);

#endif

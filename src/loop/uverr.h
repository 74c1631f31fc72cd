/*
 * uverr.h: the only adapter from libuv's codes (UV_*, negative) to our errors.
 */
#ifndef AGX_LOOP_UVERR_H
#define AGX_LOOP_UVERR_H

#include "base/error.h"

/* Maps a negative UV_* to a code. */
enum agx_code agx_uverr_code(int uv);

/* As agx_error_errno(), for a negative UV_*: its text becomes the cause. Returns -code. */
int agx_uverr_set(struct agx_error **err, int uv, const char *fmt, ...) AGX_PRINTF(3, 4);

#endif

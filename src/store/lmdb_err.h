/* lmdb_err.h: LMDB's codes as our errors. */
#ifndef AGX_STORE_LMDB_ERR_H
#define AGX_STORE_LMDB_ERR_H

#include "base/error.h"

/*
 * As agx_error_errno(), for a code of LMDB (positive: an errno). Full disk, map or memory:
 * RESOURCE_EXHAUSTED. A changed or damaged file: DATA_LOSS. All else is the disk's fault:
 * UNAVAILABLE, because the client did nothing wrong and may retry.
 */
int agx_lmdb_err_set(struct agx_error **err, int code, const char *fmt, ...) AGX_PRINTF(3, 4);

#endif

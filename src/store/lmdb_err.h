/* lmdb_err.h: LMDB's codes as our errors. */
#ifndef AGX_STORE_LMDB_ERR_H
#define AGX_STORE_LMDB_ERR_H

#include "base/error.h"

/*
 * As agx_error_errno(), for a code of LMDB (positive: an errno). Full disk, map or memory:
 * RESOURCE_EXHAUSTED. A file that is no longer what it was: DATA_LOSS. All else is the disk's:
 * UNAVAILABLE, for a client cannot help it and may try again.
 */
int agx_lmdb_err_set(struct agx_error **err, int code, const char *fmt, ...) AGX_PRINTF(3, 4);

#endif

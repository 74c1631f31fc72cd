/* lmdb_err.c: LMDB's codes as our errors. */
#include "store/lmdb_err.h"

#include <lmdb.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

static enum agx_code code_of(int code)
{
    switch (code) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case MDB_MAP_FULL:
    case MDB_TXN_FULL:
        return AGX_RESOURCE_EXHAUSTED;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE:
    case MDB_CURSOR_FULL:
    case MDB_NOTFOUND:
        return AGX_DATA_LOSS;
    case MDB_VERSION_MISMATCH:
        return AGX_FAILED_PRECONDITION;
    default:
        return AGX_UNAVAILABLE;
    }
}

int agx_lmdb_err_set(struct agx_error **err, int code, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return agx_error_set(err, code_of(code), "%s: %s", text, mdb_strerror(code));
}

/*
 * uverr.c: on Linux a UV_* code is a negated errno, except libuv's own codes: end of file, the
 * results of getaddrinfo() (-3000 and below) and "unknown".
 */
#include "loop/uverr.h"

#include <assert.h>
#include <stdio.h>
#include <uv.h>

#include "base/banned.h"

static bool is_errno(int uv)
{
    return uv > UV_EAI_ADDRFAMILY;
}

enum agx_code agx_uverr_code(int uv)
{
    assert(uv < 0);
    switch (uv) {
    case UV_EOF: /* the other side has closed */
    case UV_EAI_AGAIN:
        return AGX_UNAVAILABLE;
    case UV_EAI_NONAME:
    case UV_EAI_NODATA:
        return AGX_NOT_FOUND;
    case UV_EAI_MEMORY:
        return AGX_RESOURCE_EXHAUSTED;
    case UV_EAI_CANCELED:
        return AGX_CANCELLED;
    case UV_UNKNOWN:
        return AGX_UNKNOWN;
    default:
        return is_errno(uv) ? agx_code_from_errno(-uv) : AGX_INVALID_ARGUMENT;
    }
}

int agx_uverr_set(struct agx_error **err, int uv, const char *fmt, ...)
{
    int r = -(int)agx_uverr_code(uv);
    _cleanup_free_ char *message = NULL;
    char text[128];
    va_list ap;

    if (!err)
        return r;
    va_start(ap, fmt);
    if (vasprintf(&message, fmt, ap) < 0)
        message = NULL;
    va_end(ap);
    if (is_errno(uv))
        return agx_error_errno(err, -uv, "%s", message ? message : fmt);
    (void)agx_error_set(err, (enum agx_code) - r, "%s", uv_strerror_r(uv, text, sizeof(text)));
    return agx_error_wrap(err, r, "%s", message ? message : fmt);
}

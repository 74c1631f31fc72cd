/*
 * error.c: makes, wraps and prints errors.
 *
 * Invariant: making an error never fails and never aborts. Without memory the shared static error
 * `no_memory` is used instead; agx_error_free() recognises it and does not free it.
 */
#include "base/error.h"

#include "base/banned.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct agx_error no_memory = {
    .code = AGX_RESOURCE_EXHAUSTED,
    .sys_errno = ENOMEM,
    .message = (char *)"out of memory",
};

static const char *const code_names[] = {
    [AGX_OK] = "OK",
    [AGX_CANCELLED] = "CANCELLED",
    [AGX_UNKNOWN] = "UNKNOWN",
    [AGX_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [AGX_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [AGX_NOT_FOUND] = "NOT_FOUND",
    [AGX_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [AGX_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [AGX_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [AGX_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [AGX_ABORTED] = "ABORTED",
    [AGX_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [AGX_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [AGX_INTERNAL] = "INTERNAL",
    [AGX_UNAVAILABLE] = "UNAVAILABLE",
    [AGX_DATA_LOSS] = "DATA_LOSS",
    [AGX_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

const char *agx_code_name(enum agx_code code)
{
    if ((size_t)code >= AGX_ARRAY_LEN(code_names))
        return "UNKNOWN";
    return code_names[code];
}

enum agx_code agx_code_from_errno(int sys_errno)
{
    switch (sys_errno) {
    case ECANCELED:
        return AGX_CANCELLED;
    case EINVAL:
    case ENAMETOOLONG:
    case EILSEQ:
        return AGX_INVALID_ARGUMENT;
    case ETIMEDOUT:
        return AGX_DEADLINE_EXCEEDED;
    case ENOENT:
    case ESRCH:
    case ENOTDIR:
        return AGX_NOT_FOUND;
    case EEXIST:
        return AGX_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return AGX_PERMISSION_DENIED;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return AGX_RESOURCE_EXHAUSTED;
    case EBUSY:
    case ENOTEMPTY:
    case EADDRINUSE:
    case ELOOP:
        return AGX_FAILED_PRECONDITION;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
        return AGX_UNIMPLEMENTED;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return AGX_UNAVAILABLE;
    default:
        return AGX_INTERNAL;
    }
}

/* A new error with a formatted message, or the static one. Never NULL. */
AGX_PRINTF(3, 0)
static struct agx_error *error_new(enum agx_code code, int sys_errno, const char *fmt, va_list ap)
{
    struct agx_error *e = calloc(1, sizeof(*e));

    if (!e)
        return &no_memory;
    e->code = code;
    e->sys_errno = sys_errno;
    if (vasprintf(&e->message, fmt, ap) < 0) {
        free(e);
        return &no_memory;
    }
    return e;
}

int(agx_error_set)(struct agx_error **err, enum agx_code code, const char *fmt, ...)
{
    va_list ap;

    assert(code != AGX_OK);
    if (!err)
        return -(int)code;
    assert(!*err);
    va_start(ap, fmt);
    *err = error_new(code, 0, fmt, ap);
    va_end(ap);
    return -(int)code;
}

int(agx_error_no_memory)(struct agx_error **err)
{
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "out of memory");
}

int(agx_error_errno)(struct agx_error **err, int sys_errno, const char *fmt, ...)
{
    enum agx_code code = agx_code_from_errno(sys_errno);
    struct agx_error *root = NULL, *e;
    char text[128];
    va_list ap;

    if (!err)
        return -(int)code;
    assert(!*err);
    (void)agx_error_set(&root, code, "%s", strerror_r(sys_errno, text, sizeof(text)));
    va_start(ap, fmt);
    e = error_new(code, sys_errno, fmt, ap);
    va_end(ap);
    if (e == &no_memory)
        root = agx_error_free(root);
    else
        e->cause = root;
    *err = e;
    return -(int)code;
}

int(agx_error_wrap)(struct agx_error **err, int r, const char *fmt, ...)
{
    struct agx_error *e;
    va_list ap;

    assert(r < 0);
    if (!err || !*err)
        return r;
    va_start(ap, fmt);
    e = error_new((enum agx_code) - r, (*err)->sys_errno, fmt, ap);
    va_end(ap);
    if (e == &no_memory)
        return r; /* the cause alone says more than "out of memory" */
    e->cause = *err;
    *err = e;
    return r;
}

static struct agx_error_remote *remote_free(struct agx_error_remote *m)
{
    if (!m)
        return NULL;
    free(m->type);
    free(m->traceback);
    free(m);
    return NULL;
}

/* NULL without memory. */
static struct agx_error_remote *remote_new(const char *type, const char *traceback,
                                           const int *returncode)
{
    struct agx_error_remote *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->type = strdup(type);
    m->traceback = traceback ? strdup(traceback) : NULL;
    m->has_returncode = returncode != NULL;
    m->returncode = returncode ? *returncode : 0;
    if (!m->type || (traceback && !m->traceback))
        return remote_free(m);
    return m;
}

void agx_error_set_remote(struct agx_error *e, const char *type, const char *traceback,
                          const int *returncode)
{
    struct agx_error_remote *m;

    if (!e || e == &no_memory)
        return;
    m = remote_new(type, traceback, returncode);
    if (m) {
        remote_free(e->remote);
        e->remote = m;
    }
}

/* The outermost remote part in the chain: wrapping keeps it. */
static const struct agx_error_remote *find_remote(const struct agx_error *e)
{
    while (e && !e->remote)
        e = e->cause;
    return e ? e->remote : NULL;
}

enum agx_code agx_error_code(const struct agx_error *e)
{
    return e ? e->code : AGX_OK;
}

const char *agx_error_type(const struct agx_error *e)
{
    const struct agx_error_remote *m = find_remote(e);

    return m ? m->type : NULL;
}

const char *agx_error_traceback(const struct agx_error *e)
{
    const struct agx_error_remote *m = find_remote(e);

    return m ? m->traceback : NULL;
}

bool agx_error_returncode(const struct agx_error *e, int *ret_code)
{
    const struct agx_error_remote *m = find_remote(e);

    if (!m || !m->has_returncode)
        return false;
    *ret_code = m->returncode;
    return true;
}

void agx_error_propagate(struct agx_error **err, struct agx_error **take_from)
{
    struct agx_error *e = AGX_TAKE_PTR(*take_from);

    if (err && !*err)
        *err = e;
    else
        agx_error_free(e);
}

struct agx_error *agx_error_dup(const struct agx_error *e)
{
    struct agx_error *d;

    if (!e)
        return NULL;
    d = calloc(1, sizeof(*d));
    if (!d)
        return &no_memory;
    d->code = e->code;
    d->sys_errno = e->sys_errno;
    d->message = strdup(e->message);
    if (!d->message) {
        free(d);
        return &no_memory;
    }
    if (e->remote)
        agx_error_set_remote(d, e->remote->type, e->remote->traceback,
                             e->remote->has_returncode ? &e->remote->returncode : NULL);
    d->cause = agx_error_dup(e->cause);
    return d;
}

char *agx_error_format(const struct agx_error *e, char *out, size_t size)
{
    size_t used = 0;

    if (size > 0)
        out[0] = '\0';
    for (; e && used < size; e = e->cause) {
        int n = snprintf(out + used, size - used, "%s%s", used > 0 ? ": " : "", e->message);

        if (n < 0)
            break;
        used += (size_t)n;
    }
    return out;
}

struct agx_error *agx_error_free(struct agx_error *e)
{
    while (e && e != &no_memory) {
        struct agx_error *cause = e->cause;

        free(e->message);
        remote_free(e->remote);
        free(e);
        e = cause;
    }
    return NULL;
}

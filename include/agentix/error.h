/*
 * error.h: how functions of libagentix fail.
 *
 * A function that can fail returns int: 0 or more on success, -(enum agx_code) on failure, and
 * takes `struct agx_error **err` last. *err must be NULL on entry; it is set on failure only, and
 * the caller then frees it. `err` may be NULL where only the code matters. The codes are gRPC's
 * canonical ones.
 *
 *     struct agx_error *err = NULL;
 *     char text[512];
 *
 *     if (agx_runtime_open(&options, &rt, &err) < 0) {
 *         fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
 *         err = agx_error_free(err);
 *     }
 */
#ifndef AGENTIX_ERROR_H
#define AGENTIX_ERROR_H

#include <agentix/abi.h>

#include <stdbool.h>
#include <stddef.h>

AGX_BEGIN_DECLS

enum agx_code {
    AGX_OK = 0,
    AGX_CANCELLED = 1,
    AGX_UNKNOWN = 2,
    AGX_INVALID_ARGUMENT = 3,
    AGX_DEADLINE_EXCEEDED = 4,
    AGX_NOT_FOUND = 5,
    AGX_ALREADY_EXISTS = 6,
    AGX_PERMISSION_DENIED = 7,
    AGX_RESOURCE_EXHAUSTED = 8,
    AGX_FAILED_PRECONDITION = 9,
    AGX_ABORTED = 10,
    AGX_OUT_OF_RANGE = 11,
    AGX_UNIMPLEMENTED = 12,
    AGX_INTERNAL = 13,
    AGX_UNAVAILABLE = 14,
    AGX_DATA_LOSS = 15,
    AGX_UNAUTHENTICATED = 16
};

struct agx_error;

AGX_PUBLIC enum agx_code agx_error_code(const struct agx_error *e);

/* "outer: inner: root", as far as it fits into `size` bytes; always ends in NUL. Returns `out`. */
AGX_PUBLIC char *agx_error_format(const struct agx_error *e, char *out, size_t size);

/*
 * The details of a failed remote call. The type is the name of the exception's class, or a name
 * from the runtime ("WorkerExited", "CallTimeout", "Cancelled", "ResultUnavailable", ...). Both are
 * NULL for errors of another origin; the traceback is also NULL if there was none. Both live as
 * long as `e`.
 */
AGX_PUBLIC const char *agx_error_type(const struct agx_error *e);
AGX_PUBLIC const char *agx_error_traceback(const struct agx_error *e);
/* True for a worker that died: its exit code, or the signal that ended it as a negative number. */
AGX_PUBLIC bool agx_error_returncode(const struct agx_error *e, int *ret_code);

/* The name of gRPC's code ("NOT_FOUND"), or "UNKNOWN". */
AGX_PUBLIC const char *agx_code_name(enum agx_code code);

/* Accepts NULL; returns NULL. */
AGX_PUBLIC struct agx_error *agx_error_free(struct agx_error *e);

AGX_END_DECLS

#endif

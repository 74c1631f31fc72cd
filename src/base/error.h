/*
 * error.h: one error type for the whole project: code, message, cause.
 *
 * A function that can fail returns int: 0 or more on success, -(enum agx_code) on failure, and
 * takes `struct agx_error **err` last. `*err` is NULL on entry, untouched on success; `err` may be
 * NULL. The codes are gRPC's canonical ones, so the RPC edge needs no mapping. Foreign codes
 * (errno, UV_*, ...) are converted on the line that receives them, never returned.
 *
 * The installed header has the codes, printing and freeing; this one makes errors.
 */
#ifndef AGX_BASE_ERROR_H
#define AGX_BASE_ERROR_H

#include "agentix/error.h"
#include "base/macros.h"

#include <stdarg.h>

/* Details of a failure that another process reported. */
struct agx_error_remote {
    char *type;      /* the exception's class, or the runtime's own error */
    char *traceback; /* NULL: none */
    bool has_returncode;
    int returncode; /* exit status of a dead process; negative: a signal */
};

struct agx_error {
    enum agx_code code;
    int sys_errno;                   /* positive errno, or 0 */
    char *message;                   /* what we tried, on which object */
    struct agx_error *cause;         /* owned; NULL at the root */
    struct agx_error_remote *remote; /* owned; NULL for our own errors */
};

/* Sets *err and returns -code, so that callers write `return agx_error_set(...)`. */
int agx_error_set(struct agx_error **err, enum agx_code code, const char *fmt, ...)
    AGX_PRINTF(3, 4);

/* -AGX_RESOURCE_EXHAUSTED, "out of memory": where it was a limit, say which with agx_error_set. */
int agx_error_no_memory(struct agx_error **err);

/* The same from errno: the code follows from it and its text becomes the cause's. */
int agx_error_errno(struct agx_error **err, int sys_errno, const char *fmt, ...) AGX_PRINTF(3, 4);

/* Wraps *err with a message; returns `r` (negative) unchanged. */
int agx_error_wrap(struct agx_error **err, int r, const char *fmt, ...) AGX_PRINTF(3, 4);

#ifdef __clang_analyzer__
/* clang-tidy sees one file at a time: this tells it that these four return a negative code. */
#define AGX_ERROR_NEGATIVE(call)                                                                   \
    __extension__({                                                                                \
        int agx_error_r_ = (call);                                                                 \
        if (agx_error_r_ >= 0)                                                                     \
            __builtin_unreachable();                                                               \
        agx_error_r_;                                                                              \
    })
#define agx_error_set(...) AGX_ERROR_NEGATIVE((agx_error_set)(__VA_ARGS__))
#define agx_error_no_memory(...) AGX_ERROR_NEGATIVE((agx_error_no_memory)(__VA_ARGS__))
#define agx_error_errno(...) AGX_ERROR_NEGATIVE((agx_error_errno)(__VA_ARGS__))
#define agx_error_wrap(...) AGX_ERROR_NEGATIVE((agx_error_wrap)(__VA_ARGS__))
#endif

/*
 * Adds the details of another process to *err, which agx_error_set() has just made. `traceback` and
 * `returncode` may be NULL. Without memory the error stays unchanged.
 */
void agx_error_set_remote(struct agx_error *e, const char *type, const char *traceback,
                          const int *returncode);

/* Moves `*take_from` into *err if *err is empty, otherwise frees it (the first failure wins). */
void agx_error_propagate(struct agx_error **err, struct agx_error **take_from);

/* A deep copy; without memory the static out-of-memory error. */
struct agx_error *agx_error_dup(const struct agx_error *e);

/* Maps an errno to a code. */
enum agx_code agx_code_from_errno(int sys_errno);

static inline void agx_error_freep(struct agx_error **e)
{
    *e = agx_error_free(*e);
}

#endif

/*
 * function_abi.h: the binary interface between a shared object and the worker that loads it.
 * Include <agentix/function.h>, which documents its use.
 *
 * A shared object needs no symbols of the worker: every call passes a table of its functions, so
 * the same object works in agentix-worker and in a Python worker. Tables only grow at their end,
 * and each growth increments AGX_FUNCTION_ABI. A worker refuses an object with a higher number than
 * its own, and accepts lower ones.
 */
#ifndef AGENTIX_FUNCTION_ABI_H
#define AGENTIX_FUNCTION_ABI_H

#include <agentix/abi.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

AGX_BEGIN_DECLS

#define AGX_FUNCTION_ABI 1u

/* Borrowed bytes; text is UTF-8. No NUL at the end. */
struct agx_fn_bytes {
    const char *ptr;
    size_t len;
};

enum agx_fn_type {
    AGX_FN_NIL,
    AGX_FN_BOOL,
    AGX_FN_INT,  /* values that fit into int64_t */
    AGX_FN_UINT, /* above INT64_MAX only */
    AGX_FN_FLOAT,
    AGX_FN_STR,
    AGX_FN_BIN,
    AGX_FN_ARRAY,
    AGX_FN_MAP,
    AGX_FN_EXT
};

struct agx_fn_value {
    enum agx_fn_type type;
    int ext_type; /* EXT */
    union {
        int boolean;
        int64_t i;
        uint64_t u;
        double f;
        struct agx_fn_bytes bytes; /* STR, BIN, EXT */
        uint32_t count;            /* ARRAY: elements; MAP: pairs */
    } as;
    struct agx_fn_bytes raw; /* the whole value as msgpack */
};

/* Walks the values inside a container. Its fields are the worker's own. */
struct agx_fn_reader {
    const char *at, *end;
};

#define AGX_FN_NDIM_MAX 64

/* A numpy array: elements in C order. */
struct agx_fn_ndarray {
    struct agx_fn_bytes dtype; /* "<f8", "|u1" */
    unsigned ndim;
    uint64_t shape[AGX_FN_NDIM_MAX];
    struct agx_fn_bytes data;
};

struct agx_fn_ops;

/* A running call. The worker stores more after it. */
struct agx_fn_call {
    const struct agx_fn_ops *ops;
};

/* The worker's side of function.h, in the same order. */
struct agx_fn_ops {
    int (*arg)(struct agx_fn_call *c, unsigned i, struct agx_fn_value *ret);
    int (*arg_as)(struct agx_fn_call *c, unsigned i, enum agx_fn_type want,
                  struct agx_fn_value *ret);
    void (*args)(struct agx_fn_call *c, struct agx_fn_value *ret_args,
                 struct agx_fn_value *ret_kwargs);
    int (*open)(struct agx_fn_call *c, const struct agx_fn_value *v, struct agx_fn_reader *ret);
    int (*read)(struct agx_fn_call *c, struct agx_fn_reader *r, struct agx_fn_value *ret);
    int (*ndarray)(struct agx_fn_call *c, const struct agx_fn_value *v, struct agx_fn_ndarray *ret);
    void (*put)(struct agx_fn_call *c, const struct agx_fn_value *v);
    void (*put_raw)(struct agx_fn_call *c, const void *bytes, size_t len);
    void (*put_ndarray)(struct agx_fn_call *c, const struct agx_fn_ndarray *a);
    int (*emit)(struct agx_fn_call *c);
    int (*next)(struct agx_fn_call *c, struct agx_fn_value *ret);
    int (*fail)(struct agx_fn_call *c, const char *type, const char *fmt, va_list ap);
    int (*cancelled)(struct agx_fn_call *c);
    int (*cancel_fd)(struct agx_fn_call *c);
    int (*wait)(struct agx_fn_call *c, int64_t ms);
    int64_t (*time_left)(struct agx_fn_call *c);
    const char *(*call_id)(struct agx_fn_call *c);
};

enum agx_fn_kind { AGX_FN_UNARY, AGX_FN_STREAM, AGX_FN_BIDI };

/* Its calls run one at a time, in the order of arrival; for functions that are not thread-safe. */
#define AGX_FUNCTION_SERIAL 1u

struct agx_function {
    const char *name; /* letters, digits, '_', '.', '-' */
    enum agx_fn_kind kind;
    unsigned flags;     /* AGX_FUNCTION_SERIAL */
    const char *params; /* names, "a b scale?"; NULL: any arguments */
    int (*run)(struct agx_fn_call *call);
};

struct agx_function_table {
    uint32_t abi;           /* AGX_FUNCTION_ABI */
    uint32_t function_size; /* sizeof(struct agx_function) */
    const struct agx_function *functions;
    size_t count;
};

/* The export of a shared object, defined by AGX_FUNCTIONS(). */
extern AGX_PUBLIC const struct agx_function_table agentix_functions;

AGX_END_DECLS

#endif

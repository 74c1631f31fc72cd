/*
 * function.h: functions written in C (or C++) that any client can call by the reference
 * "c:<library>::<function>".
 *
 *     static int add(struct agx_fn_call *call)
 *     {
 *         int64_t a = 0, b = 0;
 *
 *         if (agx_fn_arg_int(call, 0, &a) < 0 || agx_fn_arg_int(call, 1, &b) < 0)
 *             return AGX_FN_FAILED;
 *         agx_fn_put_int(call, a + b);
 *         return 0;
 *     }
 *
 *     static const struct agx_function functions[] = {
 *         { "add", AGX_FN_UNARY, 0, "a b", add },
 *     };
 *     AGX_FUNCTIONS(functions);
 *
 *     cc -shared -fPIC -o libsums.so sums.c          called as c:sums::add
 *
 * A function returns 0 on success, negative on failure. A negative return after agx_fn_fail() or a
 * failed getter gives the client that error.
 *
 * Ownership: values from getters are borrowed from the call and valid until the function returns
 * (an item of agx_fn_next() until the next one). Values that are put are copied.
 *
 * Threads: each call runs in a thread of the worker, many at once, also of the same function unless
 * it has AGX_FUNCTION_SERIAL. Only one thread at a time may use a call, except agx_fn_cancelled()
 * and agx_fn_cancel_fd(), which any thread may use while the call runs.
 *
 * A crash, exit() or abort() ends the worker with all its calls, and their clients get an error.
 */
#ifndef AGENTIX_FUNCTION_H
#define AGENTIX_FUNCTION_H

#include <agentix/function_abi.h>

#define AGX_FN_FAILED (-1)
#define AGX_FN_CANCELLED (-2)

/* Registers an array of functions; once per shared object, at file level. */
#define AGX_FUNCTIONS(array)                                                                       \
    const struct agx_function_table agentix_functions = { AGX_FUNCTION_ABI,                        \
                                                          (uint32_t)sizeof(struct agx_function),   \
                                                          (array),                                 \
                                                          sizeof(array) / sizeof((array)[0]) }

#if defined(__GNUC__)
#define AGX_FN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define AGX_FN_PRINTF(fmt, first)
#endif

/* Makes the call end with that error once the function returns; the first error counts. Returns
 * AGX_FN_FAILED, for `return agx_fn_fail(call, "ValueError", "...")`. */
AGX_FN_PRINTF(3, 4)
static inline int agx_fn_fail(struct agx_fn_call *c, const char *type, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)c->ops->fail(c, type, fmt, ap);
    va_end(ap);
    return AGX_FN_FAILED;
}

/*
 * Arguments, by their position in `params`; arguments given by position and by name are already
 * matched. 1: *ret is the argument. 0: it is optional ('?') and was not given; *ret is unchanged,
 * which makes defaults easy. Negative: the argument has another type, and the call fails with
 * TypeError. Without `params`, `i` counts positional arguments.
 */
static inline int agx_fn_arg(struct agx_fn_call *c, unsigned i, struct agx_fn_value *ret)
{
    return c->ops->arg(c, i, ret);
}

static inline int agx_fn_arg_bool(struct agx_fn_call *c, unsigned i, int *ret)
{
    struct agx_fn_value v;
    int r = c->ops->arg_as(c, i, AGX_FN_BOOL, &v);

    if (r > 0)
        *ret = v.as.boolean;
    return r;
}

static inline int agx_fn_arg_int(struct agx_fn_call *c, unsigned i, int64_t *ret)
{
    struct agx_fn_value v;
    int r = c->ops->arg_as(c, i, AGX_FN_INT, &v);

    if (r > 0)
        *ret = v.as.i;
    return r;
}

/* Accepts an integer too. */
static inline int agx_fn_arg_float(struct agx_fn_call *c, unsigned i, double *ret)
{
    struct agx_fn_value v;
    int r = c->ops->arg_as(c, i, AGX_FN_FLOAT, &v);

    if (r > 0)
        *ret = v.as.f;
    return r;
}

static inline int agx_fn_arg_str(struct agx_fn_call *c, unsigned i, struct agx_fn_bytes *ret)
{
    struct agx_fn_value v;
    int r = c->ops->arg_as(c, i, AGX_FN_STR, &v);

    if (r > 0)
        *ret = v.as.bytes;
    return r;
}

static inline int agx_fn_arg_bin(struct agx_fn_call *c, unsigned i, struct agx_fn_bytes *ret)
{
    struct agx_fn_value v;
    int r = c->ops->arg_as(c, i, AGX_FN_BIN, &v);

    if (r > 0)
        *ret = v.as.bytes;
    return r;
}

/* All arguments as received: an array and a map. */
static inline void agx_fn_args(struct agx_fn_call *c, struct agx_fn_value *ret_args,
                               struct agx_fn_value *ret_kwargs)
{
    c->ops->args(c, ret_args, ret_kwargs);
}

/*
 * Reading inside a value. agx_fn_open() takes an array, a map or a model (extension 2, whose fields
 * are a map) and returns 0; other types fail with TypeError. agx_fn_read() returns 1 and one whole
 * value, in a map keys and values in turn, and 0 after the last.
 */
static inline int agx_fn_open(struct agx_fn_call *c, const struct agx_fn_value *v,
                              struct agx_fn_reader *ret)
{
    return c->ops->open(c, v, ret);
}

static inline int agx_fn_read(struct agx_fn_call *c, struct agx_fn_reader *r,
                              struct agx_fn_value *ret)
{
    return c->ops->read(c, r, ret);
}

/* The numpy array in an argument or item: 0, or negative with TypeError for other types. */
static inline int agx_fn_ndarray(struct agx_fn_call *c, const struct agx_fn_value *v,
                                 struct agx_fn_ndarray *ret)
{
    return c->ops->ndarray(c, v, ret);
}

#include <agentix/function_out.h>

#endif

/*
 * function_out.h: the second half of function.h: results, streams, input, cancellation. Include
 * <agentix/function.h>.
 */
#ifndef AGENTIX_FUNCTION_OUT_H
#define AGENTIX_FUNCTION_OUT_H

#include <agentix/function_abi.h>

#include <string.h>

/*
 * Writing the result, or the next item: one value, written in pieces if it is a container. A unary
 * function that puts nothing returns nil. An invalid value (text that is not UTF-8, two values,
 * half a map, no memory) fails the call when it is sent, so nothing needs a check here.
 */
static inline void agx_fn_put_nil(struct agx_fn_call *c)
{
    struct agx_fn_value v;

    v.type = AGX_FN_NIL;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_bool(struct agx_fn_call *c, int b)
{
    struct agx_fn_value v;

    v.type = AGX_FN_BOOL;
    v.as.boolean = b;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_int(struct agx_fn_call *c, int64_t i)
{
    struct agx_fn_value v;

    v.type = AGX_FN_INT;
    v.as.i = i;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_uint(struct agx_fn_call *c, uint64_t u)
{
    struct agx_fn_value v;

    v.type = AGX_FN_UINT;
    v.as.u = u;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_float(struct agx_fn_call *c, double f)
{
    struct agx_fn_value v;

    v.type = AGX_FN_FLOAT;
    v.as.f = f;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_str(struct agx_fn_call *c, const char *text, size_t len)
{
    struct agx_fn_value v;

    v.type = AGX_FN_STR;
    v.as.bytes.ptr = text;
    v.as.bytes.len = len;
    c->ops->put(c, &v);
}

static inline void agx_fn_put_cstr(struct agx_fn_call *c, const char *text)
{
    agx_fn_put_str(c, text, strlen(text));
}

static inline void agx_fn_put_bin(struct agx_fn_call *c, const void *bytes, size_t len)
{
    struct agx_fn_value v;

    v.type = AGX_FN_BIN;
    v.as.bytes.ptr = (const char *)bytes;
    v.as.bytes.len = len;
    c->ops->put(c, &v);
}

/* `count` values must follow. */
static inline void agx_fn_put_array(struct agx_fn_call *c, uint32_t count)
{
    struct agx_fn_value v;

    v.type = AGX_FN_ARRAY;
    v.as.count = count;
    c->ops->put(c, &v);
}

/* `count` keys, each with its value, must follow. Only text keys are accepted by every client. */
static inline void agx_fn_put_map(struct agx_fn_call *c, uint32_t count)
{
    struct agx_fn_value v;

    v.type = AGX_FN_MAP;
    v.as.count = count;
    c->ops->put(c, &v);
}

/* Msgpack as it is, such as `raw` of a value. */
static inline void agx_fn_put_raw(struct agx_fn_call *c, const void *bytes, size_t len)
{
    c->ops->put_raw(c, bytes, len);
}

static inline void agx_fn_put_ndarray(struct agx_fn_call *c, const struct agx_fn_ndarray *a)
{
    c->ops->put_ndarray(c, a);
}

/*
 * Sends the put value as the next item of a stream or of bidi output. Blocks while the receiver
 * takes no more. 0, or negative: the call was cancelled or failed, and the function should return
 * that value.
 */
static inline int agx_fn_emit(struct agx_fn_call *c)
{
    return c->ops->emit(c);
}

/* The next item of bidi input; blocks. 1: *ret is valid until the next call; 0: the client has sent
 * its last; AGX_FN_CANCELLED. */
static inline int agx_fn_next(struct agx_fn_call *c, struct agx_fn_value *ret)
{
    return c->ops->next(c, ret);
}

/* Nonzero after the call was cancelled. A long computation should check it regularly, and return
 * AGX_FN_CANCELLED. */
static inline int agx_fn_cancelled(struct agx_fn_call *c)
{
    return c->ops->cancelled(c);
}

/* A descriptor that becomes readable on cancellation, for poll(2); negative on failure. The worker
 * closes it. */
static inline int agx_fn_cancel_fd(struct agx_fn_call *c)
{
    return c->ops->cancel_fd(c);
}

/* Sleeps. 0 when the time is over, AGX_FN_CANCELLED at once when the call is cancelled. */
static inline int agx_fn_wait_ms(struct agx_fn_call *c, int64_t ms)
{
    return c->ops->wait(c, ms);
}

/* Milliseconds until the client's time limit for this call; negative when it set none. */
static inline int64_t agx_fn_time_left_ms(struct agx_fn_call *c)
{
    return c->ops->time_left(c);
}

/* The client's id of the call; for logs. */
static inline const char *agx_fn_call_id(struct agx_fn_call *c)
{
    return c->ops->call_id(c);
}

#endif

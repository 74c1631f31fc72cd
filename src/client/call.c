/* call.c: the installed functions for calls: those of the session, plus clock, socket and waiting.
 */
#include "client/runtime_internal.h"

#include "base/banned.h"
#include "base/clock.h"
#include "base/utf8.h"

static struct agx_runtime *runtime_of(const struct agx_call *call)
{
    return agx_session_owner(agx_session_of(call));
}

static int read_options(const struct agx_call_options *o, struct agx_call_options *ret,
                        struct agx_error **err)
{
    *ret = (struct agx_call_options)AGX_CALL_OPTIONS_INIT;
    if (!o || o->size < offsetof(struct agx_call_options, args))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "options: begin with AGX_CALL_OPTIONS_INIT");
    memcpy(ret, o, AGX_MIN(o->size, sizeof(*ret)));
    if (!ret->target || !agx_utf8_valid(agx_str_from(ret->target)))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "options: target must be a text");
    if ((unsigned)ret->kind > AGX_CALL_BIDI)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "options: no kind of call has number %u",
                             (unsigned)ret->kind);
    return 0;
}

int agx_call_start(struct agx_runtime *rt, const struct agx_call_options *options,
                   struct agx_call **ret_call, struct agx_error **err)
{
    struct agx_call_options o;
    struct agx_call_request q;
    int r = read_options(options, &o, err);

    if (r < 0)
        return r;
    q = (struct agx_call_request){
        .kind = (enum agx_remote_kind)o.kind,
        .target = agx_str_from(o.target),
        .args = agx_str_bytes(o.args, o.args_len),
        .kwargs = agx_str_bytes(o.kwargs, o.kwargs_len),
        .timeout_ms = o.timeout_ms,
        .user = o.user,
    };
    r = agx_session_call(agx_runtime_session(rt), &q, agx_clock_ms(), ret_call, err);
    if (r == 0)
        agx_runtime_flush(rt);
    return r;
}

void agx_call_cancel(struct agx_call *call)
{
    agx_session_cancel(call, agx_clock_ms());
    agx_runtime_flush(runtime_of(call));
}

struct agx_call *agx_call_free(struct agx_call *call)
{
    struct agx_runtime *rt;

    if (!call)
        return NULL;
    rt = runtime_of(call);
    call = agx_session_release(call, agx_clock_ms());
    agx_runtime_flush(rt);
    return call;
}

int agx_call_take(struct agx_call *call, const void **ret_value, size_t *ret_len,
                  struct agx_error **err)
{
    struct agx_str value;
    int r = agx_session_take(call, &value, agx_clock_ms(), err);

    if (r == AGX_TAKE_VALUE) {
        *ret_value = value.ptr;
        *ret_len = value.len;
        agx_runtime_flush(runtime_of(call)); /* a credit may have become due */
    }
    return r;
}

/* As agx_call_take(), but waits instead of returning AGX_TAKE_NOTHING. */
static int take_wait(struct agx_call *call, int timeout_ms, const void **ret_value, size_t *ret_len,
                     struct agx_error **err)
{
    struct agx_runtime *rt = runtime_of(call);
    uint64_t deadline = agx_runtime_deadline(timeout_ms);
    int r;

    while ((r = agx_call_take(call, ret_value, ret_len, err)) == AGX_TAKE_NOTHING) {
        if (!agx_runtime_pump(rt, deadline))
            return agx_error_set(err, AGX_DEADLINE_EXCEEDED, "nothing came within %d ms",
                                 timeout_ms);
    }
    return r;
}

int agx_call_wait(struct agx_call *call, int timeout_ms, const void **ret_value, size_t *ret_len,
                  struct agx_error **err)
{
    int r;

    if (agx_session_call_kind(call) != AGX_REMOTE_UNARY)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "only a unary call has one result");
    r = take_wait(call, timeout_ms, ret_value, ret_len, err);
    if (r == AGX_TAKE_END)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "the result was already taken");
    return AGX_MIN(r, 0);
}

int agx_stream_next(struct agx_call *call, int timeout_ms, const void **ret_item, size_t *ret_len,
                    struct agx_error **err)
{
    int r;

    if (agx_session_call_kind(call) == AGX_REMOTE_UNARY)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "a unary call has no items");
    r = take_wait(call, timeout_ms, ret_item, ret_len, err);
    return r == AGX_TAKE_END ? 0 : r;
}

bool agx_call_can_send(const struct agx_call *call)
{
    return agx_session_can_send(call);
}

int agx_call_send(struct agx_call *call, const void *item, size_t len, struct agx_error **err)
{
    int r = agx_session_send(call, agx_str_bytes(item, len), agx_clock_ms(), err);

    agx_runtime_flush(runtime_of(call));
    return r;
}

int agx_call_send_wait(struct agx_call *call, int timeout_ms, const void *item, size_t len,
                       struct agx_error **err)
{
    uint64_t deadline = agx_runtime_deadline(timeout_ms);

    while (agx_session_wants_credit(call)) {
        if (!agx_runtime_pump(runtime_of(call), deadline))
            return agx_error_set(err, AGX_DEADLINE_EXCEEDED,
                                 "the function took no input within %d ms", timeout_ms);
    }
    return agx_call_send(call, item, len, err);
}

int agx_call_end_input(struct agx_call *call, struct agx_error **err)
{
    int r = agx_session_end_input(call, agx_clock_ms(), err);

    agx_runtime_flush(runtime_of(call));
    return r;
}

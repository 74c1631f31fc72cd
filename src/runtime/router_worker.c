/* router_worker.c: frames to the worker about a call, and handling of the worker's frames. */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "codec/frame.h"
#include "codec/mp_fields.h"

/*
 * Writes one small frame. If a lane is full, its call is lost: the router's caller stops reading
 * from clients long before, so only a client that ignores the protocol gets here, and losing its
 * call is better than losing the server.
 */
static void small_frame(struct agx_router *rt, struct agx_router_call *call,
                        enum agx_remote_lane lane, struct agx_str type, bool with_window)
{
    struct agx_buf *out = rt->io.lane(rt->user, lane);
    struct agx_mp_writer w;

    agx_frame_begin(&w, out);
    agx_mp_write_map(&w, with_window ? 4 : 2);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, type);
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, call->id);
    if (with_window) {
        agx_mp_write_str(&w, AGX_STR("n"));
        agx_mp_write_uint(&w, call->out_granted.n);
        agx_mp_write_str(&w, AGX_STR("bytes"));
        agx_mp_write_uint(&w, call->out_granted.bytes);
    }
    (void)!agx_frame_end(&w, rt->config.max_message, NULL);
}

void agx_router_send_cancel(struct agx_router *rt, struct agx_router_call *call)
{
    small_frame(rt, call, AGX_LANE_LOOP, AGX_STR("cancel"), false);
}

void agx_router_send_credit(struct agx_router *rt, struct agx_router_call *call)
{
    small_frame(rt, call, call->lane, AGX_STR("credit"), true);
}

enum { TYPE, ID, VALUE, ERROR, N, BYTES, CALLABLE, LANE };

static int need(const struct agx_mp_field *f, struct agx_error **err)
{
    if (f->present)
        return 0;
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "worker frame without '%.*s'",
                         AGX_STR_ARG(f->name));
}

/* An item: past its credit the worker is broken or hostile, and its memory must not become ours. */
static int on_item(struct agx_router *rt, struct agx_router_call *call, struct agx_str value,
                   struct agx_error **err)
{
    if (call->kind == AGX_REMOTE_UNARY)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "worker sent an item for a unary call");
    if (call->done)
        return 0;
    if (!agx_credit_left(&call->out_granted, &call->out))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "worker sent an item without credit");
    agx_credit_count(&call->out, value.len);
    agx_router_call_value(rt, call, value);
    if (!call->done)
        agx_router_call_grant(rt, call);
    return 0;
}

void agx_router_send_input_credit(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_client *c = call->client;
    struct agx_mp_writer w;
    struct agx_str payload;

    if (!c->proto1 || !c->conn || c->holding)
        return;
    agx_buf_clear(&rt->scratch);
    agx_mp_writer_init(&w, &rt->scratch);
    agx_mp_write_map(&w, 4);
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, call->call_id);
    agx_mp_write_str(&w, AGX_STR("n"));
    agx_mp_write_uint(&w, call->in_granted.n);
    agx_mp_write_str(&w, AGX_STR("bytes"));
    agx_mp_write_uint(&w, call->in_granted.bytes);
    agx_mp_write_str(&w, AGX_STR("seq"));
    agx_mp_write_uint(&w, call->in_seq);
    if (agx_mp_writer_end(&w, NULL) < 0)
        return;
    payload = agx_buf_peek(&rt->scratch);
    rt->io.emit(rt->user, c->conn, AGX_EV_CREDIT, &payload, 1);
}

/* The worker takes more input: the client may send it. */
static void on_input_credit(struct agx_router *rt, struct agx_router_call *call, uint64_t n,
                            uint64_t bytes)
{
    if (call->done || call->kind != AGX_REMOTE_BIDI)
        return;
    (void)agx_credit_raise(&call->in_granted, n, bytes);
    agx_router_send_input_credit(rt, call);
}

/* A frame about a call: the types of the table in docs/design/runtime-protocol.md, section 4. */
static int on_call_frame(struct agx_router *rt, struct agx_str type, struct agx_mp_field *f,
                         struct agx_error **err)
{
    struct agx_router_call *call = agx_router_call_find(rt, f[ID].value.u);
    int r = 0;

    if (!call)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "worker frame '%.*s' for no call of ours",
                             AGX_STR_ARG(type));
    if (agx_str_eq(type, AGX_STR("stream_item")))
        return f[VALUE].present ? on_item(rt, call, f[VALUE].raw, err) : need(&f[VALUE], err);
    if (agx_str_eq(type, AGX_STR("credit"))) {
        r = need(&f[N], err);
        if (r == 0)
            r = need(&f[BYTES], err);
        if (r == 0)
            on_input_credit(rt, call, f[N].value.u, f[BYTES].value.u);
        return r;
    }
    /* All other frames end the call. */
    if (agx_str_eq(type, AGX_STR("result"))) {
        r = need(&f[VALUE], err);
        if (r == 0 && call->kind != AGX_REMOTE_UNARY)
            r = agx_error_set(err, AGX_INVALID_ARGUMENT, "worker sent a result for a stream");
        if (r == 0)
            agx_router_call_value(rt, call, f[VALUE].raw);
    } else if (agx_str_eq(type, AGX_STR("error"))) {
        r = need(&f[ERROR], err);
        if (r == 0)
            agx_router_call_error(rt, call, f[ERROR].raw);
    } else {
        if (call->kind == AGX_REMOTE_UNARY)
            r = agx_error_set(err, AGX_INVALID_ARGUMENT, "worker ended a unary call as a stream");
        else
            agx_router_call_end(rt, call);
    }
    if (r == 0)
        agx_router_call_worker_done(rt, call);
    return r;
}

static bool is_call_frame(struct agx_str type)
{
    static const struct agx_str types[] = { { "result", 6 },
                                            { "error", 5 },
                                            { "stream_item", 11 },
                                            { "stream_end", 10 },
                                            { "credit", 6 } };

    for (size_t i = 0; i < AGX_ARRAY_LEN(types); i++) {
        if (agx_str_eq(type, types[i]))
            return true;
    }
    return false;
}

int agx_router_frame(struct agx_router *rt, struct agx_str frame, struct agx_error **err)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = {
        [TYPE] = { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) },
        [ID] = { AGX_STR("id"), AGX_MP_BIT(AGX_MP_UINT) },
        [VALUE] = { AGX_STR("value"), AGX_MP_ANY },
        [ERROR] = { AGX_STR("error"), AGX_MP_BIT(AGX_MP_MAP) },
        [N] = { AGX_STR("n"), AGX_MP_BIT(AGX_MP_UINT) },
        [BYTES] = { AGX_STR("bytes"), AGX_MP_BIT(AGX_MP_UINT) },
        [CALLABLE] = { AGX_STR("callable"), AGX_MP_BIT(AGX_MP_STR) | AGX_MP_BIT(AGX_MP_BIN) },
        [LANE] = { AGX_STR("lane"), AGX_MP_BIT(AGX_MP_UINT) },
    };
    int r;

    /* A value too large for any client ends its call; it is not the worker's fault. */
    limits.size = rt->config.max_message + AGX_FRAME_EXTRA;
    limits.length = limits.size;
    r = agx_mp_read_fields(frame, &limits, f, AGX_ARRAY_LEN(f), err);
    if (r < 0)
        return agx_error_wrap(err, r, "read a frame of the worker");
    r = need(&f[TYPE], err);
    if (r < 0)
        return r;
    if (is_call_frame(f[TYPE].value.bytes)) {
        r = need(&f[ID], err);
        return r < 0 ? r : on_call_frame(rt, f[TYPE].value.bytes, f, err);
    }
    if (agx_str_eq(f[TYPE].value.bytes, AGX_STR("lane")) && f[CALLABLE].present &&
        f[LANE].present && f[LANE].value.u < AGX_LANE_COUNT)
        agx_lane_hints_learn(rt->hints, f[CALLABLE].value.bytes,
                             (enum agx_remote_lane)f[LANE].value.u);
    return 0;
}

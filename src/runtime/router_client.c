/* router_client.c: handles the events of a client. */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "base/mem.h"
#include "codec/frame.h"
#include "codec/mp_fields.h"

enum {
    CALL_ID,
    CALLABLE,
    TARGET,
    DISPLAY_NAME,
    SHAPE,
    ARGS,
    KWARGS,
    TIMEOUT,
    /* The server's own fields in the worker's frame, which a client must not use. */
    TYPE,
    ID,
    KIND,
    FLAGS,
    MAX,
    N_REQUEST_FIELDS,
};

/* Checks a decoded request; true if it is valid. */
static bool check_request(const struct agx_mp_field *f, struct agx_str *ret_type,
                          const char **ret_message)
{
    enum agx_remote_kind kind;

    *ret_type = AGX_STR("BadRequest");
    for (int i = TYPE; i <= MAX; i++) {
        *ret_message =
            "a field of the request has a name that is reserved: type, id, kind, flags, max";
        if (f[i].present)
            return false;
    }
    *ret_message = "callable_payload and target exclude each other";
    if (f[CALLABLE].present && f[TARGET].present)
        return false;
    *ret_type = AGX_STR("KeyError");
    *ret_message = "'callable_payload'";
    if (!f[CALLABLE].present && !f[TARGET].present)
        return false;
    *ret_message = "'display_name'";
    if (!f[DISPLAY_NAME].present && !f[TARGET].present)
        return false;
    *ret_message = "'shape'";
    if (!f[SHAPE].present && !f[TARGET].present)
        return false;
    *ret_type = AGX_STR("ValidationError");
    *ret_message = "display_name: must not be empty";
    if (f[DISPLAY_NAME].present && f[DISPLAY_NAME].value.bytes.len == 0)
        return false;
    *ret_message = "target: must not be empty";
    if (f[TARGET].present && f[TARGET].value.bytes.len == 0)
        return false;
    *ret_message = "shape: must be 'unary', 'stream' or 'bidi'";
    return !f[SHAPE].present || agx_remote_kind_find(f[SHAPE].value.bytes, &kind);
}

/* A frame may be a little longer than the message in it. */
static size_t frame_max(const struct agx_router *rt)
{
    return rt->config.max_message + AGX_FRAME_EXTRA;
}

/* The call frame: our fields, then the client's own, copied as they are. */
static int send_call(struct agx_router *rt, const struct agx_router_call *call,
                     struct agx_str payload)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_buf *out = rt->io.lane(rt->user, call->lane);
    bool proto1 = call->client->proto1;
    struct agx_mp_reader reader;
    struct agx_mp_token map = { 0 };
    struct agx_mp_writer w;
    int r;

    limits.size = rt->config.max_message;
    r = agx_mp_reader_init(&reader, payload, &limits, NULL);
    if (r == 0)
        r = agx_mp_next(&reader, &map, NULL);
    if (r < 0)
        return r;
    agx_frame_begin(&w, out);
    agx_mp_write_map(&w, (size_t)map.count + 5);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, AGX_STR("call"));
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, call->id);
    agx_mp_write_str(&w, AGX_STR("kind"));
    agx_mp_write_str(&w, agx_remote_kind_name(call->kind));
    agx_mp_write_str(&w, AGX_STR("flags"));
    agx_mp_write_uint(&w, proto1 ? AGX_RECV_INT_KEYS | AGX_RECV_BYTE_DTYPES : 0);
    agx_mp_write_str(&w, AGX_STR("max"));
    agx_mp_write_uint(&w, call->client->max_message);
    agx_mp_write_raw(&w, agx_str_bytes(reader.at, (size_t)(reader.end - reader.at)));
    return agx_frame_end(&w, frame_max(rt), NULL);
}

static void begin_call(struct agx_router *rt, struct agx_client *c, enum agx_remote_kind kind,
                       const struct agx_mp_field *f, struct agx_str payload, uint64_t now_ms)
{
    struct agx_str call_id = f[CALL_ID].value.bytes;
    struct agx_router_call *call = agx_map_get(&c->calls, call_id);

    if (call && call->done && call->sent_seq == call->seq) {
        /* Whoever uses an id again has seen the end of its last call. */
        agx_router_call_forget(rt, call);
        call = NULL;
    }
    if (call) { /* it runs, or its end is not sent yet and must not be lost */
        agx_router_refuse(rt, c, kind, call_id, AGX_STR("DuplicateCall"),
                          "a call with this call_id is in progress");
        return;
    }
    if (rt->draining) {
        agx_router_refuse(rt, c, kind, call_id, AGX_STR("ServerShutdown"),
                          "the server was told to stop");
        return;
    }
    if (c->calls.len >= rt->config.max_calls ||
        !(call = agx_router_call_new(rt, c, call_id, kind))) {
        agx_router_refuse(rt, c, kind, call_id, AGX_STR("TooManyCalls"),
                          "too many calls are in progress or not acknowledged");
        return;
    }
    if (f[TIMEOUT].present && f[TIMEOUT].value.u < UINT64_MAX - now_ms) {
        if (agx_heap_put(&rt->deadlines, &call->deadline, now_ms + f[TIMEOUT].value.u) < 0)
            abort();
    }
    call->lane =
        agx_lane_hints_get(rt->hints, f[f[TARGET].present ? TARGET : CALLABLE].value.bytes);
    if (send_call(rt, call, payload) < 0) {
        agx_router_call_fail(rt, call, AGX_STR("TooManyCalls"),
                             "too much is waiting for the worker to take a request of %zu bytes",
                             payload.len);
        agx_router_call_worker_done(rt, call);
    }
}

static void on_request(struct agx_router *rt, struct agx_client *c, enum agx_remote_kind kind,
                       struct agx_str payload, uint64_t now_ms)
{
    const unsigned text = AGX_MP_BIT(AGX_MP_STR), nil = AGX_MP_BIT(AGX_MP_NIL);
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[N_REQUEST_FIELDS] = {
        [CALL_ID] = { AGX_STR("call_id"), text },
        [CALLABLE] = { AGX_STR("callable_payload"), text | AGX_MP_BIT(AGX_MP_BIN) },
        [TARGET] = { AGX_STR("target"), text },
        [DISPLAY_NAME] = { AGX_STR("display_name"), text },
        [SHAPE] = { AGX_STR("shape"), text },
        [ARGS] = { AGX_STR("args"), AGX_MP_BIT(AGX_MP_ARRAY) | nil },
        [KWARGS] = { AGX_STR("kwargs"), AGX_MP_BIT(AGX_MP_MAP) | nil },
        [TIMEOUT] = { AGX_STR("timeout_ms"), AGX_MP_BIT(AGX_MP_UINT) },
        [TYPE] = { AGX_STR("type"), AGX_MP_ANY },
        [ID] = { AGX_STR("id"), AGX_MP_ANY },
        [KIND] = { AGX_STR("kind"), AGX_MP_ANY },
        [FLAGS] = { AGX_STR("flags"), AGX_MP_ANY },
        [MAX] = { AGX_STR("max"), AGX_MP_ANY },
    };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str type = AGX_STR("BadRequest");
    const char *message = "missing call_id";
    char text_of[512];
    int r;

    limits.size = rt->config.max_message;
    limits.length = rt->config.max_message;
    r = agx_mp_read_fields(payload, &limits, f, AGX_ARRAY_LEN(f), &err);
    if (!f[CALL_ID].present || f[CALL_ID].value.type != AGX_MP_STR)
        agx_router_refuse(rt, c, kind, AGX_STR(""), type, message);
    else if (r < 0)
        agx_router_refuse(rt, c, kind, f[CALL_ID].value.bytes, type,
                          agx_error_format(err, text_of, sizeof(text_of)));
    else if (!check_request(f, &type, &message))
        agx_router_refuse(rt, c, kind, f[CALL_ID].value.bytes, type, message);
    else
        begin_call(rt, c, kind, f, payload, now_ms);
}

enum { M_CALL_ID, M_ITEM, M_SEQ, M_N, M_BYTES, N_MESSAGE_FIELDS };

/* Reads a message about a call that is in progress; NULL when there is none, which is no fault:
 * calls end. */
static struct agx_router_call *read_message(struct agx_client *c, struct agx_str payload,
                                            struct agx_mp_field f[N_MESSAGE_FIELDS])
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    const unsigned number = AGX_MP_BIT(AGX_MP_UINT);
    struct agx_router_call *call;

    f[M_CALL_ID] = (struct agx_mp_field){ AGX_STR("call_id"), AGX_MP_BIT(AGX_MP_STR) };
    f[M_ITEM] = (struct agx_mp_field){ AGX_STR("item"), AGX_MP_ANY };
    f[M_SEQ] = (struct agx_mp_field){ AGX_STR("seq"), number };
    f[M_N] = (struct agx_mp_field){ AGX_STR("n"), number };
    f[M_BYTES] = (struct agx_mp_field){ AGX_STR("bytes"), number };
    if (agx_mp_read_fields(payload, &limits, f, N_MESSAGE_FIELDS, NULL) < 0 ||
        !f[M_CALL_ID].present)
        return NULL;
    call = agx_map_get(&c->calls, f[M_CALL_ID].value.bytes);
    return call && !call->done ? call : NULL;
}

/* {type, id[, item]} on the call's lane. */
static int send_input(struct agx_router *rt, const struct agx_router_call *call,
                      struct agx_str type, const struct agx_mp_field *item)
{
    struct agx_buf *out = rt->io.lane(rt->user, call->lane);
    struct agx_mp_writer w;

    agx_frame_begin(&w, out);
    agx_mp_write_map(&w, item ? 3 : 2);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, type);
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, call->id);
    if (item) {
        agx_mp_write_str(&w, AGX_STR("item"));
        agx_mp_write_raw(&w, item->raw);
    }
    return agx_frame_end(&w, frame_max(rt), NULL);
}

/* False for an input that was here already; a hole in the sequence ends the call. */
static bool take_input_seq(struct agx_router *rt, struct agx_router_call *call,
                           const struct agx_mp_field *seq)
{
    if (!call->client->proto1)
        return true;
    if (!seq->present || seq->value.u > call->in_seq + 1) {
        agx_router_call_abort(rt, call, AGX_STR("BadRequest"),
                              "input is missing: its seq has a hole");
        return false;
    }
    if (seq->value.u <= call->in_seq)
        return false;
    call->in_seq++;
    return true;
}

/* What of the input has not been taken by the function, as far as the worker's credit tells. */
static bool input_overflows(const struct agx_router *rt, const struct agx_router_call *call)
{
    uint64_t taken = call->in_granted.bytes - AGX_CREDIT_BYTES;

    if (call->client->proto1)
        return !agx_credit_left(&call->in_granted, &call->in);
    return call->in.bytes > taken && call->in.bytes - taken > rt->config.input_max;
}

static void on_input(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    struct agx_mp_field f[N_MESSAGE_FIELDS];
    struct agx_router_call *call = read_message(c, payload, f);

    if (!call || call->kind != AGX_REMOTE_BIDI || !take_input_seq(rt, call, &f[M_SEQ]))
        return;
    if (!f[M_ITEM].present) {
        agx_router_call_abort(rt, call, AGX_STR("KeyError"), "'item'");
        return;
    }
    if (input_overflows(rt, call)) {
        agx_router_call_abort(rt, call, AGX_STR("InputOverflow"),
                              "more input was sent than the function takes");
        return;
    }
    agx_credit_count(&call->in, f[M_ITEM].raw.len);
    if (send_input(rt, call, AGX_STR("bidi_in"), &f[M_ITEM]) < 0)
        agx_router_call_abort(rt, call, AGX_STR("InputOverflow"),
                              "too much is waiting for the worker");
}

static void on_input_end(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    struct agx_mp_field f[N_MESSAGE_FIELDS];
    struct agx_router_call *call = read_message(c, payload, f);

    if (!call || call->kind != AGX_REMOTE_BIDI || !take_input_seq(rt, call, &f[M_SEQ]))
        return;
    if (send_input(rt, call, AGX_STR("bidi_end_in"), NULL) < 0)
        agx_router_call_abort(rt, call, AGX_STR("InputOverflow"),
                              "too much is waiting for the worker");
}

static void on_cancel(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    struct agx_mp_field f[N_MESSAGE_FIELDS];
    struct agx_router_call *call = read_message(c, payload, f);

    if (call)
        agx_router_call_abort(rt, call, AGX_STR("Cancelled"), "remote call cancelled");
}

static void raise_credit(struct agx_router *rt, struct agx_router_call *call, uint64_t n,
                         uint64_t bytes)
{
    if (agx_credit_raise(&call->out_granted, n, bytes) && call->worker_owes && !call->done)
        agx_router_send_credit(rt, call);
}

static void on_credit(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    struct agx_mp_field f[N_MESSAGE_FIELDS];
    struct agx_router_call *call = c->proto1 ? read_message(c, payload, f) : NULL;

    if (call && f[M_N].present && f[M_BYTES].present)
        raise_credit(rt, call, f[M_N].value.u, f[M_BYTES].value.u);
}

/* Begins to read the array `calls` of a message; false when it has none. */
static bool read_calls(struct agx_str payload, const struct agx_mp_limits *limits,
                       struct agx_mp_reader *ret_reader, uint32_t *ret_count)
{
    struct agx_mp_field f[] = { { AGX_STR("calls"), AGX_MP_BIT(AGX_MP_ARRAY) } };
    struct agx_mp_token array;

    if (agx_mp_read_fields(payload, limits, f, 1, NULL) < 0 || !f[0].present ||
        agx_mp_reader_init(ret_reader, f[0].raw, limits, NULL) < 0 ||
        agx_mp_next(ret_reader, &array, NULL) < 0)
        return false;
    *ret_count = array.count;
    return true;
}

static bool next_of(struct agx_mp_reader *r, enum agx_mp_type type, struct agx_mp_token *ret)
{
    return agx_mp_next(r, ret, NULL) == 0 && ret->type == type;
}

static void on_ack(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_token id, seq;
    struct agx_mp_reader r;
    uint32_t n;

    if (!c->proto1 || !read_calls(payload, &limits, &r, &n))
        return;
    for (uint32_t i = 0; i + 1 < n; i += 2) {
        struct agx_router_call *call;

        if (!next_of(&r, AGX_MP_STR, &id) || !next_of(&r, AGX_MP_UINT, &seq))
            return;
        call = agx_map_get(&c->calls, id.bytes);
        if (call)
            agx_router_call_ack(rt, call, seq.u);
    }
}

/* One [call_id, seq, n, bytes] of a resume. Writes the answer's part. */
static bool resume_one(struct agx_router *rt, struct agx_client *c, struct agx_mp_reader *r,
                       struct agx_mp_writer *known, struct agx_mp_writer *unknown,
                       uint32_t counts[2])
{
    struct agx_mp_token head, id, seq, n, bytes;
    struct agx_router_call *call;

    if (!next_of(r, AGX_MP_ARRAY, &head) || head.count != 4 || !next_of(r, AGX_MP_STR, &id) ||
        !next_of(r, AGX_MP_UINT, &seq) || !next_of(r, AGX_MP_UINT, &n) ||
        !next_of(r, AGX_MP_UINT, &bytes))
        return false;
    call = agx_map_get(&c->calls, id.bytes);
    if (!call) {
        agx_mp_write_str(unknown, id.bytes);
        counts[1]++;
        return true;
    }
    call->named = true;
    agx_mp_write_array(known, 2);
    agx_mp_write_str(known, id.bytes);
    agx_mp_write_uint(known, call->in_seq);
    counts[0]++;
    raise_credit(rt, call, n.u, bytes.u);
    agx_router_call_ack(rt, call, seq.u);
    return true;
}

/* Calls that the client did not name are over for it. */
static void drop_unnamed(struct agx_router *rt, struct agx_client *c)
{
    struct agx_router_call **unnamed =
        agx_alloc((c->calls.len + 1) * sizeof(struct agx_router_call *));
    size_t n = 0;
    void *value;

    for (size_t at = 0; agx_map_next(&c->calls, &at, NULL, &value);) {
        if (!((struct agx_router_call *)value)->named)
            unnamed[n++] = value;
    }
    for (size_t i = 0; i < n; i++) {
        if (!unnamed[i]->done && unnamed[i]->worker_owes)
            agx_router_send_cancel(rt, unnamed[i]);
        agx_router_call_forget(rt, unnamed[i]);
    }
    free(unnamed);
}

static void send_resume_done(struct agx_router *rt, struct agx_client *c, struct agx_str known,
                             struct agx_str unknown, const uint32_t counts[2])
{
    struct agx_mp_writer w;
    struct agx_str payload;

    agx_buf_clear(&rt->scratch);
    agx_mp_writer_init(&w, &rt->scratch);
    agx_mp_write_map(&w, 2);
    agx_mp_write_str(&w, AGX_STR("known"));
    agx_mp_write_array(&w, counts[0]);
    agx_mp_write_raw(&w, known);
    agx_mp_write_str(&w, AGX_STR("unknown"));
    agx_mp_write_array(&w, counts[1]);
    agx_mp_write_raw(&w, unknown);
    if (agx_mp_writer_end(&w, NULL) < 0 || !c->conn)
        return;
    payload = agx_buf_peek(&rt->scratch);
    rt->io.emit(rt->user, c->conn, AGX_EV_RESUME_DONE, &payload, 1);
}

static void replay_all(struct agx_router *rt, struct agx_client *c)
{
    void *value;

    /* Replaying takes no call of a session out of its map: that waits for an acknowledgement. */
    for (size_t at = 0; agx_map_next(&c->calls, &at, NULL, &value);) {
        ((struct agx_router_call *)value)->named = false;
        agx_router_call_replay(rt, value);
    }
    agx_unacked_pump(rt, c);
}

static void on_resume(struct agx_router *rt, struct agx_client *c, struct agx_str payload)
{
    _cleanup_buf_ struct agx_buf known = AGX_BUF_INIT(rt->config.max_message);
    _cleanup_buf_ struct agx_buf unknown = AGX_BUF_INIT(rt->config.max_message);
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_writer known_w, unknown_w;
    uint32_t counts[2] = { 0, 0 }, n;
    struct agx_mp_reader r;

    if (!c->proto1 || !c->holding || !read_calls(payload, &limits, &r, &n))
        return;
    agx_mp_writer_init(&known_w, &known);
    agx_mp_writer_init(&unknown_w, &unknown);
    for (uint32_t i = 0; i < n; i++) {
        if (!resume_one(rt, c, &r, &known_w, &unknown_w, counts))
            break;
    }
    if (agx_mp_writer_end(&known_w, NULL) < 0 || agx_mp_writer_end(&unknown_w, NULL) < 0)
        return;
    drop_unnamed(rt, c);
    c->holding = false;
    send_resume_done(rt, c, agx_buf_peek(&known), agx_buf_peek(&unknown), counts);
    replay_all(rt, c);
}

void agx_router_event(struct agx_router *rt, struct agx_client *c, struct agx_str name,
                      struct agx_str payload, uint64_t now_ms)
{
    enum agx_remote_event ev;

    if (!agx_remote_event_find(name, &ev))
        return;
    switch (ev) {
    case AGX_EV_UNARY:
    case AGX_EV_STREAM:
    case AGX_EV_BIDI_START:
        on_request(rt, c, (enum agx_remote_kind)(ev - AGX_EV_UNARY), payload, now_ms);
        break;
    case AGX_EV_BIDI_IN:
        on_input(rt, c, payload);
        break;
    case AGX_EV_BIDI_END_IN:
        on_input_end(rt, c, payload);
        break;
    case AGX_EV_CANCEL:
        on_cancel(rt, c, payload);
        break;
    case AGX_EV_CREDIT:
        on_credit(rt, c, payload);
        break;
    case AGX_EV_ACK:
        on_ack(rt, c, payload);
        break;
    case AGX_EV_RESUME:
        on_resume(rt, c, payload);
        break;
    default: /* the server's own events mean nothing from a client */
        break;
    }
}

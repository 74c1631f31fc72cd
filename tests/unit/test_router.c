/*
 * test_router.c: the rules of the remote call, with clients and a worker that are only buffers.
 * Each test ends with the router freed; under ASan what it forgot to free is a finding.
 */
#include "codec/frame.h"
#include "codec/mp_fields.h"
#include "runtime/router.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { EVENTS = 512 };

struct seen {
    void *conn;
    enum agx_rpc_event ev;
    char *payload; /* owned */
    size_t len;
};

struct world {
    struct agx_router *rt;
    struct agx_buf lanes[AGX_LANE_COUNT];
    size_t queued; /* what every connection claims to have waiting */
    struct seen seen[EVENTS];
    size_t n_seen;
};

static int one, two; /* their addresses are connections */

static void on_emit(void *user, void *conn, enum agx_rpc_event ev, const struct agx_str *parts,
                    size_t n)
{
    struct world *w = user;
    struct seen *s = &w->seen[w->n_seen++];
    size_t len = 0;

    ASSERT_TRUE(w->n_seen < EVENTS);
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    *s = (struct seen){ conn, ev, malloc(len + 1), 0 };
    for (size_t i = 0; i < n; i++) {
        memcpy(s->payload + s->len, parts[i].ptr, parts[i].len);
        s->len += parts[i].len;
    }
}

static size_t on_queued(void *user, void *conn)
{
    (void)conn;
    return ((struct world *)user)->queued;
}

static struct agx_buf *on_lane(void *user, enum agx_rpc_lane lane)
{
    return &((struct world *)user)->lanes[lane];
}

static void world_init(struct world *w, const struct agx_router_config *config)
{
    static const struct agx_router_io io = { on_emit, on_queued, on_lane };
    struct agx_router_config defaults = AGX_ROUTER_CONFIG_INIT;

    *w = (struct world){ .lanes = { AGX_BUF_INIT(1 << 20), AGX_BUF_INIT(1 << 20) } };
    w->rt = agx_router_new(config ? config : &defaults, &io, w);
}

static void world_done(struct world *w)
{
    agx_router_free(w->rt);
    for (size_t i = 0; i < w->n_seen; i++)
        free(w->seen[i].payload);
    for (int i = 0; i < AGX_LANE_COUNT; i++)
        agx_buf_done(&w->lanes[i]);
}

static struct agx_client *join(struct world *w, bool proto1, void *conn)
{
    struct agx_client_hello hello = { .proto1 = proto1 };
    void *old;
    bool resumed;

    return agx_router_connect(w->rt, &hello, conn, &resumed, &old);
}

static bool rejoin(struct world *w, const char *session, void *conn, struct agx_client **ret)
{
    struct agx_client_hello hello = { .proto1 = true, .session = agx_str_from(session) };
    void *old;
    bool resumed;

    *ret = agx_router_connect(w->rt, &hello, conn, &resumed, &old);
    return resumed;
}

/* Sends an event whose payload is {call_id, key: number, ...}, keys up to the NULL. */
static void say(struct world *w, struct agx_client *c, const char *event, const char *call_id,
                const char *key1, uint64_t value1, const char *key2, uint64_t value2)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1 + (key1 != NULL) + (key2 != NULL));
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(call_id));
    if (key1) {
        agx_mp_write_str(&m, agx_str_from(key1));
        agx_mp_write_uint(&m, value1);
    }
    if (key2) {
        agx_mp_write_str(&m, agx_str_from(key2));
        agx_mp_write_uint(&m, value2);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

/* A request by reference. */
static void call(struct world *w, struct agx_client *c, const char *event, const char *call_id,
                 uint64_t timeout_ms)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, timeout_ms > 0 ? 3 : 2);
    agx_mp_write_str(&m, AGX_STR("call_id"));
    agx_mp_write_str(&m, agx_str_from(call_id));
    agx_mp_write_str(&m, AGX_STR("target"));
    agx_mp_write_str(&m, AGX_STR("mod::fn"));
    if (timeout_ms > 0) {
        agx_mp_write_str(&m, AGX_STR("timeout_ms"));
        agx_mp_write_uint(&m, timeout_ms);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

/* The acknowledgement or resume of one call. */
static void say_calls(struct world *w, struct agx_client *c, const char *event, const char *call_id,
                      uint64_t seq)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    bool resume = strcmp(event, "resume") == 0;
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 1);
    agx_mp_write_str(&m, AGX_STR("calls"));
    agx_mp_write_array(&m, call_id == NULL ? 0 : resume ? 1 : 2);
    if (call_id) {
        if (resume)
            agx_mp_write_array(&m, 4);
        agx_mp_write_str(&m, agx_str_from(call_id));
        agx_mp_write_uint(&m, seq);
        if (resume) {
            agx_mp_write_uint(&m, AGX_CREDIT_ITEMS);
            agx_mp_write_uint(&m, AGX_CREDIT_BYTES);
        }
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    agx_router_event(w->rt, c, agx_str_from(event), agx_buf_peek(&b), 1000);
}

/* A frame {type, id[, key: number][, key: number]} of the worker. */
static int frame2(struct world *w, const char *type, uint64_t id, const char *key1, uint64_t value1,
                  const char *key2, uint64_t value2)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
    struct agx_mp_writer m;

    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 2 + (key1 != NULL) + (key2 != NULL));
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, agx_str_from(type));
    agx_mp_write_str(&m, AGX_STR("id"));
    agx_mp_write_uint(&m, id);
    if (key1) {
        agx_mp_write_str(&m, agx_str_from(key1));
        agx_mp_write_uint(&m, value1);
    }
    if (key2) {
        agx_mp_write_str(&m, agx_str_from(key2));
        agx_mp_write_uint(&m, value2);
    }
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    return agx_router_frame(w->rt, agx_buf_peek(&b), NULL);
}

static int frame(struct world *w, const char *type, uint64_t id, const char *key, uint64_t value)
{
    return frame2(w, type, id, key, value, NULL, 0);
}

/* The number of frames of that type in the lane; the last one's field `key` is *ret. */
static size_t frames(struct world *w, enum agx_rpc_lane lane, const char *type, const char *key,
                     uint64_t *ret)
{
    struct agx_str in = agx_buf_peek(&w->lanes[lane]), got;
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_frame_decoder d;
    size_t n = 0;

    agx_frame_decoder_init(&d, AGX_MESSAGE_MAX);
    while (agx_frame_decoder_next(&d, &in, &got, NULL) > 0) {
        struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) },
                                    { agx_str_from(key ? key : "id"), AGX_MP_ANY } };

        ASSERT_OK(agx_mp_read_fields(got, &limits, f, 2, NULL));
        if (!agx_str_eq(f[0].value.bytes, agx_str_from(type)))
            continue;
        n++;
        if (ret)
            *ret = f[1].value.u;
    }
    agx_frame_decoder_done(&d);
    return n;
}

static const struct seen *last(struct world *w)
{
    ASSERT_TRUE(w->n_seen > 0);
    return &w->seen[w->n_seen - 1];
}

/* A field of the last event. */
static struct agx_mp_field field(struct world *w, const char *key)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f = { agx_str_from(key), AGX_MP_ANY };

    ASSERT_OK(
        agx_mp_read_fields(agx_str_bytes(last(w)->payload, last(w)->len), &limits, &f, 1, NULL));
    return f;
}

/* The last event is this error for that call. */
static void assert_error(struct world *w, enum agx_rpc_event ev, const char *call_id,
                         const char *type)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field f[] = { { AGX_STR("type"), AGX_MP_ANY } };

    ASSERT_INT(ev, last(w)->ev);
    ASSERT_STR(agx_str_from(call_id), field(w, "call_id").value.bytes);
    ASSERT_OK(agx_mp_read_fields(field(w, "error").raw, &limits, f, 1, NULL));
    ASSERT_STR(agx_str_from(type), f[0].value.bytes);
}

TEST(unary_result_goes_to_its_caller_once)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "unary", "a", 0);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "call", NULL, &id));
    ASSERT_UINT(1, agx_router_running(w.rt));
    ASSERT_OK(frame(&w, "result", id, "value", 42));
    ASSERT_UINT(1, w.n_seen);
    ASSERT_INT(AGX_EV_UNARY_RESULT, last(&w)->ev);
    ASSERT_TRUE(last(&w)->conn == &one);
    ASSERT_UINT(42, field(&w, "value").value.u);
    ASSERT_FALSE(field(&w, "seq").present);
    ASSERT_UINT(0, agx_router_running(w.rt));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, frame(&w, "result", id, "value", 43));
    ASSERT_UINT(1, w.n_seen);
    world_done(&w);
}

TEST(two_clients_with_one_call_id_get_their_own_results)
{
    struct world w;
    uint64_t first = 0, second = 0;

    world_init(&w, NULL);
    call(&w, join(&w, false, &one), "unary", "same", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &first);
    call(&w, join(&w, true, &two), "unary", "same", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &second);
    ASSERT_TRUE(first != second);
    ASSERT_OK(frame(&w, "result", second, "value", 2));
    ASSERT_TRUE(last(&w)->conn == &two);
    ASSERT_UINT(1, field(&w, "seq").value.u);
    ASSERT_OK(frame(&w, "result", first, "value", 1));
    ASSERT_TRUE(last(&w)->conn == &one);
    ASSERT_UINT(1, field(&w, "value").value.u);
    world_done(&w);
}

TEST(duplicate_call_id_of_one_client_is_refused_and_the_first_goes_on)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "unary", "a", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    call(&w, c, "stream", "a", 0);
    assert_error(&w, AGX_EV_STREAM_ERROR, "a", "DuplicateCall");
    ASSERT_OK(frame(&w, "result", id, "value", 1));
    ASSERT_INT(AGX_EV_UNARY_RESULT, last(&w)->ev);
    call(&w, c, "unary", "a", 0);
    ASSERT_UINT(2, frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    world_done(&w);
}

TEST(bad_requests_are_answered_under_their_call_id)
{
    static const struct {
        const char *bytes, *call_id, *type;
    } bad[] = {
        { "\x80", "", "BadRequest" },
        { "\x81\xa7"
          "call_id\x05",
          "", "BadRequest" },
        { "\x91\x01", "", "BadRequest" },
        { "\xc1", "", "BadRequest" },
        { "\x81\xa7"
          "call_id\xa1x",
          "x", "KeyError" },
        { "\x82\xa7"
          "call_id\xa1x\xa6target\xa0",
          "x", "ValidationError" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa5shape\xa3odd",
          "x", "ValidationError" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa2id\x01",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa4"
          "args\x01",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xb0"
          "callable_payload\xa1p",
          "x", "BadRequest" },
        { "\x83\xa7"
          "call_id\xa1x\xa6target\xa1t\xa4"
          "args",
          "x", "BadRequest" },
    };
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        agx_router_event(w.rt, c, AGX_STR("unary"), agx_str_from(bad[i].bytes), 1000);
        ASSERT_UINT(i + 1, w.n_seen);
        assert_error(&w, AGX_EV_UNARY_ERROR, bad[i].call_id, bad[i].type);
    }
    ASSERT_UINT(0, w.lanes[AGX_LANE_LOOP].len);
    ASSERT_UINT(0, agx_router_running(w.rt));
    world_done(&w);
}

TEST(cancel_answers_at_once_and_reaches_the_worker)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0, cancelled = 0;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "unary", "a", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    say(&w, c, "cancel", "a", NULL, 0, NULL, 0);
    assert_error(&w, AGX_EV_UNARY_ERROR, "a", "Cancelled");
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, &cancelled));
    ASSERT_UINT(id, cancelled);
    ASSERT_UINT(1, agx_router_running(w.rt));
    /* The worker's own end comes late and is dropped. */
    ASSERT_OK(frame(&w, "result", id, "value", 1));
    ASSERT_UINT(1, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    say(&w, c, "cancel", "a", NULL, 0, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    world_done(&w);
}

TEST(worker_gone_ends_every_call_once)
{
    struct world w;
    struct agx_client *c, *d;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    d = join(&w, true, &two);
    call(&w, c, "unary", "u", 0);
    call(&w, d, "stream", "s", 0);
    call(&w, d, "bidi:start", "b", 0);
    say(&w, c, "cancel", "u", NULL, 0, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    agx_router_worker_gone(w.rt, AGX_STR("WorkerExited"), "killed by signal 9", -9);
    ASSERT_UINT(3, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    agx_router_worker_gone(w.rt, AGX_STR("WorkerExited"), "again", -9);
    ASSERT_UINT(3, w.n_seen);
    world_done(&w);
}

TEST(stream_items_come_in_order_and_end_last)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    call(&w, c, "stream", "s", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (uint64_t i = 0; i < 10; i++) {
        ASSERT_OK(frame(&w, "stream_item", id, "value", i));
        ASSERT_INT(AGX_EV_STREAM_ITEM, last(&w)->ev);
        ASSERT_UINT(i, field(&w, "value").value.u);
        ASSERT_UINT(i + 1, field(&w, "seq").value.u);
    }
    ASSERT_OK(frame(&w, "stream_end", id, NULL, 0));
    ASSERT_INT(AGX_EV_STREAM_END, last(&w)->ev);
    ASSERT_UINT(11, field(&w, "seq").value.u);
    world_done(&w);
}

TEST(worker_that_sends_past_its_credit_is_refused)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    call(&w, c, "stream", "s", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (int i = 0; i < AGX_CREDIT_ITEMS; i++)
        ASSERT_OK(frame(&w, "stream_item", id, "value", 1));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, frame(&w, "stream_item", id, "value", 1));
    say(&w, c, "credit", "s", "n", AGX_CREDIT_ITEMS + 1, "bytes", AGX_CREDIT_BYTES);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "credit", "n", &id));
    ASSERT_UINT(AGX_CREDIT_ITEMS + 1, id);
    world_done(&w);
}

TEST(credit_that_is_not_more_is_not_passed_on)
{
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    call(&w, c, "stream", "s", 0);
    say(&w, c, "credit", "s", "n", AGX_CREDIT_ITEMS, "bytes", AGX_CREDIT_BYTES);
    say(&w, c, "credit", "s", "n", 3, "bytes", 3);
    say(&w, c, "credit", "nobody", "n", 999, "bytes", 999);
    ASSERT_UINT(0, frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    world_done(&w);
}

TEST(client_without_credit_holds_its_producer_back_while_its_queue_is_full)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0, n = 0;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "stream", "s", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    for (int i = 0; i < AGX_CREDIT_ITEMS / 2; i++)
        ASSERT_OK(frame(&w, "stream_item", id, "value", 1));
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "credit", "n", &n));
    ASSERT_UINT(AGX_CREDIT_ITEMS / 2 + AGX_CREDIT_ITEMS, n);
    w.queued = AGX_QUEUE_HIGH + 1;
    for (int i = 0; i < AGX_CREDIT_ITEMS; i++)
        ASSERT_OK(frame(&w, "stream_item", id, "value", 1));
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(2, frames(&w, AGX_LANE_LOOP, "credit", "n", &n));
    ASSERT_UINT(AGX_CREDIT_ITEMS / 2 + 2 * AGX_CREDIT_ITEMS, n);
    agx_router_drained(w.rt, c);
    ASSERT_UINT(2, frames(&w, AGX_LANE_LOOP, "credit", NULL, NULL));
    world_done(&w);
}

TEST(bidi_input_is_passed_on_and_credit_for_it_comes_back)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0, item = 0;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    call(&w, c, "bidi:start", "b", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    say(&w, c, "bidi:in", "b", "item", 7, "seq", 1);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "bidi_in", "item", &item));
    ASSERT_UINT(7, item);
    say(&w, c, "bidi:in", "b", "item", 7, "seq", 1); /* sent again after a resume */
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "bidi_in", NULL, NULL));
    ASSERT_OK(frame2(&w, "credit", id, "n", 100, "bytes", 100000));
    ASSERT_INT(AGX_EV_CREDIT, last(&w)->ev);
    ASSERT_UINT(100, field(&w, "n").value.u);
    ASSERT_UINT(1, field(&w, "seq").value.u);
    say(&w, c, "bidi:end_in", "b", "seq", 2, NULL, 0);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "bidi_end_in", NULL, NULL));
    say(&w, c, "bidi:in", "b", "item", 7, "seq", 9);
    assert_error(&w, AGX_EV_BIDI_ERROR, "b", "BadRequest");
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    world_done(&w);
}

TEST(bidi_input_past_its_credit_ends_the_call)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    struct world w;
    struct agx_client *c;

    config.input_max = 200;
    world_init(&w, &config);
    c = join(&w, true, &one);
    call(&w, c, "bidi:start", "b", 0);
    for (uint64_t i = 1; i <= AGX_CREDIT_ITEMS; i++)
        say(&w, c, "bidi:in", "b", "item", 1, "seq", i);
    ASSERT_UINT(0, w.n_seen);
    say(&w, c, "bidi:in", "b", "item", 1, "seq", AGX_CREDIT_ITEMS + 1);
    assert_error(&w, AGX_EV_BIDI_ERROR, "b", "InputOverflow");

    /* A client without credit has bytes to spare, not items. */
    c = join(&w, false, &two);
    call(&w, c, "bidi:start", "b", 0);
    for (int i = 0; i <= 200; i++)
        say(&w, c, "bidi:in", "b", "item", 1, NULL, 0);
    ASSERT_UINT(1, w.n_seen);
    say(&w, c, "bidi:in", "b", "item", 1, NULL, 0);
    assert_error(&w, AGX_EV_BIDI_ERROR, "b", "InputOverflow");
    world_done(&w);
}

TEST(disconnect_without_a_session_cancels_its_calls)
{
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "stream", "s", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_UINT(0, agx_router_clients(w.rt));
    ASSERT_OK(frame(&w, "stream_item", id, "value", 1));
    ASSERT_OK(frame(&w, "stream_end", id, NULL, 0));
    ASSERT_UINT(0, w.n_seen);
    ASSERT_UINT(0, agx_router_running(w.rt));
    world_done(&w);
}

TEST(resume_sends_what_the_client_has_not_seen_and_nothing_twice)
{
    char session[33];
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    call(&w, c, "stream", "s", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    ASSERT_OK(frame(&w, "stream_item", id, "value", 1));
    ASSERT_OK(frame(&w, "stream_item", id, "value", 2));
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_OK(frame(&w, "stream_item", id, "value", 3));
    ASSERT_UINT(2, w.n_seen);
    ASSERT_TRUE(rejoin(&w, session, &two, &c));
    ASSERT_OK(frame(&w, "stream_end", id, NULL, 0));
    ASSERT_UINT(2, w.n_seen); /* held back until the client says what it has */
    say_calls(&w, c, "resume", "s", 1);
    ASSERT_UINT(6, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[2].ev);
    ASSERT_INT(AGX_EV_STREAM_ITEM, w.seen[3].ev);
    ASSERT_INT(AGX_EV_STREAM_ITEM, w.seen[4].ev);
    ASSERT_INT(AGX_EV_STREAM_END, w.seen[5].ev);
    ASSERT_TRUE(w.seen[5].conn == &two);
    ASSERT_UINT(4, field(&w, "seq").value.u);
    say_calls(&w, c, "ack", "s", 4);
    agx_router_disconnect(w.rt, c, 2000);
    ASSERT_TRUE(rejoin(&w, session, &one, &c));
    say_calls(&w, c, "resume", "s", 4); /* acknowledged: nobody knows it any more */
    ASSERT_UINT(7, w.n_seen);
    world_done(&w);
}

TEST(resume_gives_a_bidi_call_the_credit_that_came_while_its_client_was_away)
{
    char session[33];
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    call(&w, c, "bidi:start", "b", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    say(&w, c, "bidi:in", "b", "item", 7, "seq", 1);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_OK(frame2(&w, "credit", id, "n", 100, "bytes", 100000));
    ASSERT_UINT(0, w.n_seen);
    ASSERT_TRUE(rejoin(&w, session, &two, &c));
    say_calls(&w, c, "resume", "b", 0);
    ASSERT_UINT(2, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[0].ev);
    ASSERT_INT(AGX_EV_CREDIT, last(&w)->ev);
    ASSERT_UINT(100, field(&w, "n").value.u);
    ASSERT_UINT(1, field(&w, "seq").value.u);
    world_done(&w);
}

TEST(resume_names_unknown_calls_and_drops_those_not_named)
{
    char session[33];
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    call(&w, c, "unary", "gone", 0);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_TRUE(rejoin(&w, session, &one, &c));
    say_calls(&w, c, "resume", "never sent", 0);
    ASSERT_INT(AGX_EV_RESUME_DONE, last(&w)->ev);
    ASSERT_UINT(0, field(&w, "known").value.count);
    ASSERT_UINT(1, field(&w, "unknown").value.count);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    world_done(&w);
}

TEST(session_ends_with_its_window_and_its_calls_are_cancelled)
{
    char session[33];
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    call(&w, c, "unary", "a", 0);
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_UINT(1000 + AGX_RESUME_MS, agx_router_tick(w.rt, 2000));
    ASSERT_UINT(UINT64_MAX, agx_router_tick(w.rt, 1000 + AGX_RESUME_MS));
    ASSERT_UINT(0, agx_router_clients(w.rt));
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_FALSE(rejoin(&w, session, &one, &c));
    ASSERT_TRUE(strcmp(session, agx_client_peek_session(c)) != 0);
    world_done(&w);
}

TEST(answers_past_the_sessions_bounds_become_unavailable_the_oldest_first)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    char session[33];
    struct world w;
    struct agx_client *c;
    uint64_t id = 0;

    config.kept_calls_max = 1;
    world_init(&w, &config);
    c = join(&w, true, &one);
    (void)snprintf(session, sizeof(session), "%s", agx_client_peek_session(c));
    call(&w, c, "unary", "old", 0);
    frames(&w, AGX_LANE_LOOP, "call", NULL, &id);
    ASSERT_OK(frame(&w, "result", id, "value", 1));
    call(&w, c, "unary", "new", 0);
    ASSERT_OK(frame(&w, "result", id + 1, "value", 2));
    agx_router_disconnect(w.rt, c, 1000);
    ASSERT_TRUE(rejoin(&w, session, &one, &c));
    say_calls(&w, c, "resume", "old", 0);
    assert_error(&w, AGX_EV_UNARY_ERROR, "old", "ResultUnavailable");
    ASSERT_UINT(1, field(&w, "seq").value.u);
    world_done(&w);
}

TEST(timeout_ends_the_call_and_cancels_it)
{
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, true, &one);
    call(&w, c, "unary", "a", 50);
    call(&w, c, "unary", "b", 20);
    ASSERT_UINT(1020, agx_router_tick(w.rt, 1000));
    ASSERT_UINT(1050, agx_router_tick(w.rt, 1020));
    assert_error(&w, AGX_EV_UNARY_ERROR, "b", "CallTimeout");
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    ASSERT_UINT(UINT64_MAX, agx_router_tick(w.rt, 1050));
    assert_error(&w, AGX_EV_UNARY_ERROR, "a", "CallTimeout");
    world_done(&w);
}

TEST(value_larger_than_the_client_takes_is_an_error)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(10000);
    struct agx_mp_writer m;
    struct world w;
    struct agx_client *c;
    char big[500] = { 0 };

    config.legacy_message = 400;
    world_init(&w, &config);
    c = join(&w, false, &one);
    call(&w, c, "stream", "s", 0);
    agx_mp_writer_init(&m, &b);
    agx_mp_write_map(&m, 3);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, AGX_STR("stream_item"));
    agx_mp_write_str(&m, AGX_STR("id"));
    agx_mp_write_uint(&m, 1);
    agx_mp_write_str(&m, AGX_STR("value"));
    agx_mp_write_bin(&m, agx_str_bytes(big, sizeof(big)));
    ASSERT_OK(agx_mp_writer_end(&m, NULL));
    ASSERT_OK(agx_router_frame(w.rt, agx_buf_peek(&b), NULL));
    assert_error(&w, AGX_EV_STREAM_ERROR, "s", "MessageTooLarge");
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    world_done(&w);
}

TEST(lane_hint_sends_the_next_call_of_that_callable_by_the_thread_lane)
{
    static const char hint[] = "\x83\xa4type\xa4lane\xa8"
                               "callable\xa7mod::fn\xa4lane\x01";
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "unary", "a", 0);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    ASSERT_OK(agx_router_frame(w.rt, agx_str_bytes(hint, sizeof(hint) - 1), NULL));
    call(&w, c, "unary", "b", 0);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    ASSERT_UINT(1, frames(&w, AGX_LANE_THREAD, "call", NULL, NULL));
    say(&w, c, "cancel", "b", NULL, 0, NULL, 0);
    ASSERT_UINT(1, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    world_done(&w);
}

TEST(too_many_calls_are_refused_and_an_acknowledged_one_makes_room)
{
    struct agx_router_config config = AGX_ROUTER_CONFIG_INIT;
    struct world w;
    struct agx_client *c;

    config.max_calls = 1;
    world_init(&w, &config);
    c = join(&w, true, &one);
    call(&w, c, "unary", "a", 0);
    call(&w, c, "unary", "b", 0);
    assert_error(&w, AGX_EV_UNARY_ERROR, "b", "TooManyCalls");
    ASSERT_OK(frame(&w, "result", 1, "value", 1));
    call(&w, c, "unary", "b", 0);
    assert_error(&w, AGX_EV_UNARY_ERROR, "b", "TooManyCalls");
    say_calls(&w, c, "ack", "a", 1);
    call(&w, c, "unary", "b", 0);
    ASSERT_UINT(2, frames(&w, AGX_LANE_LOOP, "call", NULL, NULL));
    world_done(&w);
}

TEST(end_all_tells_every_caller_that_the_server_stops)
{
    struct world w;
    struct agx_client *c;

    world_init(&w, NULL);
    c = join(&w, false, &one);
    call(&w, c, "unary", "a", 0);
    call(&w, c, "stream", "b", 0);
    agx_router_end_all(w.rt, AGX_STR("ServerShutdown"), "the server stops");
    ASSERT_UINT(2, w.n_seen);
    ASSERT_UINT(2, frames(&w, AGX_LANE_LOOP, "cancel", NULL, NULL));
    world_done(&w);
}

TEST(frames_of_a_broken_worker_are_refused_with_a_reason)
{
    static const char *const bad[] = { "\xc1", "\x91\x01", "\x81\xa2id\x01",
                                       "\x81\xa4type\xa6result",
                                       "\x82\xa4type\xa6result\xa2id\x09" };
    struct world w;

    world_init(&w, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_TRUE(agx_router_frame(w.rt, agx_str_from(bad[i]), &err) < 0);
        ASSERT_MESSAGE(err, "worker");
    }
    ASSERT_OK(agx_router_frame(w.rt, AGX_STR("\x81\xa4type\xa3new"), NULL));
    world_done(&w);
}

/* Streams "s" and "t" of a session whose connection takes nothing: two items each, and "t" ends. */
static struct agx_client *two_streams_behind(struct world *w, char session[33])
{
    struct agx_client *c;

    world_init(w, NULL);
    c = join(w, true, &one);
    (void)snprintf(session, 33, "%s", agx_client_peek_session(c));
    w->queued = AGX_QUEUE_HIGH + 1;
    call(w, c, "stream", "s", 0);
    call(w, c, "stream", "t", 0);
    for (uint64_t i = 0; i < 2; i++) {
        ASSERT_OK(frame(w, "stream_item", 1, "value", i));
        ASSERT_OK(frame(w, "stream_item", 2, "value", 10 + i));
    }
    ASSERT_OK(frame(w, "stream_end", 2, NULL, 0));
    ASSERT_UINT(0, w->n_seen);
    return c;
}

static void assert_seen(const struct world *w, size_t i, enum agx_rpc_event ev, const char *call_id)
{
    const struct seen *s = &w->seen[i];

    ASSERT_TRUE(i < w->n_seen);
    ASSERT_INT(ev, s->ev);
    /* {call_id: one letter, ...} */
    ASSERT_INT(call_id[0], s->payload[10]);
}

TEST(a_full_queue_holds_items_of_a_session_back_until_it_drained_and_takes_calls_in_turn)
{
    char session[33];
    struct world w;
    struct agx_client *c = two_streams_behind(&w, session);

    agx_router_drained(w.rt, c);
    ASSERT_UINT(0, w.n_seen); /* still full */
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(5, w.n_seen);
    assert_seen(&w, 0, AGX_EV_STREAM_ITEM, "s");
    assert_seen(&w, 1, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 2, AGX_EV_STREAM_ITEM, "s");
    assert_seen(&w, 3, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 4, AGX_EV_STREAM_END, "t");
    ASSERT_OK(frame(&w, "stream_item", 1, "value", 3));
    ASSERT_UINT(6, w.n_seen); /* nothing is before it */
    world_done(&w);
}

TEST(a_full_queue_holds_back_neither_results_nor_errors_of_other_calls)
{
    char session[33];
    struct world w;
    struct agx_client *c = two_streams_behind(&w, session);

    call(&w, c, "unary", "u", 0);
    ASSERT_OK(frame(&w, "result", 3, "value", 1));
    ASSERT_UINT(1, w.n_seen);
    assert_seen(&w, 0, AGX_EV_UNARY_RESULT, "u");
    world_done(&w);
}

TEST(what_a_full_queue_held_back_comes_after_a_resume)
{
    char session[33];
    struct world w;
    struct agx_client *c = two_streams_behind(&w, session);

    agx_router_disconnect(w.rt, c, 1000);
    w.queued = 0;
    ASSERT_TRUE(rejoin(&w, session, &two, &c));
    say_calls(&w, c, "resume", "t", 0);
    ASSERT_UINT(4, w.n_seen);
    ASSERT_INT(AGX_EV_RESUME_DONE, w.seen[0].ev);
    assert_seen(&w, 1, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 2, AGX_EV_STREAM_ITEM, "t");
    assert_seen(&w, 3, AGX_EV_STREAM_END, "t");
    ASSERT_UINT(3, field(&w, "seq").value.u);
    world_done(&w);
}

TEST(a_cancelled_call_with_something_held_back_ends_when_the_queue_drained)
{
    char session[33];
    struct world w;
    struct agx_client *c = two_streams_behind(&w, session);

    say(&w, c, "cancel", "s", NULL, 0, NULL, 0);
    ASSERT_UINT(0, w.n_seen);
    w.queued = 0;
    agx_router_drained(w.rt, c);
    ASSERT_UINT(6, w.n_seen);
    assert_seen(&w, 4, AGX_EV_STREAM_ERROR, "s");
    world_done(&w);
}

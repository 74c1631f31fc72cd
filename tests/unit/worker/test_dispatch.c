#include "codec/frame.h"
#include "tests/support/test.h"
#include "worker/dispatch.h"

#include <string.h>

/* A worker without threads: calls wait in a row until the test runs them. */
struct fake {
    struct agx_dispatch *d;
    struct agx_fncall *started[8];
    unsigned n_started;
    bool no_threads;
    struct agx_buf sent; /* frames, prefix included */
    unsigned n_sent, n_waiting;
};

static void fake_send(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct fake *f = user;

    (void)kind;
    ASSERT_OK(agx_buf_append(&f->sent, frame));
    f->n_sent++;
    f->n_waiting += wait;
}

static int fake_start(void *user, struct agx_fncall *take_call, struct agx_error **err)
{
    struct fake *f = user;

    if (f->no_threads)
        return agx_error_set(err, AGX_UNAVAILABLE, "no thread");
    f->started[f->n_started++] = take_call;
    return 0;
}

static void fake_init(struct fake *f)
{
    struct agx_dispatch_io io = { .user = f, .send = fake_send, .start = fake_start };

    *f = (struct fake){ .sent = AGX_BUF_INIT(1 << 20) };
    f->d = agx_dispatch_new(&io);
}

static void fake_done(struct fake *f)
{
    for (unsigned i = 0; i < f->n_started; i++)
        (void)agx_fncall_unref(f->started[i]);
    f->d = agx_dispatch_free(f->d);
    agx_buf_done(&f->sent);
}

/* A frame from {"type": type, "id": id} and `n` more pairs, already msgpack. */
static int feed(struct fake *f, enum agx_remote_lane lane, const char *type, uint64_t id,
                unsigned n, struct agx_str rest)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1 << 20);
    struct agx_mp_writer w;
    uint64_t grace = 0;

    agx_mp_writer_init(&w, &out);
    agx_mp_write_map(&w, 2 + n);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, agx_str_from(type));
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, id);
    agx_mp_write_raw(&w, rest);
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
    return agx_dispatch_frame(f->d, lane, agx_buf_peek(&out), &grace, NULL);
}

#define TARGET "\xa6target\xa6"
#define UNARY "\xa4kind\xa5unary" TARGET "c:a::b"
#define STREAM "\xa4kind\xa6stream" TARGET "c:a::b"
#define BIDI                                                                                       \
    "\xa4kind\xa4"                                                                                 \
    "bidi" TARGET "c:a::b"

static bool sent_has(const struct fake *f, struct agx_str words)
{
    return f->sent.len > 0 && memmem(f->sent.data, f->sent.len, words.ptr, words.len) != NULL;
}

static int run_nothing(struct agx_fn_call *call)
{
    (void)call;
    return 0;
}

static int run_stream(struct agx_fn_call *call)
{
    int r;

    do {
        agx_fn_put_int(call, 7);
        r = agx_fn_emit(call);
    } while (r == 0);
    return r;
}

static int run_bidi(struct agx_fn_call *call)
{
    struct agx_fn_value v;
    int r;

    while ((r = agx_fn_next(call, &v)) > 0) {
        agx_fn_put_raw(call, v.raw.ptr, v.raw.len);
        (void)agx_fn_emit(call);
    }
    return r;
}

/* Runs the call that was started as number `i`, here and now. */
static void run(struct fake *f, unsigned i, enum agx_fn_kind kind,
                int (*code)(struct agx_fn_call *))
{
    struct agx_function def = { "f", kind, 0, NULL, code };
    struct agx_fn fn;

    ASSERT_OK(agx_fn_prepare(&fn, &def, NULL));
    agx_fncall_run(f->started[i], &fn);
}

TEST(dispatch_call_is_started_and_ends_with_one_frame)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(UNARY)));
    ASSERT_UINT(1, f.n_started);
    ASSERT_TRUE(agx_dispatch_has(f.d, 1));
    run(&f, 0, AGX_FN_UNARY, run_nothing);
    ASSERT_FALSE(agx_dispatch_has(f.d, 1));
    ASSERT_UINT(1, f.n_sent);
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa4type\xa6result\xa2id\x01\xa5value\xc0")));
}

TEST(dispatch_call_without_a_thread_fails_and_does_not_wait)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    f.no_threads = true;
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(UNARY)));
    ASSERT_UINT(1, f.n_sent);
    ASSERT_UINT(0, f.n_waiting);
    ASSERT_TRUE(sent_has(&f, AGX_STR("no thread")));
    ASSERT_UINT(0, agx_dispatch_count(f.d));
}

TEST(dispatch_second_call_with_an_id_is_refused_as_no_frame)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(UNARY)));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(UNARY)));
    run(&f, 0, AGX_FN_UNARY, run_nothing);
    ASSERT_UINT(1, f.n_sent);
}

TEST(dispatch_cancel_before_its_call_holds_for_the_thread_lane)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    for (uint64_t id = 1; id <= 3; id++)
        ASSERT_OK(feed(&f, AGX_LANE_LOOP, "cancel", id, 0, AGX_STR("")));
    ASSERT_OK(feed(&f, AGX_LANE_THREAD, "call", 2, 2, AGX_STR(STREAM)));
    run(&f, 0, AGX_FN_STREAM, run_stream);
    ASSERT_UINT(1, f.n_sent);
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa9"
                                     "cancelled\xc3")));
    /* 1 cannot come any more, 2 has come; only 3 is still remembered. */
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "cancel", 2, 0, AGX_STR("")));
    ASSERT_OK(feed(&f, AGX_LANE_THREAD, "call", 4, 2, AGX_STR(UNARY)));
    run(&f, 1, AGX_FN_UNARY, run_nothing);
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa6result\xa2id\x04")));
}

TEST(dispatch_cancels_for_nobody_are_bounded)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    for (uint64_t id = 1; id <= AGX_EARLY_CANCELS_MAX + 1; id++)
        ASSERT_OK(feed(&f, AGX_LANE_LOOP, "cancel", id, 0, AGX_STR("")));
    ASSERT_OK(feed(&f, AGX_LANE_THREAD, "call", 1, 2, AGX_STR(UNARY)));
    run(&f, 0, AGX_FN_UNARY, run_nothing);
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa6result\xa2id\x01")));
}

TEST(dispatch_stop_cancels_what_is_there_and_what_comes)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(STREAM)));
    agx_dispatch_stop(f.d);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 2, 2, AGX_STR(STREAM)));
    run(&f, 0, AGX_FN_STREAM, run_stream);
    run(&f, 1, AGX_FN_STREAM, run_stream);
    ASSERT_UINT(2, f.n_sent);
    ASSERT_FALSE(sent_has(&f, AGX_STR("stream_item")));
}

TEST(dispatch_input_waits_in_order_until_the_function_takes_it)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 2, AGX_STR(BIDI)));
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "bidi_in", 1, 1, AGX_STR("\xa4item\x93\x01\x02\x03")));
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "bidi_in", 1, 1, AGX_STR("\xa4item\xa1z")));
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "bidi_end_in", 1, 0, AGX_STR("")));
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "bidi_in", 1, 1, AGX_STR("\xa4item\xa4late")));
    run(&f, 0, AGX_FN_BIDI, run_bidi);
    ASSERT_UINT(3, f.n_sent);
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa5value\x93\x01\x02\x03")));
    ASSERT_TRUE(sent_has(&f, AGX_STR("\xa5value\xa1z")));
    ASSERT_TRUE(sent_has(&f, AGX_STR("stream_end")));
    ASSERT_FALSE(sent_has(&f, AGX_STR("late")));
}

TEST(dispatch_shutdown_gives_its_grace)
{
    _cleanup_(fake_done) struct fake f;
    uint64_t grace = 0;

    fake_init(&f);
    ASSERT_INT(1, agx_dispatch_frame(f.d, AGX_LANE_LOOP,
                                     AGX_STR("\x82\xa4type\xa8shutdown\xa8grace_ms\x63"), &grace,
                                     NULL));
    ASSERT_UINT(99, grace);
}

TEST(dispatch_bytes_that_are_no_map_fail_with_a_message)
{
    _cleanup_(fake_done) struct fake f;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint64_t grace = 0;

    fake_init(&f);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_dispatch_frame(f.d, AGX_LANE_LOOP, AGX_STR("\xc0"), &grace, &err));
    ASSERT_MESSAGE(err, "read a frame of the server");
    ASSERT_UINT(0, f.n_sent);
}

TEST(dispatch_call_that_is_malformed_is_refused_alone)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 1, 3,
                   AGX_STR(UNARY "\xa4"
                                 "args\x01")));
    ASSERT_TRUE(sent_has(&f, AGX_STR("BadRequest")));
    ASSERT_TRUE(sent_has(&f, AGX_STR("'args' is not an array")));
    ASSERT_OK(feed(&f, AGX_LANE_LOOP, "call", 2, 2, AGX_STR(UNARY)));
    ASSERT_UINT(1, f.n_started);
    run(&f, 0, AGX_FN_UNARY, run_nothing);
    ASSERT_UINT(2, f.n_sent);
}

TEST(dispatch_frame_about_a_call_that_is_malformed_fails)
{
    _cleanup_(fake_done) struct fake f;

    fake_init(&f);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                feed(&f, AGX_LANE_LOOP, "credit", 1, 1, AGX_STR("\xa1n\xc0")));
}

TEST(fn_prepare_takes_parameters_apart)
{
    struct agx_function def = { "f", AGX_FN_UNARY, 0, " a  bc? ", run_nothing };
    struct agx_fn fn;

    ASSERT_OK(agx_fn_prepare(&fn, &def, NULL));
    ASSERT_UINT(2, fn.n_params);
    ASSERT_STR(AGX_STR("a"), fn.params[0]);
    ASSERT_STR(AGX_STR("bc"), fn.params[1]);
    ASSERT_FALSE(fn.optional[0]);
    ASSERT_TRUE(fn.optional[1]);
    ASSERT_FALSE(fn.any_args);
}

TEST(fn_prepare_refuses_what_cannot_be_called)
{
    static const struct agx_function bad[] = {
        { NULL, AGX_FN_UNARY, 0, "", run_nothing },
        { "", AGX_FN_UNARY, 0, "", run_nothing },
        { "a/b", AGX_FN_UNARY, 0, "", run_nothing },
        { "f", AGX_FN_UNARY, 0, "", NULL },
        { "f", (enum agx_fn_kind)9, 0, "", run_nothing },
        { "f", AGX_FN_UNARY, 64, "", run_nothing },
        { "f", AGX_FN_UNARY, 0, "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a",
          run_nothing },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_fn fn;

        ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_fn_prepare(&fn, &bad[i], &err));
        ASSERT_MESSAGE(err, "function");
    }
}

TEST(fnlib_find_names_the_places_it_searched)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_fnlib *l = agx_fnlib_new(AGX_STR("/nowhere::/else"));
    struct agx_fn *fn;

    ASSERT_CODE(AGX_NOT_FOUND, agx_fnlib_find(l, AGX_STR("c:lib::fn"), &fn, &err));
    ASSERT_MESSAGE(err, "no lib.so or liblib.so in '/nowhere::/else'");
    (void)agx_fnlib_free(l);
}

TEST(fnlib_find_refuses_names_that_could_be_paths)
{
    static const struct agx_str bad[] = {
        { "c:", 2 },        { "c:a", 3 },       { "c:a::", 5 },
        { "c:::b", 5 },     { "c:../a::b", 9 }, { "c:/a::b", 7 },
        { "c:a\0b::c", 8 }, { "c:.a::b", 7 },   { "c:a::b::c", 9 }
    };
    struct agx_fnlib *l = agx_fnlib_new(AGX_STR("/"));
    struct agx_fn *fn;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_fnlib_find(l, bad[i], &fn, NULL));
    (void)agx_fnlib_free(l);
}

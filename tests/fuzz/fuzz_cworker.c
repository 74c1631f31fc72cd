/*
 * fuzz_cworker.c: arbitrary frames for the dispatcher of C functions, without threads. Calls on the
 * loop lane run at once, as unary. The others run when all frames were read and every call is
 * cancelled, so that nothing blocks. Properties: the dispatcher answers every call frame that has
 * an id exactly once; a cancelled call sends no item; all output consists of frames.
 */
#include "codec/frame.h"
#include "codec/mp_fields.h"
#include "tests/support/fuzz.h"
#include "worker/dispatch.h"

#include <string.h>

enum { CALLS_MAX = 64 };

struct fake {
    struct agx_dispatch *d;
    struct agx_fncall *started[CALLS_MAX];
    unsigned n_started;
    unsigned n_calls, n_terminal, n_items;
};

/* Touches every argument and gives them back. */
static int run_unary(struct agx_fn_call *call)
{
    struct agx_fn_value args = { 0 }, kwargs = { 0 }, v = { 0 };
    struct agx_fn_reader r;
    struct agx_fn_bytes text = { NULL, 0 };
    struct agx_fn_ndarray array;
    int64_t i = 0;

    (void)agx_fn_arg_int(call, 0, &i);
    (void)agx_fn_arg_str(call, 1, &text);
    agx_fn_args(call, &args, &kwargs);
    if (agx_fn_open(call, &args, &r) == 0) {
        while (agx_fn_read(call, &r, &v) > 0) {
            struct agx_fn_reader inner;

            (void)agx_fn_ndarray(call, &v, &array);
            if (agx_fn_open(call, &v, &inner) == 0)
                while (agx_fn_read(call, &inner, &v) > 0)
                    ;
        }
    }
    agx_fn_put_array(call, 2);
    agx_fn_put_raw(call, args.raw.ptr, args.raw.len);
    agx_fn_put_raw(call, kwargs.raw.ptr, kwargs.raw.len);
    return 0;
}

static int run_items(struct agx_fn_call *call)
{
    struct agx_fn_value v;
    int r;

    while (agx_fn_next(call, &v) > 0)
        ;
    agx_fn_put_int(call, 1);
    r = agx_fn_emit(call);
    FUZZ_CHECK(r < 0); /* it is cancelled */
    return r;
}

static const struct agx_function functions[] = {
    [AGX_FN_UNARY] = { "unary", AGX_FN_UNARY, 0, "a? b? args? kwargs?", run_unary },
    [AGX_FN_STREAM] = { "stream", AGX_FN_STREAM, 0, NULL, run_items },
    [AGX_FN_BIDI] = { "bidi", AGX_FN_BIDI, 0, NULL, run_items },
};

static void on_send(void *user, enum agx_remote_kind kind, struct agx_str frame, bool wait)
{
    struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;
    struct agx_mp_field type = { AGX_STR("type"), AGX_MP_BIT(AGX_MP_STR) };
    struct fake *f = user;

    (void)kind;
    (void)wait;
    FUZZ_CHECK(frame.len > AGX_FRAME_PREFIX_SIZE);
    frame = agx_str_skip(frame, AGX_FRAME_PREFIX_SIZE);
    FUZZ_CHECK(agx_mp_read_fields(frame, &limits, &type, 1, NULL) == 0 && type.present);
    if (agx_str_eq(type.value.bytes, AGX_STR("stream_item")))
        f->n_items++;
    else if (!agx_str_eq(type.value.bytes, AGX_STR("credit")))
        f->n_terminal++;
}

static void run(struct agx_fncall *call, enum agx_fn_kind kind)
{
    struct agx_fn fn;

    FUZZ_CHECK(agx_fn_prepare(&fn, &functions[kind], NULL) == 0);
    agx_fncall_run(call, &fn);
    (void)agx_fncall_unref(call);
}

static int on_start(void *user, struct agx_fncall *take_call, struct agx_error **err)
{
    struct fake *f = user;

    if (f->n_started == CALLS_MAX)
        return agx_error_set(err, AGX_UNAVAILABLE, "no thread");
    f->started[f->n_started++] = take_call;
    return 0;
}

/* Whether the frame is a call that must be answered. */
static bool is_call(struct agx_str frame)
{
    struct agx_worker_frame f;

    (void)!agx_worker_frame_parse(frame, &f, NULL);
    return f.type == AGX_WF_CALL && f.id > 0;
}

/* The frames: a byte for the lane, a byte for the length, so many bytes. */
static void feed(struct fake *f, struct agx_str in)
{
    while (in.len >= 2) {
        enum agx_remote_lane lane = in.ptr[0] & 1 ? AGX_LANE_THREAD : AGX_LANE_LOOP;
        size_t len = AGX_MIN((size_t)(uint8_t)in.ptr[1], in.len - 2);
        struct agx_str frame = { in.ptr + 2, len };
        unsigned before = f->n_started;
        uint64_t grace = 0;
        int r = agx_dispatch_frame(f->d, lane, frame, &grace, NULL);

        in = agx_str_skip(in, 2 + len);
        if (r == 0 && is_call(frame))
            f->n_calls++;
        if (r != 0)
            break;
        /* A call by the loop lane runs before the next frame, those by the other wait. */
        if (f->n_started > before && lane == AGX_LANE_LOOP)
            run(f->started[--f->n_started], AGX_FN_UNARY);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fake f = { 0 };
    struct agx_dispatch_io io = { .user = &f, .send = on_send, .start = on_start };

    f.d = agx_dispatch_new(&io);
    feed(&f, agx_str_bytes(data, size));
    agx_dispatch_stop(f.d);
    for (unsigned i = 0; i < f.n_started; i++)
        run(f.started[i], (enum agx_fn_kind)(i % AGX_ARRAY_LEN(functions)));
    FUZZ_CHECK(agx_dispatch_count(f.d) == 0);
    FUZZ_CHECK(f.n_terminal == f.n_calls);
    FUZZ_CHECK(f.n_items == 0);
    f.d = agx_dispatch_free(f.d);
    return 0;
}

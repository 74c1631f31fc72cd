/* functions.c: C functions for the tests of agentix-worker: good, failing, crashing, blocking. */
#include <agentix/function.h>

#include <ctype.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int add(struct agx_fn_call *call)
{
    int64_t a = 0, b = 0;

    if (agx_fn_arg_int(call, 0, &a) < 0 || agx_fn_arg_int(call, 1, &b) < 0)
        return AGX_FN_FAILED;
    agx_fn_put_int(call, a + b);
    return 0;
}

/* One argument of every type, with defaults for all. */
static int describe(struct agx_fn_call *call)
{
    int flag = 0;
    double number = 0.5;
    struct agx_fn_bytes text = { "none", 4 }, bytes = { NULL, 0 };

    if (agx_fn_arg_bool(call, 0, &flag) < 0 || agx_fn_arg_float(call, 1, &number) < 0 ||
        agx_fn_arg_str(call, 2, &text) < 0 || agx_fn_arg_bin(call, 3, &bytes) < 0)
        return AGX_FN_FAILED;
    agx_fn_put_map(call, 4);
    agx_fn_put_cstr(call, "flag");
    agx_fn_put_bool(call, flag);
    agx_fn_put_cstr(call, "number");
    agx_fn_put_float(call, number);
    agx_fn_put_cstr(call, "text");
    agx_fn_put_str(call, text.ptr, text.len);
    agx_fn_put_cstr(call, "bytes");
    agx_fn_put_bin(call, bytes.ptr, bytes.len);
    return 0;
}

/* [args, kwargs] as they came. */
static int echo(struct agx_fn_call *call)
{
    struct agx_fn_value args, kwargs;

    agx_fn_args(call, &args, &kwargs);
    agx_fn_put_array(call, 2);
    agx_fn_put_raw(call, args.raw.ptr, args.raw.len);
    agx_fn_put_raw(call, kwargs.raw.ptr, kwargs.raw.len);
    return 0;
}

/* The sum of a list of integers, or of the values of a dict. */
static int sum(struct agx_fn_call *call)
{
    struct agx_fn_value list, v;
    struct agx_fn_reader r;
    int64_t total = 0;

    if (agx_fn_arg(call, 0, &list) < 0 || agx_fn_open(call, &list, &r) < 0)
        return AGX_FN_FAILED;
    while (agx_fn_read(call, &r, &v) > 0) {
        if (v.type == AGX_FN_INT)
            total += v.as.i;
    }
    agx_fn_put_int(call, total);
    return 0;
}

/* An array with every element doubled. */
static int twice(struct agx_fn_call *call)
{
    struct agx_fn_value v;
    struct agx_fn_ndarray a;
    double x[16];

    if (agx_fn_arg(call, 0, &v) < 0 || agx_fn_ndarray(call, &v, &a) < 0)
        return AGX_FN_FAILED;
    if (a.data.len > sizeof(x) || a.dtype.len != 3 || memcmp(a.dtype.ptr, "<f8", 3) != 0)
        return agx_fn_fail(call, "ValueError", "at most 16 float64 are taken");
    memcpy(x, a.data.ptr, a.data.len);
    for (size_t i = 0; i < a.data.len / sizeof(x[0]); i++)
        x[i] *= 2;
    a.data.ptr = (const char *)x;
    agx_fn_put_ndarray(call, &a);
    return 0;
}

static int fail(struct agx_fn_call *call)
{
    return agx_fn_fail(call, "ValueError", "%s is %d too many", "this", 1);
}

static int fail_silently(struct agx_fn_call *call)
{
    (void)call;
    return -7;
}

static int bad_text(struct agx_fn_call *call)
{
    agx_fn_put_str(call, "\xff", 1);
    return 0;
}

static int two_values(struct agx_fn_call *call)
{
    agx_fn_put_int(call, 1);
    agx_fn_put_int(call, 2);
    return 0;
}

static int half_map(struct agx_fn_call *call)
{
    agx_fn_put_map(call, 1);
    agx_fn_put_cstr(call, "key");
    return 0;
}

static int int_keys(struct agx_fn_call *call)
{
    agx_fn_put_map(call, 1);
    agx_fn_put_int(call, 1);
    agx_fn_put_int(call, 2);
    return 0;
}

static int blob(struct agx_fn_call *call)
{
    int64_t size = 0;
    char *bytes;

    if (agx_fn_arg_int(call, 0, &size) < 0)
        return AGX_FN_FAILED;
    bytes = calloc(1, (size_t)size + 1);
    if (!bytes)
        return agx_fn_fail(call, "MemoryError", "no memory");
    agx_fn_put_bin(call, bytes, (size_t)size);
    free(bytes);
    return 0;
}

static int crash_abort(struct agx_fn_call *call)
{
    (void)call;
    abort();
}

static int crash_segv(struct agx_fn_call *call)
{
    (void)call;
    return raise(SIGSEGV);
}

static int leave(struct agx_fn_call *call)
{
    (void)call;
    _exit(3);
}

static int print(struct agx_fn_call *call)
{
    struct agx_fn_bytes text = { NULL, 0 };

    if (agx_fn_arg_str(call, 0, &text) < 0)
        return AGX_FN_FAILED;
    printf("%.*s\n", (int)text.len, text.ptr);
    return 0;
}

static int who(struct agx_fn_call *call)
{
    agx_fn_put_array(call, 2);
    agx_fn_put_cstr(call, agx_fn_call_id(call));
    agx_fn_put_int(call, agx_fn_time_left_ms(call));
    return 0;
}

/* Three ways to wait until cancelled. */
static int sleep_wait(struct agx_fn_call *call)
{
    int64_t ms = 600000;

    if (agx_fn_arg_int(call, 0, &ms) < 0)
        return AGX_FN_FAILED;
    return agx_fn_wait_ms(call, ms);
}

static int sleep_poll(struct agx_fn_call *call)
{
    struct pollfd p = { .fd = agx_fn_cancel_fd(call), .events = POLLIN };

    return poll(&p, 1, -1) == 1 ? AGX_FN_CANCELLED : AGX_FN_FAILED;
}

static int sleep_spin(struct agx_fn_call *call)
{
    while (!agx_fn_cancelled(call))
        usleep(1000);
    return AGX_FN_CANCELLED;
}

/* Looks at nothing. */
static int deaf(struct agx_fn_call *call)
{
    (void)call;
    sleep(3600);
    return 0;
}

static int count(struct agx_fn_call *call)
{
    int64_t n = 0;

    if (agx_fn_arg_int(call, 0, &n) < 0)
        return AGX_FN_FAILED;
    for (int64_t i = 0; i < n; i++) {
        int r;

        agx_fn_put_int(call, i);
        r = agx_fn_emit(call);
        if (r < 0)
            return r;
    }
    return 0;
}

static int count_and_fail(struct agx_fn_call *call)
{
    agx_fn_put_int(call, 1);
    (void)agx_fn_emit(call);
    return agx_fn_fail(call, "ValueError", "after one");
}

/* Dies between its items and its end, once the items have left the process. */
static int count_and_abort(struct agx_fn_call *call)
{
    int r = count(call);

    if (r < 0)
        return r;
    usleep(100 * 1000);
    return crash_abort(call);
}

static int endless(struct agx_fn_call *call)
{
    char block[1024] = { 0 };
    int r;

    do {
        agx_fn_put_bin(call, block, sizeof(block));
        r = agx_fn_emit(call);
    } while (r == 0);
    return r;
}

static int upper_until(struct agx_fn_call *call, const char *last)
{
    struct agx_fn_value v;
    int r;

    while ((r = agx_fn_next(call, &v)) > 0) {
        char text[256];
        size_t n = v.as.bytes.len < sizeof(text) ? v.as.bytes.len : sizeof(text);

        if (v.type != AGX_FN_STR)
            return agx_fn_fail(call, "TypeError", "text is needed");
        if (last && n == strlen(last) && memcmp(v.as.bytes.ptr, last, n) == 0)
            return crash_abort(call);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)toupper((unsigned char)v.as.bytes.ptr[i]);
        agx_fn_put_str(call, text, n);
        r = agx_fn_emit(call);
        if (r < 0)
            return r;
    }
    return r;
}

static int upper(struct agx_fn_call *call)
{
    return upper_until(call, NULL);
}

/* Dies of the input "abort". */
static int upper_or_abort(struct agx_fn_call *call)
{
    return upper_until(call, "abort");
}

/* Reads input and says at the end how much it was. */
static int swallow(struct agx_fn_call *call)
{
    struct agx_fn_value v;
    int64_t n = 0;
    int r;

    while ((r = agx_fn_next(call, &v)) > 0)
        n++;
    if (r < 0)
        return r;
    agx_fn_put_int(call, n);
    return agx_fn_emit(call);
}

/* Takes no input and stays. */
static int hold(struct agx_fn_call *call)
{
    return agx_fn_wait_ms(call, 600000);
}

/* Ends at once, whatever is still sent. */
static int quit(struct agx_fn_call *call)
{
    (void)call;
    return 0;
}

/* Not thread-safe: a lost update, or two at once, would show. */
static int serial(struct agx_fn_call *call)
{
    static atomic_int inside;
    static int64_t counter;
    int64_t old = counter;

    if (atomic_fetch_add(&inside, 1) > 0)
        return agx_fn_fail(call, "RuntimeError", "two at once");
    usleep(100);
    counter = old + 1;
    atomic_fetch_sub(&inside, 1);
    agx_fn_put_int(call, counter);
    return 0;
}

static const struct agx_function functions[] = {
    { "add", AGX_FN_UNARY, 0, "a b", add },
    { "describe", AGX_FN_UNARY, 0, "flag? number? text? bytes?", describe },
    { "echo", AGX_FN_UNARY, 0, NULL, echo },
    { "sum", AGX_FN_UNARY, 0, "values", sum },
    { "twice", AGX_FN_UNARY, 0, "array", twice },
    { "fail", AGX_FN_UNARY, 0, "", fail },
    { "fail_silently", AGX_FN_UNARY, 0, "", fail_silently },
    { "bad_text", AGX_FN_UNARY, 0, "", bad_text },
    { "two_values", AGX_FN_UNARY, 0, "", two_values },
    { "half_map", AGX_FN_UNARY, 0, "", half_map },
    { "int_keys", AGX_FN_UNARY, 0, "", int_keys },
    { "blob", AGX_FN_UNARY, 0, "size", blob },
    { "abort", AGX_FN_UNARY, 0, "", crash_abort },
    { "segv", AGX_FN_UNARY, 0, "", crash_segv },
    { "leave", AGX_FN_UNARY, 0, "", leave },
    { "print", AGX_FN_UNARY, 0, "text", print },
    { "who", AGX_FN_UNARY, 0, "", who },
    { "sleep_wait", AGX_FN_UNARY, 0, "ms?", sleep_wait },
    { "sleep_poll", AGX_FN_UNARY, 0, "", sleep_poll },
    { "sleep_spin", AGX_FN_UNARY, 0, "", sleep_spin },
    { "deaf", AGX_FN_UNARY, 0, "", deaf },
    { "count", AGX_FN_STREAM, 0, "n", count },
    { "count_and_fail", AGX_FN_STREAM, 0, "", count_and_fail },
    { "count_and_abort", AGX_FN_STREAM, 0, "n", count_and_abort },
    { "endless", AGX_FN_STREAM, 0, "", endless },
    { "upper", AGX_FN_BIDI, 0, "", upper },
    { "upper_or_abort", AGX_FN_BIDI, 0, "", upper_or_abort },
    { "swallow", AGX_FN_BIDI, 0, "", swallow },
    { "hold", AGX_FN_BIDI, 0, "", hold },
    { "quit", AGX_FN_BIDI, 0, "", quit },
    { "serial", AGX_FN_UNARY, AGX_FUNCTION_SERIAL, "", serial },
};
AGX_FUNCTIONS(functions);

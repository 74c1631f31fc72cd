/*
 * event_loop.c: many calls at once from one thread and one poll(2). The library gives the
 * descriptor, the events and the timeout, so any other loop works as well.
 *
 *     ./event_loop unix:///run/agentix.sock TARGET N      calls TARGET N times with {"n": 1 ... N}
 */
#include <agentix/msgpack.h>
#include <agentix/runtime.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

struct totals {
    long left, good, failed;
};

static int start(struct agx_runtime *rt, const char *target, long n, struct agx_error **err)
{
    struct agx_call_options options = AGX_CALL_OPTIONS_INIT;
    struct agx_writer *kwargs = agx_writer_new();
    struct agx_call *call;
    int r;

    agx_writer_map(kwargs, 1);
    agx_writer_cstr(kwargs, "n");
    agx_writer_int(kwargs, n);
    options.target = target;
    r = agx_writer_bytes(kwargs, &options.kwargs, &options.kwargs_len, err);
    if (r == 0)
        r = agx_call_start(rt, &options, &call, err);
    agx_writer_free(kwargs);
    return r;
}

/* A unary call has news: its result, or its failure. */
static void finish(struct agx_call *call, struct totals *t)
{
    struct agx_error *err = NULL;
    const void *value;
    char text[512];
    size_t len;
    int got = agx_call_take(call, &value, &len, &err);

    if (got == AGX_TAKE_NOTHING)
        return;
    if (got == AGX_TAKE_VALUE)
        t->good++;
    else if (t->failed++ == 0)
        fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
    t->left--;
    agx_error_free(err);
    agx_call_free(call);
}

static void run(struct agx_runtime *rt, struct totals *t)
{
    struct agx_call *call;

    while (t->left > 0) {
        struct pollfd p = { agx_runtime_fd(rt), agx_runtime_events(rt), 0 };

        poll(&p, 1, agx_runtime_timeout_ms(rt)); /* poll() ignores a descriptor of -1 */
        agx_runtime_dispatch(rt);
        while ((call = agx_runtime_next(rt)))
            finish(call, t);
    }
}

int main(int argc, char **argv)
{
    struct agx_runtime_options options = AGX_RUNTIME_OPTIONS_INIT;
    struct agx_runtime *rt = NULL;
    struct agx_error *err = NULL;
    struct totals t = { 0, 0, 0 };
    char text[512];
    int r;

    if (argc != 4) {
        fprintf(stderr, "usage: %s URL TARGET N\n", argv[0]);
        return 2;
    }
    options.url = argv[1];
    r = agx_runtime_open(&options, &rt, &err);
    for (long n = 1, end = strtol(argv[3], NULL, 10); r == 0 && n <= end; n++) {
        r = start(rt, argv[2], n, &err);
        t.left += r == 0;
    }
    if (r == 0)
        run(rt, &t);
    else
        fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
    printf("%ld good, %ld failed\n", t.good, t.failed);
    agx_error_free(err);
    agx_runtime_close(rt);
    return r < 0 || t.failed > 0;
}

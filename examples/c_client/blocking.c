/*
 * blocking.c: makes one call of each shape, one after the other, and waits for each answer.
 *
 *     cc blocking.c $(pkg-config --cflags --libs agentix) -o blocking
 *     ./blocking unix:///run/agentix.sock
 *
 * The functions are those of examples/c_function.
 */
#include <agentix/msgpack.h>
#include <agentix/runtime.h>

#include <stdio.h>
#include <stdlib.h>

/* Prints one msgpack value as JSON. */
static void print_value(const char *what, const void *value, size_t len)
{
    struct agx_reader r;
    char *json = NULL;

    agx_reader_init(&r, value, len);
    if (agx_reader_json(&r, &json, NULL) == 0)
        printf("%s %s\n", what, json);
    free(json);
}

static int count(struct agx_runtime *rt, struct agx_error **err)
{
    struct agx_call_options options = AGX_CALL_OPTIONS_INIT;
    struct agx_writer *args = agx_writer_new();
    struct agx_call *call = NULL;
    const void *value;
    size_t len;
    int r;

    agx_writer_array(args, 1);
    agx_writer_cstr(args, "one two three");
    options.target = "c:words::count";
    options.timeout_ms = 5000;
    r = agx_writer_bytes(args, &options.args, &options.args_len, err);
    if (r == 0)
        r = agx_call_start(rt, &options, &call, err);
    if (r == 0)
        r = agx_call_wait(call, -1, &value, &len, err);
    if (r == 0)
        print_value("count:", value, len);
    agx_call_free(call);
    agx_writer_free(args);
    return r;
}

static int split(struct agx_runtime *rt, struct agx_error **err)
{
    struct agx_call_options options = AGX_CALL_OPTIONS_INIT;
    struct agx_call *call = NULL;
    const void *item;
    size_t len;
    int r;

    options.kind = AGX_CALL_STREAM;
    options.target = "c:words::split";
    options.args = "\x91\xa7one two"; /* msgpack is easy to write by hand, too: ["one two"] */
    options.args_len = 9;
    r = agx_call_start(rt, &options, &call, err);
    while (r >= 0 && (r = agx_stream_next(call, 5000, &item, &len, err)) > 0)
        print_value("split:", item, len);
    agx_call_free(call);
    return r;
}

static int reverse(struct agx_runtime *rt, struct agx_error **err)
{
    static const char *const words[] = { "abc", "xyz" };
    struct agx_call_options options = AGX_CALL_OPTIONS_INIT;
    struct agx_writer *w = agx_writer_new();
    struct agx_call *call = NULL;
    const void *item;
    size_t len;
    int r;

    options.kind = AGX_CALL_BIDI;
    options.target = "c:words::reverse";
    r = agx_call_start(rt, &options, &call, err);
    for (int i = 0; r >= 0 && i < 2; i++) {
        agx_writer_clear(w);
        agx_writer_bin(w, words[i], 3);
        r = agx_writer_bytes(w, &item, &len, err);
        if (r == 0)
            r = agx_call_send_wait(call, 5000, item, len, err);
        if (r == 0 && agx_stream_next(call, 5000, &item, &len, err) > 0)
            print_value("reverse:", item, len);
    }
    if (r == 0)
        r = agx_call_end_input(call, err);
    if (r == 0)
        r = agx_stream_next(call, 5000, &item, &len, err); /* 0: the end */
    agx_call_free(call);
    agx_writer_free(w);
    return r;
}

int main(int argc, char **argv)
{
    struct agx_runtime_options options = AGX_RUNTIME_OPTIONS_INIT;
    struct agx_runtime *rt = NULL;
    struct agx_error *err = NULL;
    char text[512];
    int r;

    if (argc != 2) {
        fprintf(stderr, "usage: %s URL\n", argv[0]);
        return 2;
    }
    options.url = argv[1];
    r = agx_runtime_open(&options, &rt, &err);
    if (r == 0)
        r = count(rt, &err);
    if (r == 0)
        r = split(rt, &err);
    if (r == 0)
        r = reverse(rt, &err);
    if (r < 0)
        fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
    agx_error_free(err);
    agx_runtime_close(rt);
    return r < 0;
}

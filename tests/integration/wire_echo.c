/*
 * wire_echo.c: reads and writes protobuf messages, for a test that compares them with another
 * library.
 *
 *     wire_echo read KIND    reads a message on stdin and writes it again: "create", "exec", ...
 *     wire_echo write KIND   writes an answer with a value in every field
 *     wire_echo json NAME    writes the message on stdin as JSON
 *
 * If it refuses a message, it prints the error on stderr and exits with status 1.
 */
#include "tests/support/wire.h"
#include "wire/control_request.h"
#include "wire/image_request.h"
#include "wire/image_wire.h"
#include "wire/reply.h"
#include "wire/stats.h"
#include "wire/status_details.h"
#include "wire/wire_json.h"

#include <stdio.h>

enum { INPUT_MAX = 8 << 20 };

#define READ(name, type, decode, encode, done)                                                     \
    static int name(struct agx_buf *out, struct agx_str in, struct agx_error **err)                \
    {                                                                                              \
        type q = { 0 };                                                                            \
        int r = decode(&q, in, err);                                                               \
                                                                                                   \
        if (r < 0)                                                                                 \
            return r;                                                                              \
        r = encode(out, &q);                                                                       \
        done(&q);                                                                                  \
        return r;                                                                                  \
    }

READ(create, struct agx_create_request, agx_create_request_decode, agx_create_request_encode,
     agx_create_request_done)
READ(exec, struct agx_exec_request, agx_exec_request_decode, agx_exec_request_encode,
     agx_exec_request_done)
READ(list, struct agx_list_request, agx_list_request_decode, agx_list_request_encode,
     agx_list_request_done)
READ(page, struct agx_list_request, agx_page_request_decode, agx_page_request_encode,
     agx_list_request_done)
READ(selector, struct agx_pairs, agx_delete_request_decode, agx_delete_request_encode,
     agx_pairs_done)
READ(subscribe, struct agx_subscribe_request, agx_subscribe_request_decode,
     agx_subscribe_request_encode, agx_subscribe_request_done)
READ(watch, struct agx_watch_request, agx_watch_request_decode, agx_watch_request_encode,
     agx_watch_request_done)
READ(output, struct agx_output_request, agx_output_request_decode, agx_output_request_encode,
     agx_output_request_done)
READ(wait_sandbox, struct agx_wait_request, agx_wait_sandbox_decode, agx_wait_sandbox_encode,
     agx_wait_request_done)
READ(wait_exec, struct agx_wait_request, agx_wait_exec_decode, agx_wait_exec_encode,
     agx_wait_request_done)
READ(input, struct agx_input_request, agx_input_request_decode, agx_input_request_encode,
     agx_input_request_done)
READ(stats, struct agx_stats, agx_stats_decode, agx_stats_encode, agx_stats_done)

static int sandbox_id(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    _cleanup_free_ char *id = NULL;
    int r = agx_sandbox_id_decode(in, &id, err);

    return r < 0 ? r : agx_id_encode(out, id);
}

static int exec_id(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    _cleanup_free_ char *id = NULL;
    int r = agx_exec_id_decode(in, &id, err);

    return r < 0 ? r : agx_id_encode(out, id);
}

static int active(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    _cleanup_free_ char *id = NULL;
    int r = agx_active_request_decode(in, &id, err);

    return r < 0 ? r : agx_active_request_encode(out, id);
}

static int image(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    _cleanup_free_ char *name = NULL;
    int r = agx_image_ref_decode(in, &name, err);

    return r < 0 ? r : agx_id_encode(out, name);
}

static int import(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    _cleanup_free_ char *name = NULL;
    struct agx_import_request q;
    int r = agx_import_request_decode(&q, in, err);

    if (r < 0)
        return r;
    name = agx_str_dup(q.name);
    return agx_import_request_encode(out, name, q.data);
}

READ(details, struct agx_image_details, agx_image_details_decode, agx_reply_image_details,
     agx_image_details_done)
READ(removed, struct agx_images_removed_view, agx_images_removed_decode, agx_reply_images_removed,
     agx_images_removed_done)

static int images(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    struct agx_image_views v;
    int r = agx_image_views_decode(&v, in, err);

    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < v.len; i++)
        r = agx_reply_image(out, &v.items[i]);
    agx_image_views_done(&v);
    return r;
}

/* An image, and what is in it. */
static int inspect(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    int r = images(out, in, err);

    return r < 0 ? r : details(out, in, err);
}

static int pull(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    struct agx_pull_view v;
    int r = agx_image_pull_decode(&v, in, err);

    if (r <= 0)
        return r;
    r = agx_reply_image_pull(out, &v.pull);
    agx_pull_view_done(&v);
    return r;
}

static int write_sandbox(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    struct agx_sandbox sb = { 0 };
    int r = wire_sandbox(&sb);

    (void)in;
    (void)err;
    if (r == 0)
        r = agx_reply_sandbox(out, &sb, true);
    if (r == 0)
        r = agx_reply_timed_out(out);
    agx_sandbox_done(&sb);
    return r;
}

static int write_exec(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    struct agx_exec e = { 0 };
    int r = wire_exec(&e);

    (void)in;
    (void)err;
    if (r == 0)
        r = agx_reply_exec(out, &e, 44, true);
    agx_exec_done(&e);
    return r;
}

/* One of each type. */
static int write_events(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    int r = 0;

    (void)in;
    (void)err;
    for (int type = 1; r == 0 && type < AGX_EVENT_COUNT; type++) {
        _cleanup_buf_ struct agx_buf one = AGX_BUF_INIT(1 << 20);
        struct agx_event e = { 0 };

        r = wire_event(&e, type);
        if (r == 0)
            r = agx_reply_watch(&one, (uint64_t)type, &e, "box-1");
        if (r == 0)
            r = agx_buf_push(out, (uint8_t)one.len);
        if (r == 0)
            r = agx_buf_append(out, agx_buf_peek(&one));
        agx_event_done(&e);
    }
    return r;
}

static int write_status(struct agx_buf *out, struct agx_str in, struct agx_error **err)
{
    (void)in;
    (void)err;
    return agx_status_encode(out, &(struct agx_status){ .code = AGX_OUT_OF_RANGE,
                                                        .message = AGX_STR("the message"),
                                                        .reason = AGX_REASON_SEQUENCE_EXPIRED,
                                                        .id = "box-1",
                                                        .from_sequence = 99 });
}

static const struct kind {
    const char *verb, *name;
    int (*run)(struct agx_buf *out, struct agx_str in, struct agx_error **err);
} kinds[] = {
    { "read", "create", create },
    { "read", "exec", exec },
    { "read", "list", list },
    { "read", "page", page },
    { "read", "selector", selector },
    { "read", "subscribe", subscribe },
    { "read", "watch", watch },
    { "read", "output", output },
    { "read", "wait_sandbox", wait_sandbox },
    { "read", "wait_exec", wait_exec },
    { "read", "input", input },
    { "read", "stats", stats },
    { "read", "sandbox_id", sandbox_id },
    { "read", "exec_id", exec_id },
    { "read", "active", active },
    { "read", "image", image },
    { "read", "import", import },
    { "read", "images", images },
    { "read", "inspect", inspect },
    { "read", "removed", removed },
    { "read", "pull", pull },
    { "write", "sandbox", write_sandbox },
    { "write", "exec", write_exec },
    { "write", "events", write_events },
    { "write", "status", write_status },
};

static int run(const char *verb, const char *name, struct agx_str in, struct agx_buf *out,
               struct agx_error **err)
{
    if (strcmp(verb, "json") == 0)
        return agx_wire_json(out, name, in, err);
    for (size_t i = 0; i < AGX_ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].verb, verb) == 0 && strcmp(kinds[i].name, name) == 0)
            return kinds[i].run(out, in, err);
    return agx_error_set(err, AGX_NOT_FOUND, "no kind '%s %s'", verb, name);
}

int main(int argc, char **argv)
{
    _cleanup_buf_ struct agx_buf in = AGX_BUF_INIT(INPUT_MAX), out = AGX_BUF_INIT(INPUT_MAX);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[1024];

    if (argc != 3 || agx_buf_reserve(&in, INPUT_MAX) < 0)
        return 2;
    in.len = fread(in.data, 1, INPUT_MAX, stdin);
    if (run(argv[1], argv[2], agx_buf_peek(&in), &out, &err) < 0) {
        fprintf(stderr, "%s\n", agx_error_format(err, text, sizeof(text)));
        return 1;
    }
    return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : 2;
}

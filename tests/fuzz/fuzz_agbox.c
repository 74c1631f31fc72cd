/*
 * fuzz_agbox.c: hostile protobuf messages of our services and of the store. The first byte chooses
 * the message type. A decoder refuses a message with an error or accepts it; an accepted message
 * that is encoded and decoded again is the same. What clients print of it is JSON.
 */
#include "codec/json_scan.h"
#include "tests/support/fuzz.h"
#include "tests/support/pairs.h"
#include "wire/control_request.h"
#include "wire/image_request.h"
#include "wire/image_wire.h"
#include "wire/record.h"
#include "wire/reply.h"
#include "wire/stats.h"
#include "wire/status_details.h"
#include "wire/usage_wire.h"
#include "wire/view.h"
#include "wire/wire_json.h"

enum { OUT_MAX = 64 << 20 };

/* A decoder's answer and its error agree, and the code is one that it may give. */
static bool understood(int r, enum agx_code blame, struct agx_error **err)
{
    FUZZ_CHECK((r < 0) == (*err != NULL));
    FUZZ_CHECK(r >= 0 || r == -(int)blame || r == -AGX_RESOURCE_EXHAUSTED);
    agx_error_free(*err);
    return r >= 0;
}

/* Reads, writes, reads, writes: both texts are the same. */
#define ROUND(name, type, blame, decode, encode, done)                                             \
    static void name(struct agx_str bytes)                                                         \
    {                                                                                              \
        struct agx_buf first = AGX_BUF_INIT(OUT_MAX), second = AGX_BUF_INIT(OUT_MAX);              \
        struct agx_error *err = NULL;                                                              \
        type q = { 0 };                                                                            \
        type again = { 0 };                                                                        \
                                                                                                   \
        if (!understood(decode(&q, bytes, &err), blame, &err))                                     \
            return;                                                                                \
        FUZZ_CHECK(encode(&first, &q) == 0);                                                       \
        FUZZ_CHECK(decode(&again, agx_buf_peek(&first), NULL) == 0);                               \
        FUZZ_CHECK(encode(&second, &again) == 0);                                                  \
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&first), agx_buf_peek(&second)));                       \
        done(&q);                                                                                  \
        done(&again);                                                                              \
        agx_buf_done(&first);                                                                      \
        agx_buf_done(&second);                                                                     \
    }

#define REQUEST(name, type, decode, encode, done)                                                  \
    ROUND(name, type, AGX_INVALID_ARGUMENT, decode, encode, done)

static int active_decode(char **ret, struct agx_str bytes, struct agx_error **err)
{
    return agx_active_request_decode(bytes, ret, err);
}

static int active_encode(struct agx_buf *out, char *const *id)
{
    return agx_active_request_encode(out, *id);
}

static int id_decode(char **ret, struct agx_str bytes, struct agx_error **err)
{
    return agx_exec_id_decode(bytes, ret, err);
}

static int id_encode(struct agx_buf *out, char *const *id)
{
    return agx_id_encode(out, *id);
}

static void text_done(char **text)
{
    free(*text);
}

REQUEST(create, struct agx_create_request, agx_create_request_decode, agx_create_request_encode,
        agx_create_request_done)
REQUEST(exec, struct agx_exec_request, agx_exec_request_decode, agx_exec_request_encode,
        agx_exec_request_done)
REQUEST(list, struct agx_list_request, agx_list_request_decode, agx_list_request_encode,
        agx_list_request_done)
REQUEST(page, struct agx_list_request, agx_page_request_decode, agx_page_request_encode,
        agx_list_request_done)
REQUEST(selector, struct agx_pairs, agx_delete_request_decode, agx_delete_request_encode,
        agx_pairs_done)
REQUEST(subscribe, struct agx_subscribe_request, agx_subscribe_request_decode,
        agx_subscribe_request_encode, agx_subscribe_request_done)
REQUEST(watch, struct agx_watch_request, agx_watch_request_decode, agx_watch_request_encode,
        agx_watch_request_done)
REQUEST(output, struct agx_output_request, agx_output_request_decode, agx_output_request_encode,
        agx_output_request_done)
REQUEST(wait_sandbox, struct agx_wait_request, agx_wait_sandbox_decode, agx_wait_sandbox_encode,
        agx_wait_request_done)
REQUEST(wait_exec, struct agx_wait_request, agx_wait_exec_decode, agx_wait_exec_encode,
        agx_wait_request_done)
REQUEST(input, struct agx_input_request, agx_input_request_decode, agx_input_request_encode,
        agx_input_request_done)
static int image_decode(char **ret, struct agx_str bytes, struct agx_error **err)
{
    return agx_image_ref_decode(bytes, ret, err);
}

static int import_encode(struct agx_buf *out, const struct agx_import_request *q)
{
    _cleanup_free_ char *name = agx_str_dup(q->name);

    return name ? agx_import_request_encode(out, name, q->data) : -AGX_RESOURCE_EXHAUSTED;
}

static void import_done(struct agx_import_request *q)
{
    (void)q; /* it borrows */
}

static int images_encode(struct agx_buf *out, const struct agx_image_views *v)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < v->len; i++)
        r = agx_reply_image(out, &v->items[i]);
    return r;
}

REQUEST(image, char *, image_decode, id_encode, text_done)
REQUEST(import, struct agx_import_request, agx_import_request_decode, import_encode, import_done)
ROUND(images, struct agx_image_views, AGX_INTERNAL, agx_image_views_decode, images_encode,
      agx_image_views_done)
ROUND(image_details, struct agx_image_details, AGX_INTERNAL, agx_image_details_decode,
      agx_reply_image_details, agx_image_details_done)
ROUND(images_removed, struct agx_images_removed_view, AGX_INTERNAL, agx_images_removed_decode,
      agx_reply_images_removed, agx_images_removed_done)
REQUEST(active, char *, active_decode, active_encode, text_done)
REQUEST(id, char *, id_decode, id_encode, text_done)
ROUND(sandbox_record, struct agx_sandbox, AGX_DATA_LOSS, agx_sandbox_record_decode,
      agx_sandbox_record_encode, agx_sandbox_done)
ROUND(exec_record, struct agx_exec, AGX_DATA_LOSS, agx_exec_record_decode, agx_exec_record_encode,
      agx_exec_done)
ROUND(event_record, struct agx_event_record, AGX_DATA_LOSS, agx_event_record_decode,
      agx_event_record_encode, agx_event_record_done)
ROUND(stats, struct agx_stats, AGX_INTERNAL, agx_stats_decode, agx_stats_encode, agx_stats_done)

/* What the daemon tells of a sandbox that it read, clients can read. */
static void handle(struct agx_str bytes)
{
    struct agx_buf out = AGX_BUF_INIT(OUT_MAX);
    struct agx_error *err = NULL;
    struct agx_sandbox_views v;
    struct agx_sandbox sb;

    if (!understood(agx_sandbox_record_decode(&sb, bytes, &err), AGX_DATA_LOSS, &err))
        return;
    sb.created.wall_ns /= 2; /* the first second of all time has no text */
    FUZZ_CHECK(agx_reply_sandbox(&out, &sb, false) == 0);
    FUZZ_CHECK(agx_reply_sandbox(&out, &sb, true) == 0);
    FUZZ_CHECK(agx_sandbox_views_decode(&v, agx_buf_peek(&out), NULL) == 0 && v.len == 2);
    FUZZ_CHECK(strcmp(v.items[0].id, sb.id) == 0);
    FUZZ_CHECK(v.items[0].created_at_ns == sb.created.wall_ns);
    FUZZ_CHECK(test_pairs_eq(&v.items[1].spec.labels, &sb.spec.labels));
    FUZZ_CHECK(v.items[1].spec.companions_len == sb.spec.companions_len);
    agx_sandbox_views_done(&v);
    agx_sandbox_done(&sb);
    agx_buf_done(&out);
}

/* A sandbox without companions: what is in the record must fit. */
static int life_encode(struct agx_buf *out, const struct agx_sandbox *sb)
{
    return agx_life_record_encode(out, &sb->life);
}

ROUND(life_record, struct agx_sandbox, AGX_DATA_LOSS, agx_life_record_decode, life_encode,
      agx_sandbox_done)

#define VIEW(name, type, call, done)                                                               \
    static void name(struct agx_str bytes)                                                         \
    {                                                                                              \
        struct agx_error *err = NULL;                                                              \
        type v = { 0 };                                                                            \
                                                                                                   \
        if (understood(call, AGX_INTERNAL, &err))                                                  \
            done(&v);                                                                              \
    }

VIEW(view_sandboxes, struct agx_sandbox_views, agx_sandbox_views_decode(&v, bytes, &err),
     agx_sandbox_views_done)
VIEW(view_execs, struct agx_exec_views, agx_exec_views_decode(&v, bytes, &err), agx_exec_views_done)
VIEW(view_event, struct agx_event_view, agx_event_view_decode(&v, bytes, &err), agx_event_view_done)
VIEW(view_status, struct agx_status_view, agx_status_view_decode(&v, bytes, &err),
     agx_status_view_done)

VIEW(view_image_pull, struct agx_pull_view, agx_image_pull_decode(&v, bytes, &err),
     agx_pull_view_done)

static void show(const char *message, struct agx_str bytes)
{
    struct agx_buf out = AGX_BUF_INIT(OUT_MAX);
    struct agx_error *err = NULL;
    struct agx_json_token token = { .kind = AGX_JSON_NULL };
    struct agx_json_scan scan;

    if (!understood(agx_wire_json(&out, message, bytes, &err), AGX_INTERNAL, &err))
        return;
    agx_json_scan_init(&scan, agx_buf_peek(&out), 16);
    while (token.kind != AGX_JSON_END)
        FUZZ_CHECK(agx_json_scan_next(&scan, &token, NULL) == 0);
    agx_buf_done(&out);
}

static void show_create(struct agx_str bytes)
{
    show("agbox.v1.CreateSandboxRequest", bytes);
}

static void show_page(struct agx_str bytes)
{
    show("agentix.v1.ListSandboxesResponse", bytes);
}

static void show_watch(struct agx_str bytes)
{
    show("agentix.v1.WatchEventsResponse", bytes);
}

static void show_image(struct agx_str bytes)
{
    show("agentix.v1.InspectImageResponse", bytes);
}

static void show_use(struct agx_str bytes)
{
    show("agentix.v1.GetSandboxResponse", bytes);
}

static void view_use(struct agx_str bytes)
{
    struct agx_error *err = NULL;
    struct agx_usage_view v;

    if (understood(agx_usage_view_decode(&v, bytes, &err), AGX_INTERNAL, &err))
        agx_usage_view_done(&v);
}

/* The order is that of the corpus: new ones come last. */
static void (*const targets[])(struct agx_str) = {
    create,       exec,           list,           page,
    selector,     subscribe,      watch,          output,
    wait_sandbox, wait_exec,      input,          active,
    id,           sandbox_record, exec_record,    event_record,
    stats,        life_record,    view_sandboxes, view_execs,
    view_event,   view_status,    show_create,    show_page,
    show_watch,   handle,         image,          import,
    images,       image_details,  images_removed, view_image_pull,
    show_image,   show_use,       view_use,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    targets[data[0] % AGX_ARRAY_LEN(targets)](agx_str_bytes(data + 1, size - 1));
    return 0;
}

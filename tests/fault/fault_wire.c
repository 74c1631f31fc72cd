#include "tests/support/fault.h"
#include "tests/support/wire.h"
#include "tests/support/wire_image.h"
#include "wire/control_request.h"
#include "wire/image_request.h"
#include "wire/record.h"
#include "wire/reply.h"
#include "wire/stats.h"
#include "wire/status_details.h"
#include "wire/usage_wire.h"
#include "wire/view.h"
#include "wire/wire_json.h"

/* More than an arena's first bytes, so that encoding has to allocate too. */
static int long_labels(struct agx_pairs *labels)
{
    for (int i = 0; i < 100; i++) {
        char key[] = { (char)('a' + i / 10), (char)('0' + i % 10), 0 };
        int r = agx_pairs_set(labels, agx_str_from(key), AGX_STR("v"), NULL);

        if (r < 0)
            return r;
    }
    return 0;
}

/* What a round came to: all, or no memory. */
static void ended(int r)
{
    ASSERT_TRUE(r >= 0 || r == -AGX_RESOURCE_EXHAUSTED);
    ASSERT_INT(r < 0, agx_fault_hit());
}

TEST(create_request_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_create_request q, back;
        int r;

        agx_create_request_init(&q);
        agx_create_request_init(&back);
        q.has_spec = true;
        r = wire_spec(&q.spec);
        if (r == 0)
            r = long_labels(&q.spec.labels);
        if (r == 0)
            r = agx_text_set(&q.sandbox_id, "box-1", NULL);
        if (r == 0)
            r = agx_buf_append(&q.config_yaml, AGX_STR("image: x"));
        if (r == 0)
            r = agx_create_request_encode(&out, &q);
        if (r == 0)
            r = agx_create_request_decode(&back, agx_buf_peek(&out), NULL);
        ended(r);
        agx_create_request_done(&q);
        agx_create_request_done(&back);
    }
}

static int exec_and_lists(struct agx_exec_request *q, struct agx_list_request *l,
                          struct agx_watch_request *w)
{
    static const struct agx_str id = { "\x0a\x01x", 3 }, chunk = { "\x0a\x01x\x12\x01y", 6 };
    static const struct agx_str output = { "\x0a\x01x\x10\x01", 5 };
    struct agx_subscribe_request s = { 0 };
    struct agx_output_request o = { 0 };
    struct agx_input_request in = { 0 };
    struct agx_wait_request wait = { 0 };
    _cleanup_free_ char *text = NULL, *absent = NULL;
    int r;

    if ((r = agx_exec_request_decode(q,
                                     AGX_STR("\x0a\x01"
                                             "b\x12\x01"
                                             "a\x1a\x01"
                                             "b\x22\x06\x0a\x01k\x12\x01v\x2a\x01"
                                             "e"),
                                     NULL)) < 0 ||
        (r = agx_list_request_decode(l, AGX_STR("\x12\x06\x0a\x01k\x12\x01v"), NULL)) < 0 ||
        (r = agx_watch_request_decode(w,
                                      AGX_STR("\x1a\x06\x0a\x01k\x12\x01v\x22\x01"
                                              "a"),
                                      NULL)) < 0 ||
        (r = agx_sandbox_id_decode(id, &text, NULL)) < 0 ||
        (r = agx_active_request_decode(id, &absent, NULL)) < 0 ||
        (r = agx_subscribe_request_decode(&s, id, NULL)) < 0)
        return r;
    agx_subscribe_request_done(&s);
    if ((r = agx_output_request_decode(&o, output, NULL)) < 0)
        return r;
    agx_output_request_done(&o);
    if ((r = agx_input_request_decode(&in, chunk, NULL)) < 0)
        return r;
    agx_input_request_done(&in);
    if ((r = agx_wait_sandbox_decode(&wait, id, NULL)) < 0)
        return r;
    agx_wait_request_done(&wait);
    return 0;
}

TEST(requests_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_exec_request q = { 0 };
        struct agx_list_request l = { 0 };
        struct agx_watch_request w = { 0 };

        ended(exec_and_lists(&q, &l, &w));
        agx_exec_request_done(&q);
        agx_list_request_done(&l);
        agx_watch_request_done(&w);
    }
}

TEST(sandbox_records_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_sandbox sb = { 0 }, back = { 0 };
        int r = wire_sandbox(&sb);

        if (r == 0)
            r = long_labels(&sb.spec.labels);
        if (r == 0)
            r = agx_sandbox_record_encode(&out, &sb);
        if (r == 0)
            r = agx_sandbox_record_decode(&back, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = agx_life_record_encode(&out, &sb.life);
        if (r == 0)
            r = agx_life_record_decode(&back, agx_buf_peek(&out), NULL);
        ended(r);
        agx_sandbox_done(&sb);
        agx_sandbox_done(&back);
    }
}

TEST(exec_and_event_records_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_event_record record = { .position = 1, .sandbox_id = (char *)"box-1" };
        struct agx_event_record again = { 0 };
        struct agx_exec e = { 0 }, back = { 0 };
        int r = wire_exec(&e);

        if (r == 0)
            r = agx_exec_record_encode(&out, &e);
        if (r == 0)
            r = agx_exec_record_decode(&back, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = wire_event(&record.event, AGX_EVENT_EXEC_FAILED);
        if (r == 0)
            r = agx_event_record_encode(&out, &record);
        if (r == 0)
            r = agx_event_record_decode(&again, agx_buf_peek(&out), NULL);
        ended(r);
        agx_exec_done(&e);
        agx_exec_done(&back);
        agx_event_done(&record.event);
        agx_event_record_done(&again);
    }
}

TEST(lists_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX), json = AGX_BUF_INIT(1 << 20);
        struct agx_sandbox_views views = { 0 };
        struct agx_sandbox sb = { 0 };
        int r = wire_sandbox(&sb);

        if (r == 0)
            r = agx_reply_sandbox(&out, &sb, true);
        if (r == 0)
            r = agx_reply_sandbox(&out, &sb, false);
        if (r == 0)
            r = agx_reply_page_token(&out, "next");
        if (r == 0)
            r = agx_sandbox_views_decode(&views, agx_buf_peek(&out), NULL);
        if (r == 0)
            r = agx_wire_json(&json, "agentix.v1.ListSandboxesResponse", agx_buf_peek(&out), NULL);
        ended(r);
        agx_sandbox_views_done(&views);
        agx_sandbox_done(&sb);
    }
}

TEST(use_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_resource_usage use = { .known = 1U << AGX_USAGE_DISK };
        struct agx_usage_view v = { 0 };
        int r = agx_reply_usage(&out, &use);

        if (r == 0)
            r = agx_reply_companion_usage(&out, "cache", &use);
        if (r == 0)
            r = agx_reply_usage_error(&out, "slow");
        if (r == 0)
            r = agx_usage_view_decode(&v, agx_buf_peek(&out), NULL);
        ended(r);
        agx_usage_view_done(&v);
    }
}

TEST(exec_lists_and_events_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_exec_views execs = { 0 };
        struct agx_event_view event = { 0 };
        struct agx_event e = { 0 };
        struct agx_exec exec = { 0 };
        uint64_t position;
        int r = wire_exec(&exec);

        if (r == 0)
            r = agx_reply_exec(&out, &exec, 3, true);
        if (r == 0)
            r = agx_exec_views_decode(&execs, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = wire_event(&e, AGX_EVENT_COMPANION_FAILED);
        if (r == 0)
            r = agx_reply_watch(&out, 1, &e, "box-1");
        if (r == 0)
            r = agx_watch_view_decode(&event, &position, agx_buf_peek(&out), NULL);
        ended(r);
        agx_exec_done(&exec);
        agx_exec_views_done(&execs);
        agx_event_done(&e);
        agx_event_view_done(&event);
    }
}

TEST(pulls_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        const struct agx_pull pull = { "redis:7", 1, 2, 3, 4 };
        struct agx_pull_view view = { 0 };
        int r = agx_reply_pull(&out, 1, "box-1", &pull);

        if (r == 0)
            r = agx_pull_view_decode(&view, agx_buf_peek(&out), NULL);
        ended(r);
        agx_pull_view_done(&view);
    }
}

TEST(status_and_small_answers_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_status s = { .code = AGX_NOT_FOUND,
                                .message = AGX_STR("m"),
                                .reason = AGX_REASON_EXEC_NOT_FOUND,
                                .id = "x" };
        struct agx_stats figures = { .version = (char *)"1", .backend = (char *)"fake" };
        struct agx_stats stats = { 0 };
        struct agx_status_view v = { 0 };
        struct agx_ping_view ping = { 0 };
        int r = agx_status_encode(&out, &s);

        if (r == 0)
            r = agx_status_view_decode(&v, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = agx_stats_encode(&out, &figures);
        if (r == 0)
            r = agx_stats_decode(&stats, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = agx_reply_ping(&out, "1", "agentixd");
        if (r == 0)
            r = agx_ping_view_decode(&ping, agx_buf_peek(&out), NULL);
        ended(r);
        agx_status_view_done(&v);
        agx_stats_done(&stats);
        agx_ping_view_done(&ping);
    }
}

TEST(answers_about_images_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        const struct agx_images_removed_view removed = wire_images_removed();
        const struct agx_image_details details = wire_image_details();
        const struct agx_pull pull = { "python", 1, 2, 3, 4 };
        const struct agx_image_view image = wire_image();
        struct agx_images_removed_view removed_back = { 0 };
        struct agx_image_details details_back = { 0 };
        struct agx_pull_view pull_back = { 0 };
        struct agx_image_views images = { 0 };
        int r = agx_reply_image(&out, &image);

        if (r == 0)
            r = agx_reply_image_details(&out, &details);
        if (r == 0)
            r = agx_image_views_decode(&images, agx_buf_peek(&out), NULL);
        if (r == 0)
            r = agx_image_details_decode(&details_back, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r == 0)
            r = agx_reply_image_pull(&out, &pull);
        if (r == 0)
            r = agx_image_pull_decode(&pull_back, agx_buf_peek(&out), NULL);
        agx_buf_clear(&out);
        if (r >= 0)
            r = agx_reply_images_removed(&out, &removed);
        if (r == 0)
            r = agx_images_removed_decode(&removed_back, agx_buf_peek(&out), NULL);
        ended(r);
        agx_image_views_done(&images);
        agx_image_details_done(&details_back);
        agx_pull_view_done(&pull_back);
        agx_images_removed_done(&removed_back);
    }
}

TEST(requests_about_images_without_memory_are_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_import_request q;
        char *image = NULL;
        int r = agx_import_request_encode(&out, "tool:1", AGX_STR("bytes"));

        if (r == 0)
            r = agx_import_request_decode(&q, agx_buf_peek(&out), NULL);
        if (r == 0)
            r = agx_image_ref_decode(AGX_STR("\x0a\x01x"), &image, NULL);
        ended(r);
        free(image);
    }
}

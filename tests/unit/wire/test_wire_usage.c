/* A sandbox's resource usage, over the wire and as JSON. */
#include "wire/usage_wire.h"

#include "core/sandbox.h"
#include "tests/support/test.h"
#include "wire/reply.h"
#include "wire/view.h"
#include "wire/wire_json.h"

#include "base/banned.h"

#define ALL ((1U << AGX_USAGE_COUNT) - 1)

/* A whole answer: a sandbox with all figures, and a companion with a disk alone. */
static void make_answer(struct agx_buf *out)
{
    struct agx_resource_usage all = { 0 }, disk = { 0 };
    struct agx_sandbox sb;
    struct agx_spec spec;

    agx_spec_init(&spec);
    ASSERT_OK(agx_sandbox_init(&sb, "box-a", &spec, NULL));
    for (unsigned i = 0; i < AGX_USAGE_COUNT; i++)
        agx_resource_usage_set(&all, (enum agx_resource_usage_figure)i,
                               i == 0 ? UINT64_MAX : i * 1000);
    agx_resource_usage_set(&disk, AGX_USAGE_DISK, 0);
    ASSERT_OK(agx_reply_sandbox(out, &sb, false));
    ASSERT_OK(agx_reply_usage(out, &all));
    ASSERT_OK(agx_reply_companion_usage(out, "cache", &disk));
    ASSERT_OK(agx_reply_usage_error(out, "slow"));
    agx_sandbox_done(&sb);
}

TEST(what_was_written_is_read)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1 << 16);
    struct agx_sandbox_view sandbox;
    struct agx_usage_view v;

    make_answer(&out);
    ASSERT_OK(agx_usage_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_UINT(ALL, v.use.known);
    ASSERT_UINT(UINT64_MAX, v.use.figures[AGX_USAGE_CPU_NS]);
    for (unsigned i = 1; i < AGX_USAGE_COUNT; i++)
        ASSERT_UINT(i * 1000, v.use.figures[i]);
    ASSERT_UINT(1, v.companions_len);
    ASSERT_CSTR("cache", v.companions[0].name);
    ASSERT_UINT(1U << AGX_USAGE_DISK, v.companions[0].use.known);
    ASSERT_CSTR("slow", v.error);
    agx_usage_view_done(&v);
    ASSERT_OK(agx_sandbox_view_decode(&sandbox, agx_buf_peek(&out), NULL, NULL));
    ASSERT_CSTR("box-a", sandbox.id);
    agx_sandbox_view_done(&sandbox);
}

TEST(json_has_figures_that_are_known_and_no_others)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1 << 16), json = AGX_BUF_INIT(1 << 16);
    struct agx_resource_usage use = { 0 };

    agx_resource_usage_set(&use, AGX_USAGE_DISK, 0);
    agx_resource_usage_set(&use, AGX_USAGE_TX_PACKETS, 4);
    ASSERT_OK(agx_reply_usage(&out, &use));
    ASSERT_OK(agx_wire_json(&json, "agentix.v1.GetSandboxResponse", agx_buf_peek(&out), NULL));
    ASSERT_STR(AGX_STR("{\n  \"sandbox\": null,\n  \"use\": {\n    \"disk_bytes\": \"0\",\n"
                       "    \"tx_packets\": \"4\"\n  },\n  \"companions\": [],\n"
                       "  \"use_error\": \"\"\n}"),
               agx_buf_peek(&json));
}

TEST(an_answer_without_use_knows_nothing)
{
    struct agx_usage_view v;

    ASSERT_OK(agx_usage_view_decode(&v, AGX_STR(""), NULL));
    ASSERT_UINT(0, v.use.known);
    ASSERT_UINT(0, v.companions_len);
    ASSERT_NULL(v.error);
    agx_usage_view_done(&v);
    agx_usage_view_done(NULL);
}

TEST(bytes_that_are_no_answer_are_the_servers_fault)
{
    static const char *const bad[] = { "\x1a", "\x1a\x05", "\x22\x03\x0a\x01\xff", "\x2a\x01\xff" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        struct agx_usage_view v;

        ASSERT_CODE(AGX_INTERNAL, agx_usage_view_decode(&v, agx_str_from(bad[i]), NULL));
        ASSERT_UINT(0, v.companions_len);
    }
}

TEST(an_answer_that_has_no_room_leaves_nothing_behind)
{
    struct agx_resource_usage use = { 0 };

    agx_resource_usage_set(&use, AGX_USAGE_DISK, UINT64_MAX);
    for (size_t max = 0; max < 12; max++) {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(max);

        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_reply_usage(&out, &use));
        ASSERT_UINT(0, out.len);
    }
}

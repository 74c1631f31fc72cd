#include "tests/support/wire.h"
#include "wire/reply.h"
#include "wire/wire_json.h"

static void seen(const char *message, struct agx_str bytes, const char *want)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);

    ASSERT_OK(agx_wire_json(&out, message, bytes, NULL));
    ASSERT_STR(agx_str_from(want), agx_buf_peek(&out));
}

TEST(empty_message_shows_every_field_but_those_of_oneofs)
{
    seen("agbox.v1.PingRequest", AGX_STR(""), "{}");
    seen("agbox.v1.GetSandboxResponse", AGX_STR(""), "{\n  \"sandbox\": null\n}");
    seen("agbox.v1.ListActiveExecsRequest", AGX_STR(""), "{}");
    seen("agbox.v1.ListActiveExecsRequest", AGX_STR("\x0a\x00"), "{\n  \"sandbox_id\": \"\"\n}");
    seen("agbox.v1.CreateSandboxRequest", AGX_STR(""),
         "{\n"
         "  \"create_spec\": null,\n"
         "  \"sandbox_id\": \"\",\n"
         "  \"config_yaml\": \"\"\n"
         "}");
    seen("agbox.v1.SandboxEvent", AGX_STR("\x10\x07"),
         "{\n"
         "  \"event_id\": \"\",\n"
         "  \"sequence\": \"7\",\n"
         "  \"sandbox_id\": \"\",\n"
         "  \"event_type\": \"EVENT_TYPE_UNSPECIFIED\",\n"
         "  \"occurred_at\": null,\n"
         "  \"replay\": false,\n"
         "  \"snapshot\": false,\n"
         "  \"sandbox_state\": \"SANDBOX_STATE_UNSPECIFIED\"\n"
         "}");
}

TEST(sandbox_is_displayed_with_names_texts_times_maps_and_lists)
{
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_sandbox sb = { 0 };
    struct agx_companion *c;

    ASSERT_OK(agx_text_set(&sb.id, "box-1", NULL));
    ASSERT_OK(agx_text_set(&sb.spec.image, "a \"b\"\n", NULL));
    ASSERT_OK(agx_pairs_set(&sb.spec.labels, AGX_STR("k"), AGX_STR("v"), NULL));
    ASSERT_OK(agx_pairs_set(&sb.spec.labels, AGX_STR("l"), AGX_STR(""), NULL));
    ASSERT_OK(agx_spec_add_companion(&sb.spec, &c, NULL));
    ASSERT_OK(wire_words(&c->command, "a", "b"));
    c->healthcheck.set = true;
    c->healthcheck.interval_ns = -1500000000;
    sb.life.phase = AGX_PHASE_READY;
    sb.life.last_sequence = UINT64_MAX;
    sb.created.wall_ns = 1700000000120000000;
    sb.life.changed.wall_ns = -1;
    ASSERT_OK(agx_reply_sandbox(&bytes, &sb, true));
    seen("agbox.v1.GetSandboxResponse", agx_buf_peek(&bytes),
         "{\n"
         "  \"sandbox\": {\n"
         "    \"sandbox_id\": \"box-1\",\n"
         "    \"state\": \"SANDBOX_STATE_READY\",\n"
         "    \"last_event_sequence\": \"18446744073709551615\",\n"
         "    \"companion_containers\": [\n"
         "      {\n"
         "        \"name\": \"\",\n"
         "        \"image\": \"\",\n"
         "        \"envs\": {},\n"
         "        \"healthcheck\": {\n"
         "          \"test\": [],\n"
         "          \"interval\": \"-1.500s\",\n"
         "          \"timeout\": null,\n"
         "          \"retries\": 0,\n"
         "          \"start_period\": null,\n"
         "          \"start_interval\": null\n"
         "        },\n"
         "        \"post_start_on_primary\": [],\n"
         "        \"command\": [\n"
         "          \"a\",\n"
         "          \"b\"\n"
         "        ],\n"
         "        \"cpu_limit\": \"\",\n"
         "        \"memory_limit\": \"\",\n"
         "        \"disk_limit\": \"\"\n"
         "      }\n"
         "    ],\n"
         "    \"labels\": {\n"
         "      \"k\": \"v\",\n"
         "      \"l\": \"\"\n"
         "    },\n"
         "    \"created_at\": \"2023-11-14T22:13:20.120Z\",\n"
         "    \"image\": \"a \\\"b\\\"\\u000a\",\n"
         "    \"error_code\": \"\",\n"
         "    \"error_message\": \"\",\n"
         "    \"state_changed_at\": \"1969-12-31T23:59:59.999999999Z\",\n"
         "    \"warnings\": []\n"
         "  }\n"
         "}");
    agx_sandbox_done(&sb);
}

TEST(numbers_bytes_and_lists_of_enums_are_displayed)
{
    seen("agbox.v1.DeleteSandboxesResponse", AGX_STR("\x10\x03"),
         "{\n  \"deleted_sandbox_ids\": [],\n  \"deleted_count\": 3\n}");
    seen("agentix.v1.BackupResponse", AGX_STR("\x0a\x02\xff\x00"), "{\n  \"data\": \"/wA=\"\n}");
    seen("agentix.v1.WaitSandboxRequest", AGX_STR("\x12\x02\x02\x63"),
         "{\n"
         "  \"sandbox_id\": \"\",\n"
         "  \"states\": [\n"
         "    \"SANDBOX_STATE_READY\",\n"
         "    99\n"
         "  ],\n"
         "  \"after_sequence\": \"0\",\n"
         "  \"timeout\": null\n"
         "}");
}

static void refused(enum agx_code code, const char *message, struct agx_str bytes, size_t room)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(room);

    ASSERT_OK(agx_buf_append(&out, AGX_STR("abc")));
    ASSERT_CODE(code, agx_wire_json(&out, message, bytes, &err));
    ASSERT_NOT_NULL(err);
    ASSERT_STR(AGX_STR("abc"), agx_buf_peek(&out));
}

TEST(what_cannot_be_displayed_leaves_the_buffer_as_it_was)
{
    refused(AGX_INVALID_ARGUMENT, "agbox.v1.Nothing", AGX_STR(""), 999);
    refused(AGX_INTERNAL, "agbox.v1.PingResponse", AGX_STR("\x0a\x01\xff"), 999);
    /* occurred_at { nanos: -1 } */
    refused(AGX_INTERNAL, "agbox.v1.SandboxEvent",
            AGX_STR("\x2a\x0b\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 999);
    /* timeout { nanos: -2147483648 } */
    refused(AGX_INTERNAL, "agentix.v1.WaitExecRequest",
            AGX_STR("\x12\x0b\x10\x80\x80\x80\x80\xf8\xff\xff\xff\xff\x01"), 999);
    refused(AGX_RESOURCE_EXHAUSTED, "agbox.v1.CreateSandboxRequest", AGX_STR(""), 64);
}

#include "base/limits.h"
#include "tests/support/wire.h"
#include "wire/control_request.h"

TEST(create_request_with_every_field_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_create_request q, back;

    agx_create_request_init(&q);
    q.has_spec = true;
    ASSERT_OK(wire_spec(&q.spec));
    ASSERT_OK(agx_text_set(&q.sandbox_id, "box-1", NULL));
    ASSERT_OK(agx_buf_append(&q.config_yaml, AGX_STR("image: \0x\n")));
    ASSERT_OK(agx_create_request_encode(&out, &q));
    ASSERT_OK(agx_create_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_TRUE(back.has_spec);
    wire_same_spec(&q.spec, &back.spec);
    ASSERT_CSTR("box-1", back.sandbox_id);
    ASSERT_STR(AGX_STR("image: \0x\n"), agx_buf_peek(&back.config_yaml));
    agx_create_request_done(&q);
    agx_create_request_done(&back);
}

TEST(create_request_without_spec_differs_from_one_with_an_empty_spec)
{
    struct agx_create_request q;

    ASSERT_OK(agx_create_request_decode(&q, AGX_STR(""), NULL));
    ASSERT_FALSE(q.has_spec);
    ASSERT_NULL(q.sandbox_id);
    ASSERT_INT(AGX_NS_UNSET, q.spec.idle_ttl_ns);
    agx_create_request_done(&q);
    ASSERT_OK(agx_create_request_decode(&q, AGX_STR("\x0a\x00"), NULL));
    ASSERT_TRUE(q.has_spec);
    agx_create_request_done(&q);
}

TEST(idle_ttl_of_zero_differs_from_none)
{
    struct agx_create_request q;

    /* create_spec { idle_ttl {} } */
    ASSERT_OK(agx_create_request_decode(&q, AGX_STR("\x0a\x02\x42\x00"), NULL));
    ASSERT_INT(0, q.spec.idle_ttl_ns);
    agx_create_request_done(&q);
}

TEST(spec_parts_that_come_twice_are_joined)
{
    struct agx_create_request q;

    /* create_spec { image: "a" }, create_spec { image: "b" gpus: "all" } */
    ASSERT_OK(agx_create_request_decode(
        &q, AGX_STR("\x0a\x03\x0a\x01\x61\x0a\x08\x0a\x01\x62\x72\x03\x61\x6c\x6c"), NULL));
    ASSERT_CSTR("b", q.spec.image);
    ASSERT_CSTR("all", q.spec.gpus);
    agx_create_request_done(&q);
}

TEST(a_map_key_that_comes_twice_has_its_last_value)
{
    struct agx_pairs selector = { 0 };

    ASSERT_OK(agx_delete_request_decode(&selector,
                                        AGX_STR("\x0a\x06\x0a\x01k\x12\x01"
                                                "1"
                                                "\x0a\x06\x0a\x01k\x12\x01"
                                                "2"),
                                        NULL));
    ASSERT_UINT(1, selector.len);
    ASSERT_CSTR("2", agx_pairs_get(&selector, "k"));
    agx_pairs_done(&selector);
}

TEST(unknown_numbers_of_enums_reach_the_checks_of_core)
{
    struct agx_create_request q;

    /* create_spec { ports { protocol: -1 } network: 77 } */
    ASSERT_OK(agx_create_request_decode(
        &q, AGX_STR("\x0a\x10\x4a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xc0\x3e\x4d"),
        NULL));
    ASSERT_INT(-1, q.spec.ports[0].protocol);
    ASSERT_INT(77, q.spec.network);
    agx_create_request_done(&q);
}

TEST(unknown_fields_are_ignored)
{
    char *id = NULL;

    /* field 5: varint, 6: bytes, 7: 64 bits, 8: 32 bits */
    ASSERT_OK(agx_sandbox_id_decode(AGX_STR("\x28\x01\x32\x02\xff\x00\x39\x01\x02\x03\x04\x05\x06"
                                            "\x07\x08\x45\x01\x02\x03\x04\x0a\x01x"),
                                    &id, NULL));
    ASSERT_CSTR("x", id);
    free(id);
}

static void refused(struct agx_str bytes, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_create_request q;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_create_request_decode(&q, bytes, &err));
    ASSERT_MESSAGE(err, words);
    ASSERT_NULL(q.sandbox_id);
    ASSERT_NULL(q.spec.image);
}

TEST(bytes_that_are_no_message_are_refused)
{
    refused(AGX_STR("\x0a"), "the message is malformed");
    refused(AGX_STR("\x0a\x05\x0a"), "the message is malformed");
    refused(AGX_STR("\x0a\x03\x0a\x09x"), "create_spec is malformed");
    refused(AGX_STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "malformed");
    refused(AGX_STR("\x00\x01"), "malformed");                  /* field 0 */
    refused(AGX_STR("\x0b\x0c"), "malformed");                  /* a group */
    refused(AGX_STR("\x08\x01"), "not a CreateSandboxRequest"); /* create_spec as a number */
}

TEST(text_that_is_not_utf8_is_refused_by_the_name_of_its_field)
{
    refused(AGX_STR("\x12\x02\xc3\x28"), "sandbox_id is not UTF-8");
    refused(AGX_STR("\x0a\x03\x0a\x01\xff"), "create_spec.image is not UTF-8");
    refused(AGX_STR("\x0a\x05\x32\x03\x12\x01\xff"), "create_spec.labels.value is not UTF-8");
}

TEST(text_with_a_nul_in_it_is_refused)
{
    refused(AGX_STR("\x12\x05"
                    "ab\0cd"),
            "sandbox_id is text with a NUL in it");
    refused(AGX_STR("\x0a\x05\x52\x03"
                    "a\0b"),
            "create_spec.command is text with a NUL");
}

TEST(durations_out_of_range_are_refused)
{
    /* create_spec { idle_ttl { seconds: 1 nanos: -1 } } */
    refused(AGX_STR("\x0a\x0f\x42\x0d\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "idle_ttl is no duration");
    /* idle_ttl { nanos: 1000000000 } */
    refused(AGX_STR("\x0a\x08\x42\x06\x10\x80\x94\xeb\xdc\x03"), "idle_ttl is no duration");
    /* idle_ttl { seconds: 10^10 } */
    refused(AGX_STR("\x0a\x08\x42\x06\x08\x80\xc8\xaf\xa0\x25"),
            "idle_ttl is longer than 292 years");
}

TEST(more_entries_than_the_limit_are_refused)
{
    _cleanup_buf_ struct agx_buf spec = AGX_BUF_INIT(WIRE_OUT_MAX),
                                 out = AGX_BUF_INIT(WIRE_OUT_MAX);

    for (size_t i = 0; i <= AGX_SPEC_ITEMS_MAX; i++)
        ASSERT_OK(agx_buf_append(&spec, AGX_STR("\x12\x00"))); /* mounts {} */
    ASSERT_OK(agx_buf_append(&out, AGX_STR("\x0a\x82\x10")));  /* 2050 bytes */
    ASSERT_OK(agx_buf_append(&out, agx_buf_peek(&spec)));
    refused(agx_buf_peek(&out), "mounts has more than 1024 entries");
}

TEST(a_map_past_its_limit_is_refused)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_pairs selector = { 0 };

    for (size_t i = 0; i <= AGX_PAIRS_MAX; i++)
        ASSERT_OK(agx_buf_append(&out, AGX_STR("\x0a\x00")));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_delete_request_decode(&selector, agx_buf_peek(&out), &err));
    ASSERT_MESSAGE(err, "label_selector has more than 4096 entries");
    ASSERT_UINT(0, selector.len);
}

TEST(a_message_that_would_take_too_much_memory_is_resource_exhausted)
{
    struct agx_buf out = AGX_BUF_INIT(4 << 20);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_pairs selector = { 0 };

    while (out.len < out.max)
        ASSERT_OK(agx_buf_append(&out, AGX_STR("\x0a\x00"))); /* two bytes for an entry of 50 */
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED,
                agx_delete_request_decode(&selector, agx_buf_peek(&out), &err));
    ASSERT_MESSAGE(err, "DeleteSandboxesRequest");
    agx_buf_done(&out);
}

TEST(exec_request_with_every_field_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_exec_request q = { .has_stdin = true }, back;

    ASSERT_OK(wire_exec(&q.exec));
    ASSERT_OK(agx_exec_request_encode(&out, &q));
    ASSERT_OK(agx_exec_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("exec-1", back.exec.id);
    ASSERT_CSTR("box-1", back.exec.sandbox_id);
    ASSERT_TRUE(agx_words_eq(&q.exec.command, &back.exec.command));
    ASSERT_CSTR("/workspace", back.exec.cwd);
    ASSERT_TRUE(test_pairs_eq(&q.exec.env_overrides, &back.exec.env_overrides));
    ASSERT_INT(30000000000, back.exec.deadline_ns);
    ASSERT_TRUE(back.has_stdin);
    ASSERT_INT(AGX_EXEC_PHASE_ABSENT, back.exec.phase);
    agx_exec_request_done(&q);
    agx_exec_request_done(&back);
}

TEST(exec_request_without_id_and_deadline_has_none)
{
    struct agx_exec_request q;

    ASSERT_OK(agx_exec_request_decode(&q, AGX_STR(""), NULL));
    ASSERT_NULL(q.exec.id);
    ASSERT_CSTR("", q.exec.sandbox_id);
    ASSERT_INT(0, q.exec.deadline_ns);
    ASSERT_FALSE(q.has_stdin);
    agx_exec_request_done(&q);
}

TEST(ids_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    char *sandbox = NULL, *exec = NULL, *none = NULL;

    ASSERT_OK(agx_id_encode(&out, "an-id"));
    ASSERT_OK(agx_sandbox_id_decode(agx_buf_peek(&out), &sandbox, NULL));
    ASSERT_OK(agx_exec_id_decode(agx_buf_peek(&out), &exec, NULL));
    ASSERT_OK(agx_exec_id_decode(AGX_STR(""), &none, NULL));
    ASSERT_CSTR("an-id", sandbox);
    ASSERT_CSTR("an-id", exec);
    ASSERT_CSTR("", none);
    free(sandbox);
    free(exec);
    free(none);
}

TEST(id_that_is_no_text_is_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *second = NULL;
    char *id = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_exec_id_decode(AGX_STR("\x0a\x01\x80"), &id, &err));
    ASSERT_MESSAGE(err, "exec_id is not UTF-8");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_sandbox_id_decode(AGX_STR("\x0a\x01\x80"), &id, &second));
    ASSERT_MESSAGE(second, "sandbox_id is not UTF-8");
    ASSERT_NULL(id);
}

TEST(list_and_delete_requests_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_list_request q = { .include_deleted = true }, back;
    struct agx_pairs selector = { 0 };

    ASSERT_OK(wire_pairs(&q.selector, "v"));
    ASSERT_OK(agx_list_request_encode(&out, &q));
    ASSERT_OK(agx_list_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_TRUE(back.include_deleted);
    ASSERT_TRUE(test_pairs_eq(&q.selector, &back.selector));
    agx_buf_clear(&out);
    ASSERT_OK(agx_delete_request_encode(&out, &q.selector));
    ASSERT_OK(agx_delete_request_decode(&selector, agx_buf_peek(&out), NULL));
    ASSERT_TRUE(test_pairs_eq(&q.selector, &selector));
    agx_list_request_done(&q);
    agx_list_request_done(&back);
    agx_pairs_done(&selector);
}

TEST(subscribe_request_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_subscribe_request q = { (char *)"box-1", UINT64_MAX, true }, back;

    ASSERT_OK(agx_subscribe_request_encode(&out, &q));
    ASSERT_OK(agx_subscribe_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("box-1", back.sandbox_id);
    ASSERT_UINT(UINT64_MAX, back.from_sequence);
    ASSERT_TRUE(back.snapshot);
    agx_subscribe_request_done(&back);
}

TEST(active_request_tells_an_absent_id_from_an_empty_one)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    char *id = (char *)"unset";

    ASSERT_OK(agx_active_request_encode(&out, NULL));
    ASSERT_UINT(0, out.len);
    ASSERT_OK(agx_active_request_decode(agx_buf_peek(&out), &id, NULL));
    ASSERT_NULL(id);
    ASSERT_OK(agx_active_request_encode(&out, ""));
    ASSERT_OK(agx_active_request_decode(agx_buf_peek(&out), &id, NULL));
    ASSERT_CSTR("", id);
    free(id);
}

TEST(watch_request_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_watch_request q = { .after_position = 17 }, back;

    ASSERT_OK(wire_pairs(&q.selector, "v"));
    ASSERT_OK(wire_words(&q.sandbox_ids, "box-1", "box-2"));
    ASSERT_OK(agx_watch_request_encode(&out, &q));
    ASSERT_OK(agx_watch_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_UINT(17, back.after_position);
    ASSERT_FALSE(back.from_now);
    ASSERT_TRUE(test_pairs_eq(&q.selector, &back.selector));
    ASSERT_TRUE(agx_words_eq(&q.sandbox_ids, &back.sandbox_ids));
    agx_watch_request_done(&q);
    agx_watch_request_done(&back);
}

TEST(watch_request_from_now_and_from_a_position_is_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_watch_request q;

    ASSERT_OK(agx_watch_request_decode(&q, AGX_STR("\x10\x01"), NULL));
    ASSERT_TRUE(q.from_now);
    agx_watch_request_done(&q);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_watch_request_decode(&q, AGX_STR("\x08\x01\x10\x01"), &err));
    ASSERT_MESSAGE(err, "from_now");
}

TEST(output_request_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_output_request q = { (char *)"exec-1", AGX_OUTPUT_STDERR, 1 << 20, true, 99 }, back;

    ASSERT_OK(agx_output_request_encode(&out, &q));
    ASSERT_OK(agx_output_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("exec-1", back.exec_id);
    ASSERT_INT(AGX_OUTPUT_STDERR, back.stream);
    ASSERT_UINT(1 << 20, back.offset);
    ASSERT_TRUE(back.follow);
    ASSERT_UINT(99, back.max_bytes);
    agx_output_request_done(&back);
}

TEST(output_request_for_no_stream_is_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_output_request q;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_output_request_decode(&q, AGX_STR(""), NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_output_request_decode(&q, AGX_STR("\x10\x03"), &err));
    ASSERT_MESSAGE(err, "stream is neither STDOUT nor STDERR");
}

TEST(page_request_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_list_request q = { .include_deleted = true,
                                  .page_size = 50,
                                  .page_token = (char *)"t",
                                  .states = 1 << AGX_STATE_READY | 1 << AGX_STATE_DELETED },
                            back;

    ASSERT_OK(wire_pairs(&q.selector, "v"));
    ASSERT_OK(agx_page_request_encode(&out, &q));
    ASSERT_OK(agx_page_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_TRUE(back.include_deleted);
    ASSERT_UINT(50, back.page_size);
    ASSERT_CSTR("t", back.page_token);
    ASSERT_UINT(q.states, back.states);
    ASSERT_TRUE(test_pairs_eq(&q.selector, &back.selector));
    agx_pairs_done(&q.selector);
    agx_list_request_done(&back);
}

TEST(page_request_takes_states_packed_or_one_by_one_and_refuses_others)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_list_request q;

    ASSERT_OK(agx_page_request_decode(&q, AGX_STR("\x2a\x02\x01\x02\x28\x06"), NULL));
    ASSERT_UINT(1 << 1 | 1 << 2 | 1 << 6, q.states);
    agx_list_request_done(&q);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_page_request_decode(&q, AGX_STR("\x28\x00"), NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_page_request_decode(&q, AGX_STR("\x28\x07"), &err));
    ASSERT_MESSAGE(err, "states");
    ASSERT_CODE(
        AGX_INVALID_ARGUMENT,
        agx_page_request_decode(&q, AGX_STR("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL));
}

TEST(wait_requests_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_wait_request q = { (char *)"an-id", 1 << AGX_STATE_STOPPED, 8, 2500000000 }, back;

    ASSERT_OK(agx_wait_sandbox_encode(&out, &q));
    ASSERT_OK(agx_wait_sandbox_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("an-id", back.id);
    ASSERT_UINT(q.states, back.states);
    ASSERT_UINT(8, back.after_sequence);
    ASSERT_INT(2500000000, back.timeout_ns);
    agx_wait_request_done(&back);
    agx_buf_clear(&out);
    q.timeout_ns = AGX_NS_UNSET;
    ASSERT_OK(agx_wait_exec_encode(&out, &q));
    ASSERT_OK(agx_wait_exec_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("an-id", back.id);
    ASSERT_INT(AGX_NS_UNSET, back.timeout_ns);
    agx_wait_request_done(&back);
}

TEST(wait_request_with_a_negative_timeout_is_refused)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_wait_request q;

    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_wait_exec_decode(
                    &q, AGX_STR("\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), &err));
    ASSERT_MESSAGE(err, "timeout is negative");
    ASSERT_NULL(q.id);
}

TEST(input_request_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_input_request q = { .exec_id = (char *)"exec-1",
                                   .data = AGX_BUF_INIT(16),
                                   .eof = true },
                             back;

    ASSERT_OK(agx_buf_append(&q.data, AGX_STR("a\0\xff")));
    ASSERT_OK(agx_input_request_encode(&out, &q));
    ASSERT_OK(agx_input_request_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("exec-1", back.exec_id);
    ASSERT_STR(AGX_STR("a\0\xff"), agx_buf_peek(&back.data));
    ASSERT_TRUE(back.eof);
    agx_input_request_done(&back);
    ASSERT_OK(agx_input_request_decode(&back, AGX_STR(""), NULL));
    ASSERT_NULL(back.exec_id);
    agx_input_request_done(&back);
    agx_buf_done(&q.data);
}

TEST(encoding_past_the_buffer_leaves_it_as_it_was)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(8);

    ASSERT_OK(agx_buf_append(&out, AGX_STR("abc")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_id_encode(&out, "12345"));
    ASSERT_STR(AGX_STR("abc"), agx_buf_peek(&out));
    ASSERT_OK(agx_id_encode(&out, "123"));
}

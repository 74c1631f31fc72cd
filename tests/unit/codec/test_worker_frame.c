#include "codec/mp_writer.h"
#include "codec/worker_frame.h"
#include "tests/support/test.h"

/* {"type": "call", "id": 7, "kind": KIND, "target": "m::f", "args": [1], "kwargs": nil} */
static void write_call(struct agx_buf *out, struct agx_str kind)
{
    struct agx_mp_writer w;

    agx_mp_writer_init(&w, out);
    agx_mp_write_map(&w, 9);
    agx_mp_write_str(&w, AGX_STR("type"));
    agx_mp_write_str(&w, AGX_STR("call"));
    agx_mp_write_str(&w, AGX_STR("id"));
    agx_mp_write_uint(&w, 7);
    agx_mp_write_str(&w, AGX_STR("kind"));
    agx_mp_write_str(&w, kind);
    agx_mp_write_str(&w, AGX_STR("flags"));
    agx_mp_write_uint(&w, 3);
    agx_mp_write_str(&w, AGX_STR("target"));
    agx_mp_write_str(&w, AGX_STR("m::f"));
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, AGX_STR("mine"));
    agx_mp_write_str(&w, AGX_STR("timeout_ms"));
    agx_mp_write_uint(&w, 1500);
    agx_mp_write_bin(&w, AGX_STR("args"));
    agx_mp_write_array(&w, 1);
    agx_mp_write_uint(&w, 1);
    agx_mp_write_str(&w, AGX_STR("kwargs"));
    agx_mp_write_nil(&w);
    ASSERT_OK(agx_mp_writer_end(&w, NULL));
}

TEST(call_gives_its_fields_and_leaves_values_raw)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_worker_frame f;

    write_call(&out, AGX_STR("stream"));
    ASSERT_OK(agx_worker_frame_parse(agx_buf_peek(&out), &f, NULL));
    ASSERT_NULL(f.bad);
    ASSERT_INT(AGX_WF_CALL, f.type);
    ASSERT_INT(7, f.id);
    ASSERT_INT(AGX_REMOTE_STREAM, f.kind);
    ASSERT_INT(AGX_REMOTE_STREAM, f.shape);
    ASSERT_INT(3, f.flags);
    ASSERT_TRUE(f.by_target);
    ASSERT_STR(AGX_STR("m::f"), f.callable);
    ASSERT_STR(AGX_STR("\xa4m::f"), f.callable_raw);
    ASSERT_STR(AGX_STR("\x91\x01"), f.args);
    ASSERT_INT(0, f.kwargs.len);
    ASSERT_STR(AGX_STR("mine"), f.call_id);
    ASSERT_TRUE(f.has_timeout);
    ASSERT_UINT(1500, f.timeout_ms);
}

TEST(call_without_a_timeout_has_none)
{
    struct agx_worker_frame f;

    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x81\xaatimeout_ms\xc0"), &f, NULL));
    ASSERT_NULL(f.bad);
    ASSERT_FALSE(f.has_timeout);
}

TEST(call_that_makes_no_sense_says_why_and_still_has_its_id)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_worker_frame f;

    write_call(&out, AGX_STR("sideways"));
    ASSERT_OK(agx_worker_frame_parse(agx_buf_peek(&out), &f, NULL));
    ASSERT_STR(AGX_STR("unknown kind"), agx_str_from(f.bad));
    ASSERT_INT(7, f.id);
    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x82\xa4type\xa4"
                                             "call\xa2id\x05"),
                                     &f, NULL));
    ASSERT_INT(5, f.id);
    ASSERT_STR(AGX_STR("neither 'callable_payload' nor 'target'"), agx_str_from(f.bad));
    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x82\xa4type\xa6"
                                             "cancel\xa2id\xa1x"),
                                     &f, NULL));
    ASSERT_STR(AGX_STR("'id' is not an unsigned integer"), agx_str_from(f.bad));
    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x83\xa4type\xa4"
                                             "call\xa2id\x05\xa6target\xa1x"),
                                     &f, NULL));
    ASSERT_STR(AGX_STR("no 'kind'"), agx_str_from(f.bad));
}

TEST(field_that_came_twice_is_bad_and_the_first_counts)
{
    struct agx_worker_frame f;

    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x83\xa4type\xa6"
                                             "cancel\xa2id\x05\xa2id\x06"),
                                     &f, NULL));
    ASSERT_STR(AGX_STR("a field was sent twice"), agx_str_from(f.bad));
    ASSERT_UINT(5, f.id);
}

TEST(frame_that_breaks_off_leaves_what_came_before)
{
    struct agx_worker_frame f;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_worker_frame_parse(AGX_STR("\x83\xa4type\xa4"
                                                                     "call\xa2id\x05\xa4"
                                                                     "args\xc1"),
                                                             &f, NULL));
    ASSERT_INT(AGX_WF_CALL, f.type);
    ASSERT_UINT(5, f.id);
}

TEST(other_frames_give_their_numbers)
{
    struct agx_worker_frame f;

    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x84\xa4type\xa6"
                                             "credit\xa2id\x01\xa1n\x02\xa5"
                                             "bytes\xcd\x01\x00"),
                                     &f, NULL));
    ASSERT_INT(AGX_WF_CREDIT, f.type);
    ASSERT_INT(2, f.n);
    ASSERT_INT(256, f.bytes);
    ASSERT_OK(
        agx_worker_frame_parse(AGX_STR("\x82\xa4type\xa8shutdown\xa8grace_ms\x0a"), &f, NULL));
    ASSERT_INT(AGX_WF_SHUTDOWN, f.type);
    ASSERT_INT(10, f.grace_ms);
    ASSERT_OK(agx_worker_frame_parse(AGX_STR("\x81\xa4type\xa3new"), &f, NULL));
    ASSERT_INT(AGX_WF_UNKNOWN, f.type);
}

TEST(what_is_no_map_is_refused)
{
    static const struct agx_str bad[] = {
        AGX_STR(""),          AGX_STR("\x90"),         AGX_STR("\x81"),
        AGX_STR("\xc1"),      AGX_STR("\x81\x01\x02"), AGX_STR("\x80\x80"),
        AGX_STR("\x81\xa1x"),
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_worker_frame f;

        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_worker_frame_parse(bad[i], &f, &err));
        ASSERT_NOT_NULL(err->message);
    }
}

#include "agentix/msgpack.h"
#include "tests/support/test.h"

#include <stdlib.h>

static void writer_freep(struct agx_writer **w)
{
    *w = agx_writer_free(*w);
}

TEST(writer_and_reader_agree_on_every_type)
{
    _cleanup_(writer_freep) struct agx_writer *w = agx_writer_new();
    struct agx_reader r;
    struct agx_value v;
    const void *bytes;
    size_t len;

    agx_writer_array(w, 10);
    agx_writer_nil(w);
    agx_writer_bool(w, true);
    agx_writer_uint(w, UINT64_MAX);
    agx_writer_int(w, -5);
    agx_writer_double(w, 0.5);
    agx_writer_cstr(w, "text");
    agx_writer_bin(w, "\0\1", 2);
    agx_writer_map(w, 1);
    agx_writer_str(w, "key", 3);
    agx_writer_raw(w, "\x01", 1);
    agx_writer_ext(w, 5, "e", 1);
    ASSERT_OK(agx_writer_json(w, "[1]", 3, NULL));
    ASSERT_OK(agx_writer_bytes(w, &bytes, &len, NULL));

    agx_reader_init(&r, bytes, len);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_INT(AGX_VALUE_ARRAY, v.type);
    ASSERT_UINT(10, v.as.count);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_INT(AGX_VALUE_NIL, v.type);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_BOOL && v.as.boolean);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_UINT && v.as.u == UINT64_MAX);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_INT && v.as.i == -5);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_DOUBLE && v.as.f == 0.5);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_INT(AGX_VALUE_STR, v.type);
    ASSERT_STR(AGX_STR("text"), agx_str_bytes(v.as.bytes.ptr, v.as.bytes.len));
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_BIN && v.as.bytes.len == 2);
    ASSERT_OK(agx_reader_skip(&r, &bytes, &len, NULL));
    ASSERT_UINT(6, len);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    ASSERT_TRUE(v.type == AGX_VALUE_EXT && v.ext_type == 5 && v.as.bytes.len == 1);
    ASSERT_FALSE(agx_reader_at_end(&r));
    ASSERT_OK(agx_reader_skip(&r, NULL, NULL, NULL));
    ASSERT_TRUE(agx_reader_at_end(&r));
}

TEST(writer_with_text_that_is_no_utf8_fails_until_it_is_cleared)
{
    _cleanup_(writer_freep) struct agx_writer *w = agx_writer_new();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    const void *bytes;
    size_t len;

    agx_writer_str(w, "\xff", 1);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_writer_bytes(w, &bytes, &len, &err));
    ASSERT_MESSAGE(err, "UTF-8");
    agx_writer_clear(w);
    agx_writer_nil(w);
    ASSERT_OK(agx_writer_bytes(w, &bytes, &len, NULL));
    ASSERT_UINT(1, len);
}

TEST(writer_that_is_null_reports_it_at_the_end)
{
    const void *bytes;
    size_t len;

    agx_writer_map(NULL, 1);
    agx_writer_cstr(NULL, "key");
    agx_writer_nil(NULL);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_writer_json(NULL, "1", 1, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_writer_bytes(NULL, &bytes, &len, NULL));
}

TEST(writer_refuses_what_is_no_json_and_stays_usable)
{
    _cleanup_(writer_freep) struct agx_writer *w = agx_writer_new();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    const void *bytes;
    size_t len;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_writer_json(w, "{", 1, &err));
    ASSERT_NOT_NULL(err);
    agx_writer_nil(w);
    ASSERT_OK(agx_writer_bytes(w, &bytes, &len, NULL));
    ASSERT_UINT(1, len);
}

TEST(reader_gives_json_and_moves_on)
{
    _cleanup_free_ char *json = NULL;
    struct agx_reader r;

    agx_reader_init(&r, "\x92\x01\xa1x\xc0", 5);
    ASSERT_OK(agx_reader_json(&r, &json, NULL));
    ASSERT_CSTR("[1,\"x\"]", json);
    free(json);
    json = NULL;
    ASSERT_OK(agx_reader_json(&r, &json, NULL));
    ASSERT_CSTR("null", json);
    ASSERT_TRUE(agx_reader_at_end(&r));
}

TEST(reader_of_malformed_bytes_fails_and_stays)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_reader r;
    struct agx_value v;
    char *json = NULL;

    agx_reader_init(&r, "\x92\x01\xa2x", 4);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_reader_skip(&r, NULL, NULL, &err));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_reader_json(&r, &json, NULL));
    ASSERT_NULL(json);
    ASSERT_OK(agx_reader_next(&r, &v, NULL));
    agx_reader_init(&r, NULL, 0);
    ASSERT_TRUE(agx_reader_at_end(&r));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_reader_next(&r, &v, NULL));
}

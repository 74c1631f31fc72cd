#include "codec/jsonseq.h"
#include "tests/support/test.h"

enum { MAX = 64 };

/* Feeds `text` in pieces of `step` bytes; the objects go to `out`, a line each. */
static int cut(struct agx_str text, size_t step, struct agx_buf *out, bool *ret_whole)
{
    _cleanup_(agx_jsonseq_done) struct agx_jsonseq q;
    struct agx_str object;
    int r = 0;

    agx_jsonseq_init(&q, MAX);
    agx_buf_clear(out);
    while (text.len > 0 && r == 0) {
        struct agx_str piece = { text.ptr, AGX_MIN(step, text.len) };

        text = agx_str_skip(text, piece.len);
        while ((r = agx_jsonseq_next(&q, &piece, &object, NULL)) > 0) {
            ASSERT_OK(agx_buf_append(out, object));
            ASSERT_OK(agx_buf_push(out, '\n'));
        }
        ASSERT_TRUE(r < 0 || piece.len == 0);
    }
    *ret_whole = agx_jsonseq_is_whole(&q);
    return r;
}

static void check(struct agx_str text, const char *objects)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    bool whole;

    for (size_t step = 1; step <= text.len; step++) {
        ASSERT_OK(cut(text, step, &out, &whole));
        ASSERT_STR(agx_str_from(objects), agx_buf_peek(&out));
        ASSERT_TRUE(whole);
    }
}

TEST(jsonseq_gives_each_object_however_the_bytes_come)
{
    check(AGX_STR("{}"), "{}\n");
    check(AGX_STR("{\"a\":1}{\"b\":[{}]}\r\n {\"c\":{}}\n"),
          "{\"a\":1}\n{\"b\":[{}]}\n{\"c\":{}}\n");
    check(AGX_STR(" \r\n\t"), "");
}

TEST(jsonseq_does_not_count_brackets_in_strings)
{
    check(AGX_STR("{\"}\\\"}\":\"{[\\\\\"}{\"\\\\\":\"\"}"),
          "{\"}\\\"}\":\"{[\\\\\"}\n{\"\\\\\":\"\"}\n");
}

TEST(jsonseq_of_anything_but_objects_is_refused)
{
    static const char *const texts[] = { "1", "[]", "{}1", "{}]", "{},{}", "null", "\"{}\"" };
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    bool whole;

    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, cut(agx_str_from(texts[i]), 100, &out, &whole));
        ASSERT_FALSE(whole);
    }
}

TEST(jsonseq_whose_object_has_not_ended_is_not_whole)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096);
    bool whole;

    ASSERT_OK(cut(AGX_STR("{}{\"a\":\"}"), 3, &out, &whole));
    ASSERT_FALSE(whole);
    ASSERT_STR(AGX_STR("{}\n"), agx_buf_peek(&out));
}

TEST(jsonseq_of_an_object_past_the_limit_is_refused_and_stays_so)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(4096), text = AGX_BUF_INIT(4096);
    _cleanup_(agx_jsonseq_done) struct agx_jsonseq q;
    struct agx_str object, in = AGX_STR("{}");
    bool whole;

    ASSERT_OK(agx_buf_printf(&text, "{\"a\":\"%057d\"}", 0));
    ASSERT_UINT(MAX + 1, text.len);
    for (size_t step = 1; step <= text.len; step++)
        ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, cut(agx_buf_peek(&text), step, &out, &whole));
    agx_buf_clear(&text);
    ASSERT_OK(agx_buf_printf(&text, "{\"a\":\"%056d\"}", 0));
    for (size_t step = 1; step <= text.len; step++)
        ASSERT_OK(cut(agx_buf_peek(&text), step, &out, &whole));

    agx_jsonseq_init(&q, 1);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_jsonseq_next(&q, &in, &object, NULL));
    in = AGX_STR("{}");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_jsonseq_next(&q, &in, &object, NULL));
}

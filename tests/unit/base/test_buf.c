#include "base/buf.h"
#include "tests/support/test.h"

TEST(buf_append_past_max_is_resource_exhausted_and_keeps_content)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(5);

    ASSERT_OK(agx_buf_append(&b, AGX_STR("abc")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_buf_append(&b, AGX_STR("def")));
    ASSERT_OK(agx_buf_append(&b, AGX_STR("de")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_buf_push(&b, 'f'));
    ASSERT_STR(AGX_STR("abcde"), agx_buf_peek(&b));
}

TEST(buf_printf_appends_and_respects_max)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(16);

    ASSERT_OK(agx_buf_printf(&b, "%d-%s", 12, "ab"));
    ASSERT_STR(AGX_STR("12-ab"), agx_buf_peek(&b));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_buf_printf(&b, "%20d", 1));
    ASSERT_STR(AGX_STR("12-ab"), agx_buf_peek(&b));
}

TEST(buf_grows_in_many_steps_and_consumes_from_the_front)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(100000);
    _cleanup_free_ char *z = NULL;

    for (int i = 0; i < 100000; i++)
        ASSERT_OK(agx_buf_push(&b, (uint8_t)('a' + i % 26)));
    agx_buf_consume(&b, 99999);
    ASSERT_UINT(1, b.len);
    z = agx_buf_take_cstr(&b);
    ASSERT_CSTR("d", z);
    ASSERT_UINT(0, b.len);
    ASSERT_NULL(b.data);
    agx_buf_done(NULL);
}

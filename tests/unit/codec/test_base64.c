#include "codec/base64.h"
#include "tests/support/test.h"

static void check(struct agx_str bytes, const char *padded, const char *bare)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);

    ASSERT_OK(agx_base64_encode(&b, bytes, true));
    ASSERT_STR(agx_str_from(padded), agx_buf_peek(&b));
    agx_buf_clear(&b);
    ASSERT_OK(agx_base64_encode(&b, bytes, false));
    ASSERT_STR(agx_str_from(bare), agx_buf_peek(&b));
    agx_buf_clear(&b);
    ASSERT_OK(agx_base64_decode(&b, agx_str_from(padded), NULL));
    ASSERT_STR(bytes, agx_buf_peek(&b));
    agx_buf_clear(&b);
    ASSERT_OK(agx_base64_decode(&b, agx_str_from(bare), NULL));
    ASSERT_STR(bytes, agx_buf_peek(&b));
}

TEST(base64_of_the_rfc_examples_round_trips)
{
    check(AGX_STR(""), "", "");
    check(AGX_STR("f"), "Zg==", "Zg");
    check(AGX_STR("fo"), "Zm8=", "Zm8");
    check(AGX_STR("foo"), "Zm9v", "Zm9v");
    check(AGX_STR("foob"), "Zm9vYg==", "Zm9vYg");
    check(AGX_STR("fooba"), "Zm9vYmE=", "Zm9vYmE");
    check(AGX_STR("\xfb\xff\x00"), "+/8A", "+/8A");
}

TEST(base64_decode_of_bad_text_is_invalid_and_appends_nothing)
{
    static const char *const bad[] = { "A",     "AAAAA",    "A===",
                                       "====",  "=",        "AA=",
                                       "A*AA",  "AA==AAAA", "AB==" /* bits past the end */,
                                       "Zg= =", "Zg\n=" };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(64);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_OK(agx_buf_append(&b, AGX_STR("kept")));
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_base64_decode(&b, agx_str_from(bad[i]), &err));
        ASSERT_MESSAGE(err, "base64");
        ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&b));
    }
}

TEST(base64_past_the_buffers_max_is_resource_exhausted_and_at_it_fits)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(4);

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_base64_encode(&b, AGX_STR("foob"), true));
    ASSERT_OK(agx_base64_encode(&b, AGX_STR("foo"), true));
    agx_buf_clear(&b);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_base64_decode(&b, AGX_STR("Zm9vYmE="), NULL));
    ASSERT_OK(agx_base64_decode(&b, AGX_STR("Zm9vYg=="), NULL));
}

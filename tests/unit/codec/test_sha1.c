#include "base/buf.h"
#include "codec/sha1.h"
#include "tests/support/test.h"

static void check(struct agx_str bytes, const char *hex)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(100);
    uint8_t digest[AGX_SHA1_SIZE];

    agx_sha1(bytes, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        ASSERT_OK(agx_buf_printf(&text, "%02x", digest[i]));
    ASSERT_STR(agx_str_from(hex), agx_buf_peek(&text));
}

TEST(sha1_of_the_rfc_examples_is_theirs)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1 << 20);

    check(AGX_STR(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    check(AGX_STR("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    check(AGX_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
          "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    while (b.len < 1000000)
        ASSERT_OK(agx_buf_push(&b, 'a'));
    check(agx_buf_peek(&b), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    b.len = 0;
    for (unsigned i = 0; i < 80; i++)
        ASSERT_OK(agx_buf_append(&b, AGX_STR("01234567")));
    check(agx_buf_peek(&b), "dea356a2cddd90c7a7ecedc5ebb563934f460452");
}

TEST(sha1_at_the_edges_of_a_block_pads_right)
{
    static const char text[] = "0123456789012345678901234567890123456789012345678901234567890123";

    check(agx_str_bytes(text, 55), "9f3a4ce7f66b1b74c34da2c5d732c39f81e0f8df");
    check(agx_str_bytes(text, 56), "0a40b8fbdaafb7c29651618ac15d27e772287130");
    check(agx_str_bytes(text, 64), "cf0800f7644ace3cb4c3fa33388d3ba0ea3c8b6e");
}

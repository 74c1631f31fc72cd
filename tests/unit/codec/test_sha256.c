#include "base/buf.h"
#include "codec/sha256.h"
#include "tests/support/test.h"

static void check(struct agx_str bytes, const char *hex)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(2 * AGX_SHA256_SIZE + 1);
    uint8_t digest[AGX_SHA256_SIZE];

    agx_sha256(bytes, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        ASSERT_OK(agx_buf_printf(&text, "%02x", digest[i]));
    ASSERT_STR(agx_str_from(hex), agx_buf_peek(&text));
}

TEST(sha256_of_the_standards_examples_is_theirs)
{
    _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1 << 20);

    check(AGX_STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check(AGX_STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check(AGX_STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    while (b.len < 1000000)
        ASSERT_OK(agx_buf_push(&b, 'a'));
    check(agx_buf_peek(&b), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256_at_the_edges_of_a_block_pads_right)
{
    static const char text[] = "0123456789012345678901234567890123456789012345678901234567890123";

    check(agx_str_bytes(text, 55),
          "f34d5a0f80c0cbf84c8c0b90218c22637abd199965249da736a20143c8c9c9d9");
    check(agx_str_bytes(text, 56),
          "83aa034bda83e458a0dc9cbce0d4e354716aa0ff770ed37ac0ed2b292052e4af");
    check(agx_str_bytes(text, 64),
          "9674d9e078535b7cec43284387a6ee39956188e735a85452b0050b55341cda56");
}

#include "base/siphash.h"
#include "tests/support/test.h"

/* Checked against CPython 3.11's hash() of bytes with PYTHONHASHSEED=0, which is SipHash-1-3. */
TEST(siphash_with_the_zero_key_is_what_python_computes)
{
    struct agx_siphash_key zero = { 0, 0 };

    ASSERT_UINT(UINT64_C(0x407448d2b89b1813), agx_siphash(zero, AGX_STR("a")));
    ASSERT_UINT(UINT64_C(0x3f7b849c0b8e35ea), agx_siphash(zero, AGX_STR("abcdefgh")));
    ASSERT_UINT(UINT64_C(0xcfa8d92e81d367b9),
                agx_siphash(zero, AGX_STR("hello world, this is longer")));
}

TEST(siphash_with_another_key_is_another_hash)
{
    uint64_t h = agx_siphash((struct agx_siphash_key){ 0, 0 }, AGX_STR("a"));

    ASSERT_TRUE(h != agx_siphash((struct agx_siphash_key){ 1, 0 }, AGX_STR("a")));
    ASSERT_TRUE(h != agx_siphash((struct agx_siphash_key){ 0, 1 }, AGX_STR("a")));
    ASSERT_TRUE(h != agx_siphash((struct agx_siphash_key){ 0, 0 }, AGX_STR("a\0")));
}

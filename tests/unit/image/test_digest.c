#include "base/buf.h"
#include "base/macros.h"
#include "tests/support/digest.h"

static void check(struct agx_str bytes, const char *hex)
{
    char text[AGX_DIGEST_SIZE];

    ASSERT_CSTR(hex, test_digest_of(bytes, text) + strlen("sha256:"));
    ASSERT_TRUE(agx_digest_is(agx_str_from(text)));
}

TEST(digest_of_the_standards_examples_is_theirs)
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

TEST(digest_as_numbers_is_that_of_the_text)
{
    uint8_t digest[AGX_DIGEST_BYTES];

    ASSERT_OK(agx_digest_raw(AGX_STR("abc"), digest, NULL));
    ASSERT_STR(agx_str_bytes("\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23"
                             "\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad",
                             sizeof(digest)),
               agx_str_bytes(digest, sizeof(digest)));
}

TEST(digest_of_bytes_in_pieces_is_that_of_the_whole)
{
    static const char text[] = "0123456789012345678901234567890123456789012345678901234567890123"
                               "abcdefghijklmnopqrstuvwxyz";

    for (size_t whole = 0; whole < sizeof(text); whole++)
        for (size_t piece = 1; piece <= whole; piece++) {
            struct agx_digest_sum *sum = NULL;
            char got[AGX_DIGEST_SIZE], want[AGX_DIGEST_SIZE];

            ASSERT_OK(agx_digest_sum_new(&sum, NULL));
            for (size_t at = 0; at < whole; at += piece)
                ASSERT_OK(agx_digest_sum_add(
                    sum, agx_str_bytes(text + at, AGX_MIN(piece, whole - at)), NULL));
            ASSERT_OK(agx_digest_sum_end(sum, got, NULL));
            ASSERT_CSTR(test_digest_of(agx_str_bytes(text, whole), want), got);
            ASSERT_NULL(agx_digest_sum_free(sum));
        }
}

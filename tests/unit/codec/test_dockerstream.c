#include "base/buf.h"
#include "codec/dockerstream.h"
#include "tests/support/test.h"

/* Reads `in` in pieces of `step` bytes; "1:text" for each run of one stream goes to `out`. */
static int read_all(struct agx_str in, size_t step, struct agx_buf *out, bool *ret_whole)
{
    struct agx_dockerstream d = { 0 };
    struct agx_dockerstream_piece piece;
    int last = -1, r = 0;

    agx_buf_clear(out);
    while (in.len > 0 && r == 0) {
        struct agx_str part = { in.ptr, AGX_MIN(step, in.len) };

        in = agx_str_skip(in, part.len);
        while ((r = agx_dockerstream_next(&d, &part, &piece, NULL)) > 0) {
            ASSERT_TRUE(piece.bytes.len > 0);
            if ((int)piece.stream != last)
                ASSERT_OK(agx_buf_printf(out, "%d:", (int)piece.stream));
            last = (int)piece.stream;
            ASSERT_OK(agx_buf_append(out, piece.bytes));
        }
        ASSERT_TRUE(r < 0 || part.len == 0);
    }
    *ret_whole = agx_dockerstream_is_whole(&d);
    return r;
}

TEST(dockerstream_gives_each_streams_bytes_however_they_come)
{
    static const char bytes[] = "\1\0\0\0\0\0\0\5hello\2\0\0\0\0\0\0\3err\0\0\0\0\0\0\0\1i"
                                "\1\0\0\0\0\0\0\0\3\0\0\0\0\0\0\2no";
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    struct agx_str in = agx_str_bytes(bytes, sizeof(bytes) - 1);
    bool whole;

    for (size_t step = 1; step <= in.len; step++) {
        ASSERT_OK(read_all(in, step, &out, &whole));
        ASSERT_STR(AGX_STR("1:hello2:err0:i3:no"), agx_buf_peek(&out));
        ASSERT_TRUE(whole);
    }
}

TEST(dockerstream_that_ends_within_a_frame_is_not_whole)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    bool whole;

    ASSERT_OK(read_all(AGX_STR("\1\0\0\0\0\0\0\5hell"), 100, &out, &whole));
    ASSERT_FALSE(whole);
    ASSERT_STR(AGX_STR("1:hell"), agx_buf_peek(&out));
    ASSERT_OK(read_all(AGX_STR("\1\0\0"), 1, &out, &whole));
    ASSERT_FALSE(whole);
}

TEST(dockerstream_of_something_else_is_data_loss_and_stays_so)
{
    struct agx_dockerstream d = { 0 };
    struct agx_dockerstream_piece piece;
    struct agx_str in = AGX_STR("\1\0\0\0\0\0\0\1xplain text");

    ASSERT_INT(1, agx_dockerstream_next(&d, &in, &piece, NULL));
    ASSERT_CODE(AGX_DATA_LOSS, agx_dockerstream_next(&d, &in, &piece, NULL));
    in = AGX_STR("\1\0\0\0\0\0\0\1x");
    ASSERT_CODE(AGX_DATA_LOSS, agx_dockerstream_next(&d, &in, &piece, NULL));
    ASSERT_FALSE(agx_dockerstream_is_whole(&d));
}

TEST(dockerstream_takes_a_frame_of_any_length)
{
    struct agx_dockerstream d = { 0 };
    struct agx_dockerstream_piece piece;
    struct agx_str in = AGX_STR("\2\0\0\0\xff\xff\xff\xffx");

    ASSERT_INT(1, agx_dockerstream_next(&d, &in, &piece, NULL));
    ASSERT_UINT(1, piece.bytes.len);
    ASSERT_INT(0, agx_dockerstream_next(&d, &in, &piece, NULL));
    ASSERT_UINT(0xfffffffe, d.left);
}

#include "codec/frame.h"
#include "tests/support/test.h"

/* Feeds `in` in pieces of `step` bytes and appends every frame and a '/' to `out`. */
static int decode(struct agx_frame_decoder *d, struct agx_str in, size_t step, struct agx_buf *out,
                  struct agx_error **err)
{
    while (in.len > 0) {
        struct agx_str piece = { in.ptr, AGX_MIN(step, in.len) }, frame;
        int r;

        in = agx_str_skip(in, piece.len);
        while ((r = agx_frame_decoder_next(d, &piece, &frame, err)) > 0) {
            ASSERT_OK(agx_buf_append(out, frame));
            ASSERT_OK(agx_buf_push(out, '/'));
        }
        if (r < 0)
            return r;
    }
    return 0;
}

TEST(decoder_gives_the_same_frames_however_the_input_is_cut)
{
    static const struct agx_str in = AGX_STR("\x01\x00\x00\x00\x80\x05\x00\x00\x00\x81\xa1k\xa1v"
                                             "\x00\x00\x00\x00\x03\x00\x00\x00\x81\x01\x02");

    for (size_t step = 1; step <= in.len; step++) {
        _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);

        agx_frame_decoder_init(&d, 5);
        ASSERT_OK(decode(&d, in, step, &out, NULL));
        ASSERT_OK(agx_frame_decoder_end(&d, NULL));
        ASSERT_STR(AGX_STR("\x80/\x81\xa1k\xa1v/\x80/\x81\x01\x02/"), agx_buf_peek(&out));
    }
}

TEST(decoder_gives_a_whole_frame_without_copying_it)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    struct agx_str in = AGX_STR("\x01\x00\x00\x00\x80rest"), start = in, frame;

    agx_frame_decoder_init(&d, 5);
    ASSERT_INT(1, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_TRUE(frame.ptr == start.ptr + 4);
    ASSERT_STR(AGX_STR("rest"), in);
    ASSERT_NULL(d.held.data);
}

TEST(decoder_past_its_maximum_fails_from_the_prefix_alone_and_stays_failed)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *again = NULL;
    struct agx_str in = AGX_STR("\x06\x00\x00\x00"), more = AGX_STR("\x01\x00\x00\x00\x80"), frame;

    agx_frame_decoder_init(&d, 5);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_frame_decoder_next(&d, &in, &frame, &err));
    ASSERT_MESSAGE(err, "frame of 6 bytes, the limit is 5");
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_frame_decoder_next(&d, &more, &frame, &again));
    ASSERT_MESSAGE(again, "frame of 6 bytes, the limit is 5");
}

TEST(decoder_of_a_huge_announcement_keeps_only_what_came)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    struct agx_str in = AGX_STR("\xff\xff\xff\xff"
                                "abc"),
                   frame;

    agx_frame_decoder_init(&d, (size_t)UINT32_MAX);
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_UINT(3, d.held.len);
    ASSERT_TRUE(d.held.cap < 1000);
}

TEST(decoder_gives_memory_of_a_large_frame_back)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    _cleanup_buf_ struct agx_buf big = AGX_BUF_INIT(200000);
    struct agx_str in = AGX_STR("\xa0\x86\x01\x00"), frame;

    agx_frame_decoder_init(&d, 200000);
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_OK(agx_buf_reserve(&big, 100000));
    memset(big.data, 'x', 100000);
    in = agx_str_bytes(big.data, 99999);
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    in = agx_str_bytes(big.data, 1);
    ASSERT_INT(1, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_UINT(100000, frame.len);
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_UINT(0, d.held.cap);
}

TEST(end_of_input_inside_a_frame_is_data_loss)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *in_prefix = NULL, *in_frame = NULL;
    struct agx_str in = AGX_STR("\x05\x00"), frame;

    agx_frame_decoder_init(&d, 5);
    ASSERT_OK(agx_frame_decoder_end(&d, NULL));
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_CODE(AGX_DATA_LOSS, agx_frame_decoder_end(&d, &in_prefix));
    ASSERT_MESSAGE(in_prefix, "after 2 bytes of a frame's length");
    in = AGX_STR("\x00\x00xy");
    ASSERT_INT(0, agx_frame_decoder_next(&d, &in, &frame, NULL));
    ASSERT_CODE(AGX_DATA_LOSS, agx_frame_decoder_end(&d, &in_frame));
    ASSERT_MESSAGE(in_frame, "after 2 of 5 bytes of a frame");
}

TEST(frame_written_behind_other_bytes_has_its_length_in_front)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    struct agx_mp_writer w;

    for (int i = 0; i < 2; i++) {
        agx_frame_begin(&w, &out);
        agx_mp_write_map(&w, 1);
        agx_mp_write_str(&w, AGX_STR("type"));
        agx_mp_write_str(&w, AGX_STR("ready"));
        ASSERT_OK(agx_frame_end(&w, 100, NULL));
    }
    ASSERT_STR(AGX_STR("\x0c\x00\x00\x00\x81\xa4type\xa5ready"
                       "\x0c\x00\x00\x00\x81\xa4type\xa5ready"),
               agx_buf_peek(&out));
}

TEST(frame_written_past_its_maximum_leaves_the_buffer_as_it_was)
{
    _cleanup_(agx_error_freep) struct agx_error *limit = NULL, *room = NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(20);
    struct agx_mp_writer w;

    ASSERT_OK(agx_buf_append(&out, AGX_STR("kept")));
    agx_frame_begin(&w, &out);
    agx_mp_write_str(&w, AGX_STR("abcd"));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_frame_end(&w, 4, &limit));
    ASSERT_MESSAGE(limit, "frame of 5 bytes, the limit is 4");
    ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&out));
    agx_frame_begin(&w, &out);
    agx_mp_write_str(&w, AGX_STR("0123456789ab"));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_frame_end(&w, 100, &room));
    ASSERT_STR(AGX_STR("kept"), agx_buf_peek(&out));
    agx_frame_begin(&w, &out);
    agx_mp_write_str(&w, AGX_STR("abcd"));
    ASSERT_OK(agx_frame_end(&w, 5, NULL));
}

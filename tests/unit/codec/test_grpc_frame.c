#include "codec/grpc_frame.h"

#include "base/limits.h"
#include "tests/support/test.h"

#define HELLO "\0\0\0\0\5hello"
#define EMPTY "\0\0\0\0\0"

#define _cleanup_decoder_ _cleanup_(agx_grpc_decoder_done)

/* Feeds `in` in pieces of `step` bytes; appends "<message>|" for each. The first error ends it. */
static int decode(struct agx_grpc_decoder *d, struct agx_str in, size_t step, struct agx_buf *out,
                  struct agx_error **err)
{
    while (in.len > 0) {
        struct agx_str piece = { in.ptr, AGX_MIN(step, in.len) }, message;
        int r;

        in = agx_str_skip(in, piece.len);
        while ((r = agx_grpc_decoder_next(d, &piece, &message, err)) > 0) {
            ASSERT_OK(agx_buf_append(out, message));
            ASSERT_OK(agx_buf_push(out, '|'));
        }
        if (r < 0)
            return r;
        ASSERT_UINT(0, piece.len);
    }
    return agx_grpc_decoder_end(d, err);
}

TEST(decoder_gives_the_same_messages_however_the_bytes_are_cut)
{
    struct agx_str in = AGX_STR(HELLO EMPTY HELLO "\0\0\0\0\1x" EMPTY);

    for (size_t step = 1; step <= in.len; step++) {
        _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);

        agx_grpc_decoder_init(&d, 5);
        ASSERT_OK(decode(&d, in, step, &out, NULL));
        ASSERT_STR(AGX_STR("hello||hello|x||"), agx_buf_peek(&out));
    }
}

TEST(decoder_points_into_the_input_when_it_holds_the_message_whole)
{
    _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
    struct agx_str whole = AGX_STR(HELLO), in = whole, message;

    agx_grpc_decoder_init(&d, AGX_GRPC_MESSAGE_MAX);
    ASSERT_INT(1, agx_grpc_decoder_next(&d, &in, &message, NULL));
    ASSERT_TRUE(message.ptr == whole.ptr + AGX_GRPC_PREFIX_SIZE);
    ASSERT_NULL(d.held.data);

    /* The prefix may have come before. */
    in = (struct agx_str){ whole.ptr, 5 };
    ASSERT_INT(0, agx_grpc_decoder_next(&d, &in, &message, NULL));
    in = (struct agx_str){ whole.ptr + 5, 5 };
    ASSERT_INT(1, agx_grpc_decoder_next(&d, &in, &message, NULL));
    ASSERT_TRUE(message.ptr == whole.ptr + 5);
    ASSERT_NULL(d.held.data);
}

TEST(decoder_given_no_bytes_wants_more)
{
    _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
    struct agx_str in = { NULL, 0 }, message;

    agx_grpc_decoder_init(&d, 10);
    ASSERT_INT(0, agx_grpc_decoder_next(&d, &in, &message, NULL));
    ASSERT_OK(agx_grpc_decoder_end(&d, NULL));
}

TEST(decoder_refuses_a_message_above_the_maximum_by_its_prefix_alone)
{
    _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *again = NULL;
    struct agx_str more = AGX_STR("xyz"), message;

    agx_grpc_decoder_init(&d, AGX_GRPC_MESSAGE_MAX);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, decode(&d, AGX_STR(HELLO "\0\0\x40\0\1"), 100, &out, &err));
    ASSERT_CSTR("received message larger than max (4194305 vs. 4194304)", err->message);
    ASSERT_STR(AGX_STR("hello|"), agx_buf_peek(&out));

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_decoder_next(&d, &more, &message, &again));
    ASSERT_CSTR(err->message, again->message);
    ASSERT_NULL(d.held.data);
}

TEST(decoder_accepts_a_message_of_exactly_the_maximum)
{
    _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    agx_grpc_decoder_init(&d, 5);
    ASSERT_OK(decode(&d, AGX_STR(HELLO), 3, &out, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, decode(&d, AGX_STR("\0\xff\xff\xff\xff"), 1, &out, &err));
    ASSERT_MESSAGE(err, "(4294967295 vs. 5)");
}

TEST(decoder_stores_what_arrived_and_not_what_was_announced)
{
    _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
    struct agx_str in = AGX_STR("\0\0\x40\0\0x"), message;

    agx_grpc_decoder_init(&d, AGX_GRPC_MESSAGE_MAX);
    ASSERT_INT(0, agx_grpc_decoder_next(&d, &in, &message, NULL));
    ASSERT_TRUE(d.held.cap < 1000);
}

TEST(decoder_refuses_compressed_messages_and_unknown_flags)
{
    static const struct {
        struct agx_str in;
        const char *words;
    } cases[] = {
        { { "\1\0\0\0\1x", 6 }, "compressed flag" },
        { { "\2\0\0\0\1x", 6 }, "flag 0x02" },
        { { "\x80\xff\xff\xff\xff", 5 }, "flag 0x80" },
        { { "GET / HTTP/1.1", 14 }, "flag 0x47" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(cases); i++) {
        for (size_t step = 1; step <= cases[i].in.len; step++) {
            _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
            _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
            _cleanup_(agx_error_freep) struct agx_error *err = NULL;

            agx_grpc_decoder_init(&d, 5);
            ASSERT_CODE(AGX_INTERNAL, decode(&d, cases[i].in, step, &out, &err));
            ASSERT_MESSAGE(err, cases[i].words);
            ASSERT_UINT(0, out.len);
        }
    }
}

TEST(decoder_end_in_the_middle_of_a_message_is_internal)
{
    struct agx_str whole = AGX_STR(HELLO);

    for (size_t n = 1; n < whole.len; n++) {
        _cleanup_decoder_ struct agx_grpc_decoder d = { 0 };
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(100);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        agx_grpc_decoder_init(&d, 5);
        ASSERT_CODE(AGX_INTERNAL, decode(&d, (struct agx_str){ whole.ptr, n }, 4, &out, &err));
        ASSERT_MESSAGE(err, "stream ended");
        ASSERT_UINT(0, out.len);
    }
}

TEST(frame_encode_puts_flag_and_length_in_front)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
    char big[258] = { 0 };

    ASSERT_OK(agx_grpc_frame_encode(&out, AGX_STR("hello")));
    ASSERT_OK(agx_grpc_frame_encode(&out, AGX_STR("")));
    ASSERT_STR(AGX_STR(HELLO EMPTY), agx_buf_peek(&out));
    agx_buf_clear(&out);
    ASSERT_OK(agx_grpc_frame_encode(&out, agx_str_bytes(big, sizeof(big))));
    ASSERT_STR(AGX_STR("\0\0\0\1\2"), agx_str_bytes(out.data, 5));
    ASSERT_UINT(5 + sizeof(big), out.len);
}

TEST(frame_begin_makes_room_for_the_message)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1005);

    ASSERT_OK(agx_grpc_frame_begin(&out, 1000));
    ASSERT_STR(AGX_STR("\0\0\0\3\xe8"), agx_buf_peek(&out));
    ASSERT_TRUE(out.cap - out.len >= 1000);
}

TEST(frame_encode_that_does_not_fit_leaves_the_buffer_as_it_was)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(14);

    ASSERT_OK(agx_buf_append(&out, AGX_STR("kept!")));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_frame_encode(&out, AGX_STR("hello")));
    ASSERT_STR(AGX_STR("kept!"), agx_buf_peek(&out));
    ASSERT_OK(agx_grpc_frame_encode(&out, AGX_STR("hell")));
}

TEST(frame_begin_of_a_length_past_32_bits_is_resource_exhausted)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(SIZE_MAX);

    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_grpc_frame_begin(&out, (size_t)UINT32_MAX + 1));
    ASSERT_UINT(0, out.len);
}

/*
 * fuzz_grpc_frame.c: the decoder's messages and its error do not depend on how the stream is cut;
 * complete messages encode to their original bytes. The first byte of the input is the size of the
 * pieces.
 */
#include "codec/grpc_frame.h"
#include "tests/support/fuzz.h"

/* Small, so that both sides of the limit are met often. */
enum { MESSAGE_MAX = 300 };

/* The messages encoded again, and how the stream ended. */
struct outcome {
    struct agx_buf again;
    struct agx_error *err;
    int r;
};

static void outcome_done(struct outcome *o)
{
    agx_buf_done(&o->again);
    agx_error_free(o->err);
}

static void decode(struct outcome *o, struct agx_str in, size_t step)
{
    _cleanup_(agx_grpc_decoder_done) struct agx_grpc_decoder d = { 0 };
    struct agx_str message;

    agx_grpc_decoder_init(&d, MESSAGE_MAX);
    while (o->r >= 0 && in.len > 0) {
        struct agx_str piece = { in.ptr, AGX_MIN(step, in.len) };

        in = agx_str_skip(in, piece.len);
        while ((o->r = agx_grpc_decoder_next(&d, &piece, &message, &o->err)) > 0) {
            FUZZ_CHECK(message.len <= MESSAGE_MAX);
            FUZZ_CHECK(agx_grpc_frame_encode(&o->again, message) == 0);
        }
    }
    if (o->r == 0)
        o->r = agx_grpc_decoder_end(&d, &o->err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(outcome_done) struct outcome whole = { AGX_BUF_INIT(SIZE_MAX / 8), NULL, 0 };
    _cleanup_(outcome_done) struct outcome cut = { AGX_BUF_INIT(SIZE_MAX / 8), NULL, 0 };
    struct agx_str in;

    if (size < 1)
        return 0;
    in = agx_str_bytes(data + 1, size - 1);
    decode(&whole, in, SIZE_MAX);
    decode(&cut, in, (size_t)data[0] + 1);
    FUZZ_CHECK(whole.r == cut.r);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole.again), agx_buf_peek(&cut.again)));
    FUZZ_CHECK(agx_str_starts(in, agx_buf_peek(&whole.again)));
    if (whole.r == 0) {
        FUZZ_CHECK(whole.again.len == in.len);
        FUZZ_CHECK(!whole.err && !cut.err);
    } else {
        FUZZ_CHECK(whole.err && cut.err);
        FUZZ_CHECK(strcmp(whole.err->message, cut.err->message) == 0);
    }
    return 0;
}

/*
 * fuzz_frame.c: the frames and the final result do not depend on how the input is cut; a decoded
 * frame encodes to its original bytes. The first byte of the input chooses the size of the pieces.
 */
#include "codec/frame.h"
#include "tests/support/fuzz.h"

enum { FRAME_MAX = 300 };

/* Decodes `in` in pieces of `step` bytes; the frames go to `out`, framed again. */
static int run(struct agx_str in, size_t step, struct agx_buf *out)
{
    _cleanup_(agx_frame_decoder_done) struct agx_frame_decoder d = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_str frame;
    int r = 0;

    agx_frame_decoder_init(&d, FRAME_MAX);
    while (r == 0 && in.len > 0) {
        struct agx_str piece = { in.ptr, AGX_MIN(step, in.len) };

        in = agx_str_skip(in, piece.len);
        while ((r = agx_frame_decoder_next(&d, &piece, &frame, &err)) > 0) {
            struct agx_mp_writer w;

            FUZZ_CHECK(frame.len > 0 && frame.len <= FRAME_MAX);
            agx_frame_begin(&w, out);
            agx_mp_write_raw(&w, frame);
            FUZZ_CHECK(agx_frame_end(&w, FRAME_MAX, NULL) == 0);
        }
        FUZZ_CHECK(r < 0 || piece.len == 0);
        FUZZ_CHECK(d.held.len <= FRAME_MAX);
    }
    if (r < 0) {
        _cleanup_(agx_error_freep) struct agx_error *again = NULL;
        struct agx_str more = AGX_STR("\x00\x00\x00\x00\x00");

        FUZZ_CHECK(agx_frame_decoder_next(&d, &more, &frame, &again) == r);
        FUZZ_CHECK(strcmp(err->message, again->message) == 0);
        return r;
    }
    return agx_frame_decoder_end(&d, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf whole = AGX_BUF_INIT(SIZE_MAX / 8),
                                 cut = AGX_BUF_INIT(SIZE_MAX / 8),
                                 again = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_str in;
    int r;

    if (size < 2)
        return 0;
    in = agx_str_bytes(data + 1, size - 1);
    r = run(in, in.len, &whole);
    FUZZ_CHECK(run(in, data[0] % 16u + 1, &cut) == r);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole), agx_buf_peek(&cut)));
    FUZZ_CHECK(run(agx_buf_peek(&whole), in.len, &again) == 0);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole), agx_buf_peek(&again)));
    return 0;
}

/*
 * fuzz_dockerstream.c: the bytes of each stream and the final result do not depend on how the input
 * is cut. The first byte of the input chooses the size of the pieces.
 */
#include "base/buf.h"
#include "codec/dockerstream.h"
#include "tests/support/fuzz.h"

/* The bytes with their streams, as pairs; returns how it ended. */
static int run(struct agx_str in, size_t step, struct agx_buf *out)
{
    struct agx_dockerstream d = { 0 };
    struct agx_dockerstream_piece piece;
    size_t left = in.len;
    int r = 0;

    while (r == 0 && in.len > 0) {
        struct agx_str part = { in.ptr, AGX_MIN(step, in.len) };

        in = agx_str_skip(in, part.len);
        while ((r = agx_dockerstream_next(&d, &part, &piece, NULL)) > 0) {
            FUZZ_CHECK(piece.bytes.len > 0 && piece.bytes.len <= left && piece.stream <= 3);
            left -= piece.bytes.len;
            for (size_t i = 0; i < piece.bytes.len; i++)
                FUZZ_CHECK(agx_buf_push(out, (uint8_t)piece.stream) == 0 &&
                           agx_buf_push(out, (uint8_t)piece.bytes.ptr[i]) == 0);
        }
        FUZZ_CHECK(r < 0 || part.len == 0);
    }
    return r < 0 ? r : agx_dockerstream_is_whole(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf whole = AGX_BUF_INIT(SIZE_MAX / 8),
                                 cut = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_str in;
    int r;

    if (size < 2)
        return 0;
    in = agx_str_bytes(data + 1, size - 1);
    r = run(in, in.len, &whole);
    FUZZ_CHECK(run(in, data[0] % 16u + 1, &cut) == r);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole), agx_buf_peek(&cut)));
    return 0;
}

/*
 * fuzz_jsonseq.c: the objects and the final result do not depend on how the input is cut; a text
 * that parses as one object is returned unchanged. The first byte of the input chooses the size of
 * the pieces.
 */
#include "base/json.h"
#include "codec/jsonseq.h"
#include "tests/support/fuzz.h"

enum { OBJECT_MAX = 200 };

static int run(struct agx_str in, size_t step, struct agx_buf *out)
{
    _cleanup_(agx_jsonseq_done) struct agx_jsonseq q;
    struct agx_str object;
    int r = 0;

    agx_jsonseq_init(&q, OBJECT_MAX);
    while (r == 0 && in.len > 0) {
        struct agx_str piece = { in.ptr, AGX_MIN(step, in.len) };

        in = agx_str_skip(in, piece.len);
        while ((r = agx_jsonseq_next(&q, &piece, &object, NULL)) > 0) {
            FUZZ_CHECK(object.len >= 2 && object.len <= OBJECT_MAX && object.ptr[0] == '{');
            FUZZ_CHECK(agx_buf_append(out, object) == 0 && agx_buf_push(out, 0) == 0);
        }
        FUZZ_CHECK(r < 0 || piece.len == 0);
        FUZZ_CHECK(q.held.len <= OBJECT_MAX);
    }
    return r < 0 ? r : agx_jsonseq_is_whole(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf whole = AGX_BUF_INIT(SIZE_MAX / 8),
                                 cut = AGX_BUF_INIT(SIZE_MAX / 8);
    _cleanup_json_ json_t *value = NULL;
    struct agx_str in;
    int r;

    if (size < 2)
        return 0;
    in = agx_str_bytes(data + 1, size - 1);
    r = run(in, in.len, &whole);
    FUZZ_CHECK(run(in, data[0] % 16u + 1, &cut) == r);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&whole), agx_buf_peek(&cut)));
    if (in.len <= OBJECT_MAX && agx_json_parse(in, OBJECT_MAX, 64, &value, NULL) == 0 &&
        json_is_object(value)) {
        FUZZ_CHECK(r == 1 && whole.len > 0);
        FUZZ_CHECK(memchr(whole.data, 0, whole.len) == whole.data + whole.len - 1);
    }
    return 0;
}

/*
 * fuzz_mp_ext.c: a parsed array has exactly the bytes that its shape needs and is written as the
 * same payload; nested models can be opened down to the innermost, and a depth limit bounds them.
 */
#include "codec/mp_ext.h"
#include "tests/support/fuzz.h"

static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

static void check_ndarray(struct agx_str payload)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(SIZE_MAX / 8);
    struct agx_mp_ndarray a;
    struct agx_mp_writer w;
    struct agx_mp_reader r;
    struct agx_mp_token t;

    if (agx_mp_ndarray_parse(payload, &a, &err) < 0) {
        FUZZ_CHECK(err && strncmp(err->message, "ndarray: ", 9) == 0);
        return;
    }
    agx_mp_writer_init(&w, &out);
    FUZZ_CHECK(agx_mp_write_ndarray(&w, &a, NULL) == 0);
    FUZZ_CHECK(agx_mp_writer_end(&w, NULL) == 0);
    FUZZ_CHECK(agx_mp_reader_init(&r, agx_buf_peek(&out), &limits, NULL) == 0);
    FUZZ_CHECK(agx_mp_next(&r, &t, NULL) == 0 && agx_mp_at_end(&r));
    FUZZ_CHECK(t.type == AGX_MP_EXT && t.ext_type == AGX_MP_EXT_NDARRAY);
    FUZZ_CHECK(agx_str_eq(t.bytes, payload));
}

/* Goes down into every model among the tokens of `r`. */
static void check_models(struct agx_mp_reader r)
{
    struct agx_mp_reader inner;
    struct agx_mp_token t;

    FUZZ_CHECK(r.depth <= limits.depth);
    while (agx_mp_next(&r, &t, NULL) == 0) {
        if (t.type == AGX_MP_EXT && agx_mp_open_model(&r, t.bytes, &inner, NULL) == 0) {
            FUZZ_CHECK(inner.at >= r.start && inner.end <= r.at);
            check_models(inner);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str in = agx_str_bytes(data, size);
    struct agx_mp_reader r;

    check_ndarray(in);
    FUZZ_CHECK(agx_mp_reader_init(&r, in, &limits, NULL) == 0);
    check_models(r);
    return 0;
}

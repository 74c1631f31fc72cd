/* fuzz_base64.c: text that decodes encodes to the same text again; bytes that were encoded decode
 * to the same bytes. */
#include "codec/base64.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str in = agx_str_bytes(data, size);
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(SIZE_MAX / 8),
                                 text = AGX_BUF_INIT(SIZE_MAX / 8);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    if (agx_base64_decode(&bytes, in, &err) == 0) {
        bool pad = size > 0 && data[size - 1] == '=';

        FUZZ_CHECK(agx_base64_encode(&text, agx_buf_peek(&bytes), pad) == 0);
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&text), in));
    } else {
        FUZZ_CHECK(err && err->message[0]);
    }
    agx_buf_clear(&bytes);
    agx_buf_clear(&text);
    FUZZ_CHECK(agx_base64_encode(&text, in, size % 2) == 0);
    FUZZ_CHECK(agx_base64_decode(&bytes, agx_buf_peek(&text), NULL) == 0);
    FUZZ_CHECK(agx_str_eq(agx_buf_peek(&bytes), in));
    return 0;
}

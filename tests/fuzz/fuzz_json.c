/* fuzz_json.c: a parsed value can be written, and the written text parses to an equal value. */
#include "base/json.h"
#include "base/limits.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT((size_t)64 << 20);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    _cleanup_json_ json_t *value = NULL, *again = NULL;

    if (agx_json_parse(agx_str_bytes(data, size), AGX_JSON_MAX, 16, &value, &err) < 0) {
        FUZZ_CHECK(err && err->message[0] && !value);
        return 0;
    }
    FUZZ_CHECK(agx_json_write(value, &text, NULL) == 0);
    FUZZ_CHECK(agx_json_parse(agx_buf_peek(&text), text.len, 16, &again, NULL) == 0);
    FUZZ_CHECK(json_equal(value, again));
    return 0;
}

/* fuzz_duration.c: a parsed duration can be printed, and the printed text parses to the same. */
#include "base/duration.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[AGX_DURATION_TEXT_SIZE];
    int64_t ns, again;

    if (agx_duration_parse(agx_str_bytes(data, size), &ns, &err) < 0) {
        FUZZ_CHECK(err && err->message[0]);
        return 0;
    }
    FUZZ_CHECK(agx_duration_parse(agx_str_from(agx_duration_format(ns, text)), &again, NULL) == 0);
    FUZZ_CHECK(again == ns);
    return 0;
}

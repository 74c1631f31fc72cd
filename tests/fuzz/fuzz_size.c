/* fuzz_size.c: a parsed size is above zero and can be printed, and the printed text parses to the
 * same size. The same text parsed as an amount of processor time is above zero too. */
#include "base/cpu.h"
#include "base/size.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char text[AGX_SIZE_TEXT_SIZE];
    int64_t v, again;

    FUZZ_CHECK(agx_cpu_parse(agx_str_bytes(data, size), &v, NULL) < 0 || v > 0);
    if (agx_size_parse(agx_str_bytes(data, size), &v, &err) < 0) {
        FUZZ_CHECK(err && err->message[0]);
        return 0;
    }
    FUZZ_CHECK(v > 0);
    FUZZ_CHECK(agx_size_parse(agx_str_from(agx_size_format(v, text)), &again, NULL) == 0);
    FUZZ_CHECK(again == v);
    return 0;
}

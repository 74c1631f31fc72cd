/* An image's configuration. */
#include "image/digest.h"
#include "image/image.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_image_config c;
    struct agx_error *err = NULL;

    if (agx_image_config_parse(&c, agx_str_bytes(data, size), &err) == 0) {
        FUZZ_CHECK(!err);
        for (size_t i = 0; i < c.diff_ids.len; i++)
            FUZZ_CHECK(agx_digest_is(agx_str_from(c.diff_ids.items[i])));
        FUZZ_CHECK(c.healthcheck.set == (c.healthcheck.test.len > 0));
        FUZZ_CHECK(!c.workdir || c.workdir[0] == '/');
        agx_image_config_done(&c);
    } else {
        FUZZ_CHECK(err);
    }
    agx_error_free(err);
    return 0;
}

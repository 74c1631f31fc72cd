/* fuzz_config.c: an accepted configuration of the daemon is printed in a form that reads as the
 * same configuration. */
#include "daemon/config.h"
#include "tests/support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct agx_buf first = AGX_BUF_INIT((size_t)8 << 20);
    _cleanup_buf_ struct agx_buf second = AGX_BUF_INIT((size_t)8 << 20);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_config a = AGX_CONFIG_INIT, b = AGX_CONFIG_INIT;

    if (size > AGX_YAML_MAX)
        return 0;
    if (agx_config_read(&a, agx_str_bytes(data, size), "f", &err) < 0) {
        FUZZ_CHECK(err && err->message[0] == 'f');
    } else {
        FUZZ_CHECK(agx_config_print(&a, &first) == 0);
        FUZZ_CHECK(agx_config_read(&b, agx_buf_peek(&first), "f", NULL) == 0);
        FUZZ_CHECK(agx_config_print(&b, &second) == 0);
        FUZZ_CHECK(agx_str_eq(agx_buf_peek(&first), agx_buf_peek(&second)));
    }
    agx_config_done(&a);
    agx_config_done(&b);
    return 0;
}

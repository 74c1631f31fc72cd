#include "codec/base64.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

TEST(base64_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(100), bytes = AGX_BUF_INIT(100);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int r = agx_base64_encode(&text, AGX_STR("some bytes"), true);

        if (r == 0)
            r = agx_base64_decode(&bytes, agx_buf_peek(&text), &err);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
    }
}

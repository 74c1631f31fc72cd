#include "base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <errno.h>

TEST(error_made_without_memory_is_an_error_all_the_same)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_error *err = NULL, *copy = NULL;
        int r = agx_error_errno(&err, ENOENT, "open '%s'", "x");

        ASSERT_CODE(AGX_NOT_FOUND, r);
        ASSERT_CODE(AGX_NOT_FOUND, agx_error_wrap(&err, r, "read"));
        copy = agx_error_dup(err);
        ASSERT_NOT_NULL(err);
        ASSERT_NOT_NULL(copy);
        agx_error_free(err);
        agx_error_free(copy);
    }
}

TEST(buf_without_memory_keeps_its_content)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
        int n = 0;

        for (int i = 0; i < 300; i++) {
            int r = agx_buf_push(&b, 'x');

            ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
            n += r == 0;
            ASSERT_UINT(n, b.len);
        }
    }
}

#include "base/fd.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <fcntl.h>

TEST(fd_read_file_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf b = AGX_BUF_INIT(1000);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        int r = agx_fd_read_file(AT_FDCWD, "/proc/self/comm", &b, &err);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0, err != NULL);
        ASSERT_INT(r < 0, b.len == 0);
    }
}

#include "base/log.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <fcntl.h>

TEST(log_allocates_nothing)
{
    struct agx_log_config c = AGX_LOG_CONFIG_INIT;

    c.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ASSERT_TRUE(c.fd >= 0);
    agx_log_setup(&c);
    agx_fault_arm(1);
    AGX_LOG(AGX_LOG_ERROR, "x", AGX_F_STR("a", "two words"), AGX_F_INT("n", 1));
    ASSERT_FALSE(agx_fault_disarm());
    (void)close(c.fd);
}

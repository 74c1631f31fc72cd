#include "grpc/ratelimit.h"
#include "tests/support/test.h"

TEST(guard_allows_its_burst_at_once_and_then_its_rate)
{
    struct agx_grpc_ratelimit g;

    agx_grpc_ratelimit_init(&g, 3, 2, 1000);
    for (int i = 0; i < 3; i++)
        ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, 1000));
    ASSERT_FALSE(agx_grpc_ratelimit_spend(&g, 1000));
    ASSERT_FALSE(agx_grpc_ratelimit_spend(&g, 1499));
    ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, 1500));
    ASSERT_FALSE(agx_grpc_ratelimit_spend(&g, 1500));
}

TEST(guard_never_holds_more_than_its_burst_however_long_it_waits)
{
    struct agx_grpc_ratelimit g;

    agx_grpc_ratelimit_init(&g, 2, UINT32_MAX, 0);
    ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, UINT64_MAX));
    ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, UINT64_MAX));
    ASSERT_FALSE(agx_grpc_ratelimit_spend(&g, UINT64_MAX));
}

TEST(guard_refund_allows_one_more_up_to_the_burst)
{
    struct agx_grpc_ratelimit g;

    agx_grpc_ratelimit_init(&g, 1, 0, 0);
    agx_grpc_ratelimit_refund(&g);
    ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, 0));
    ASSERT_FALSE(agx_grpc_ratelimit_spend(&g, 0));
    agx_grpc_ratelimit_refund(&g);
    ASSERT_TRUE(agx_grpc_ratelimit_spend(&g, 0));
}

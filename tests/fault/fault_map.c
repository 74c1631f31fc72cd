#include "base/map.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

TEST(map_put_without_memory_leaves_the_map_as_it_was)
{
    FAULT_EACH_ALLOCATION
    {
        struct agx_map m;
        char value;
        size_t n = 0;

        agx_map_init(&m, (struct agx_siphash_key){ 1, 2 });
        for (int i = 0; i < 26; i++) {
            char c = (char)('a' + i);
            int r = agx_map_put(&m, agx_str_bytes(&c, 1), &value, NULL);

            ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
            n += r == 0;
            ASSERT_UINT(n, m.len);
            ASSERT_INT(r == 0, agx_map_get(&m, agx_str_bytes(&c, 1)) == &value);
        }
        ASSERT_INT(agx_fault_hit() ? 25 : 26, n);
        agx_map_done(&m);
    }
}

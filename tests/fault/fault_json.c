#include "base/json.h"
#include "base/limits.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <stdlib.h>

#define TEXT "{\"a\":[1,2.5,\"text\\n\",{\"b\":null}],\"long\":[0,0,0,0,0,0,0,0,0,0,0,0],\"c\":{}}"

TEST(json_without_memory_is_resource_exhausted)
{
    /* The library's allocations come from its own object; this makes them pass here. */
    json_set_alloc_funcs(malloc, free);
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(1000);
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        _cleanup_json_ json_t *v = NULL;
        int r = agx_json_parse(AGX_STR(TEXT), AGX_JSON_MAX, AGX_DEPTH_MAX, &v, &err);

        if (r == 0)
            r = agx_json_write(v, &out, &err);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
        ASSERT_INT(r < 0, err != NULL);
        ASSERT_INT(r == 0, out.len == sizeof(TEXT) - 1);
    }
}

#include "agentix/msgpack.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#include <stdlib.h>

TEST(json_to_msgpack_and_back_without_memory_is_resource_exhausted)
{
    static const char json[] =
        "{\"a\\u0062\":[1,2.5,{\"\\u0024bytes\":\"AAEC\\u0041w==\"}],\"c\":null}";

    FAULT_EACH_ALLOCATION
    {
        struct agx_writer *w = agx_writer_new();
        struct agx_error *err = NULL;
        const void *bytes = NULL;
        char *text = NULL;
        struct agx_reader rd;
        size_t len = 0;
        int r = agx_writer_json(w, json, sizeof(json) - 1, &err);

        if (r == 0)
            r = agx_writer_bytes(w, &bytes, &len, &err);
        if (r == 0) {
            agx_reader_init(&rd, bytes, len);
            r = agx_reader_json(&rd, &text, &err);
        }
        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, r);
        ASSERT_INT(r < 0, err != NULL);
        free(text);
        agx_error_free(err);
        agx_writer_free(w);
    }
}

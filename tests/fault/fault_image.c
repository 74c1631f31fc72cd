#include "image/challenge.h"
#include "image/manifest.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TEST(challenge_without_memory_is_resource_exhausted)
{
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_challenge_done) struct agx_challenge c = { 0 };
        int r = agx_challenge_parse(
            &c, AGX_STR("Basic realm=\"b\", Bearer realm=\"r\",service=\"s\",scope=p"), NULL);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        ASSERT_INT(r < 0, agx_fault_hit());
    }
}

TEST(manifest_without_memory_is_resource_exhausted)
{
    static const char *const texts[] = {
        "{\"schemaVersion\":2,\"config\":{\"mediaType\":"
        "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"" A "\",\"size\":7},"
        "\"layers\":[{\"digest\":\"" A "\",\"size\":1}]}",
        "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"" A "\",\"size\":7,"
        "\"platform\":{\"os\":\"linux\",\"architecture\":\"x\"}}]}",
    };
    static const struct agx_platform platform = { "linux", "x", NULL };

    /* Only allocations of our own fail: jansson leaves out a character where the buffer for a
     * string cannot grow, and says nothing. */
    for (size_t i = 0; i < AGX_ARRAY_LEN(texts); i++) {
        FAULT_EACH_ALLOCATION
        {
            _cleanup_(agx_manifest_done) struct agx_manifest m = { 0 };
            int r = agx_manifest_parse(&m, agx_str_from(texts[i]), &platform, NULL);

            ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
            ASSERT_INT(r < 0, agx_fault_hit());
        }
    }
}

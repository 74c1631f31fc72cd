#include "backend/docker/api/pull_progress.h"
#include "base/limits.h"
#include "tests/support/test.h"

static bool note(struct agx_docker_pull_progress *l, const char *text)
{
    _cleanup_json_ json_t *line = json_loads(text, 0, NULL);

    ASSERT_NOT_NULL(line);
    return agx_docker_pull_progress_note(l, line);
}

static void check(const struct agx_docker_pull_progress *l, unsigned done, unsigned layers,
                  uint64_t bytes_done, uint64_t bytes)
{
    struct agx_pull p = { .layers_total = 77 };

    agx_docker_pull_progress_sum(l, &p);
    ASSERT_UINT(done, p.layers_done);
    ASSERT_UINT(layers, p.layers_total);
    ASSERT_UINT(bytes_done, p.bytes_done);
    ASSERT_UINT(bytes, p.bytes_total);
}

TEST(layers_add_up_from_the_first_line_to_the_last)
{
    struct agx_docker_pull_progress l;

    agx_docker_pull_progress_init(&l, (struct agx_siphash_key){ 0 });
    check(&l, 0, 0, 0, 0);
    ASSERT_FALSE(note(&l, "{\"status\":\"Pulling from library/x\",\"id\":\"latest\"}"));
    ASSERT_TRUE(note(&l, "{\"status\":\"Pulling fs layer\",\"progressDetail\":{},\"id\":\"a\"}"));
    ASSERT_TRUE(note(&l, "{\"status\":\"Already exists\",\"id\":\"b\"}"));
    check(&l, 1, 2, 0, 0);
    ASSERT_TRUE(note(&l, "{\"status\":\"Downloading\",\"id\":\"a\",\"progressDetail\":"
                         "{\"current\":30,\"total\":100}}"));
    check(&l, 1, 2, 30, 100);
    ASSERT_TRUE(note(&l, "{\"status\":\"Download complete\",\"id\":\"a\"}"));
    ASSERT_TRUE(note(&l, "{\"status\":\"Extracting\",\"id\":\"a\",\"progressDetail\":"
                         "{\"current\":1,\"total\":100}}"));
    check(&l, 1, 2, 100, 100);
    ASSERT_TRUE(note(&l, "{\"status\":\"Pull complete\",\"id\":\"a\"}"));
    check(&l, 2, 2, 100, 100);
    ASSERT_FALSE(note(&l, "{\"status\":\"Digest: sha256:1\"}"));
    agx_docker_pull_progress_done(&l);
}

TEST(layers_of_an_engine_that_lies_stay_within_bounds)
{
    struct agx_docker_pull_progress l;
    char line[100];

    agx_docker_pull_progress_init(&l, (struct agx_siphash_key){ 0 });
    ASSERT_TRUE(note(&l, "{\"status\":\"Downloading\",\"id\":\"a\",\"progressDetail\":"
                         "{\"current\":50,\"total\":-1}}"));
    ASSERT_TRUE(note(&l, "{\"status\":\"Downloading\",\"id\":\"b\",\"progressDetail\":[]}"));
    ASSERT_FALSE(note(&l, "{\"status\":7,\"id\":\"a\"}"));
    ASSERT_FALSE(note(&l, "{\"status\":\"Waiting\",\"id\":null}"));
    check(&l, 0, 2, 50, 50);
    for (int i = 0; i < 2 * AGX_DOCKER_LAYERS_MAX; i++) {
        (void)snprintf(line, sizeof(line), "{\"status\":\"Waiting\",\"id\":\"layer-%d\"}", i);
        (void)note(&l, line);
    }
    check(&l, 0, AGX_DOCKER_LAYERS_MAX, 50, 50);
    agx_docker_pull_progress_done(&l);
}

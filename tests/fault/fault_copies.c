#include "backend/files/copytar.h"
#include "tests/support/copies.h"
#include "tests/support/fault.h"

static int swallow(void *user, struct agx_str bytes, struct agx_error **err)
{
    (void)err;
    *(size_t *)user += bytes.len;
    return 0;
}

static int refuse(void *user, struct agx_str bytes, struct agx_error **err)
{
    (void)user;
    (void)bytes;
    return agx_error_set(err, AGX_OUT_OF_RANGE, "no more");
}

TEST(copy_without_memory_is_resource_exhausted)
{
    struct test_copies t = test_copies_open();
    const struct agx_sources_asker asker = { NULL, geteuid() };
    atomic_bool stop = false;

    test_copies_file(&t, ".gitignore", AGX_STR("ignored/\n"));
    test_copies_file(&t, "ignored/file", AGX_STR("x"));
    test_copies_file(&t, "a/b", AGX_STR("x"));
    ASSERT_OK(agx_words_add(&t.copy.exclude_patterns, AGX_STR("*.o"), NULL));
    FAULT_EACH_ALLOCATION
    {
        _cleanup_(agx_copytree_closep) struct agx_copytree *tree = NULL;
        size_t n = 0;
        int r = agx_copytree_open(&t.copy, &asker, &stop, &tree, NULL);

        if (r == 0)
            r = agx_copytar_write(tree, "to", swallow, &n, NULL);
        ASSERT_INT(agx_fault_hit() ? -AGX_RESOURCE_EXHAUSTED : 0, r);
    }
    test_copies_close(&t);
}

TEST(copy_that_cannot_be_started_leaves_nothing)
{
    struct test_copies t = test_copies_open();
    const struct agx_copies_request q = { &t.copy, t.there, 4096, test_copies_more };

    ASSERT_OK(agx_words_add(&t.copy.exclude_patterns, AGX_STR("*.o"), NULL));
    FAULT_EACH_ALLOCATION
    {
        int r = agx_copies_open(t.loop, t.pool, &q, &t, &t.copies, NULL);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r == 0)
            t.copies = agx_copies_close(t.copies);
        test_loop_run(t.loop);
    }
    test_copies_close(&t);
}

TEST(copy_whose_bytes_are_refused_ends_with_that_error)
{
    struct test_copies t = test_copies_open();
    _cleanup_(agx_copytree_closep) struct agx_copytree *tree = NULL;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    const struct agx_sources_asker asker = { NULL, geteuid() };
    atomic_bool stop = false;

    test_copies_file(&t, "a/b", AGX_STR("x"));
    ASSERT_OK(agx_copytree_open(&t.copy, &asker, &stop, &tree, NULL));
    ASSERT_CODE(AGX_OUT_OF_RANGE, agx_copytar_write(tree, "", refuse, NULL, &err));
    ASSERT_MESSAGE(err, "no more");
    test_copies_close(&t);
}

TEST(walk_that_is_stopped_is_cancelled)
{
    struct test_copies t = test_copies_open();
    _cleanup_(agx_copytree_closep) struct agx_copytree *tree = NULL;
    atomic_bool stop = true;
    const struct agx_sources_asker asker = { NULL, geteuid() };
    size_t n = 0;

    test_copies_file(&t, "a/b", AGX_STR("x"));
    ASSERT_OK(agx_copytree_open(&t.copy, &asker, &stop, &tree, NULL));
    ASSERT_CODE(AGX_CANCELLED, agx_copytar_write(tree, "", swallow, &n, NULL));
    ASSERT_UINT(0, n);
    test_copies_close(&t);
}

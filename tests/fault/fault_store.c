#include "store/store_mem.h"
#include "tests/support/fault.h"
#include "tests/support/store.h"

/* One turn with two batches, one of which is refused; whichever allocation fails, a batch is there
 * as a whole or not at all. */
static void one_turn(struct agx_store *st)
{
    struct agx_store_batch *b = agx_store_batch_new(), *second;
    struct test_result put = { 0 }, refused = { 0 };
    bool sent = false;

    agx_store_batch_put(b, TEST_SANDBOXES, AGX_STR("a"), AGX_STR("1"));
    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("a1"), AGX_STR("created"));
    agx_store_batch_put(b, TEST_EVENTS, AGX_STR("a2"), AGX_STR("ready"));
    if (agx_store_commit(st, &b, test_on_done, &put, NULL) == 0)
        sent = true;
    agx_store_batch_free(b);
    second = agx_store_batch_new();
    agx_store_batch_expect_absent(second, TEST_SANDBOXES, AGX_STR("a"));
    agx_store_batch_delete(second, TEST_SANDBOXES, AGX_STR("a"));
    if (agx_store_commit(st, &second, test_on_done, &refused, NULL) < 0)
        ASSERT_TRUE(agx_fault_hit());
    agx_store_batch_free(second);
    test_loop_run(st->loop);
    ASSERT_UINT(sent, put.n);
    if (!agx_fault_hit()) {
        ASSERT_INT(AGX_OK, put.code);
        ASSERT_INT(AGX_ALREADY_EXISTS, refused.code);
    }
    (void)agx_fault_disarm();
    test_store_has(st, TEST_SANDBOXES, "a", sent && put.code == AGX_OK ? "1" : NULL);
    test_store_has(st, TEST_EVENTS, "a1", sent && put.code == AGX_OK ? "created" : NULL);
    test_store_has(st, TEST_EVENTS, "a2", sent && put.code == AGX_OK ? "ready" : NULL);
}

TEST(batch_and_commit_fail_cleanly_whichever_allocation_fails)
{
    bool hit = true;

    for (unsigned n = 1; hit; n++) {
        struct agx_loop *l = test_loop_open();
        struct agx_store *st = NULL;

        ASSERT_OK(agx_store_mem_open(l, &test_store_layout, &st, NULL));
        agx_fault_arm(n);
        one_turn(st);
        hit = agx_fault_hit();
        test_store_close(st);
        test_loop_close(l);
    }
}

TEST(open_without_memory_is_resource_exhausted)
{
    struct agx_loop *l = test_loop_open();

    FAULT_EACH_ALLOCATION
    {
        struct agx_store *st = NULL;
        int r = agx_store_mem_open(l, &test_store_layout, &st, NULL);

        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r == 0)
            test_store_close(st);
    }
    test_loop_close(l);
}

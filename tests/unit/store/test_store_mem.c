#include "store/store_mem.h"
#include "tests/support/store.h"

static struct agx_store *open_store(void)
{
    struct agx_store *st = NULL;

    ASSERT_OK(agx_store_mem_open(test_loop_open(), &test_store_layout, &st, NULL));
    return st;
}

static void close_store(struct agx_store *st)
{
    struct agx_loop *l = st->loop;

    test_store_close(st);
    test_loop_close(l);
}

static struct agx_store_batch *batch_put(const char *key)
{
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key), AGX_STR("x"));
    return b;
}

TEST(fail_refuses_the_next_batches_and_then_stores_again)
{
    struct agx_store *st = open_store();
    struct agx_store_stats stats;

    agx_store_mem_fail(st, AGX_RESOURCE_EXHAUSTED, 2);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, test_store_commit(st, batch_put("a")));
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, test_store_commit(st, batch_put("a")));
    test_store_has(st, TEST_SANDBOXES, "a", NULL);
    ASSERT_INT(AGX_OK, test_store_commit(st, batch_put("a")));
    test_store_has(st, TEST_SANDBOXES, "a", "x");
    agx_store_stats(st, &stats);
    ASSERT_UINT(2, stats.failed);
    close_store(st);
}

TEST(hold_keeps_batches_back_until_it_lets_go)
{
    struct agx_store *st = open_store();
    struct test_result r;

    agx_store_mem_hold(st, true);
    test_store_submit(st, batch_put("a"), &r);
    test_loop_run(st->loop);
    ASSERT_UINT(0, r.n);
    test_store_has(st, TEST_SANDBOXES, "a", NULL);
    agx_store_mem_hold(st, false);
    test_loop_run(st->loop);
    ASSERT_UINT(1, r.n);
    test_store_has(st, TEST_SANDBOXES, "a", "x");
    close_store(st);
}

TEST(close_lets_go_of_what_is_held)
{
    struct agx_store *st = open_store();
    struct test_result r;

    agx_store_mem_hold(st, true);
    test_store_submit(st, batch_put("a"), &r);
    close_store(st);
    ASSERT_UINT(1, r.n);
    ASSERT_INT(AGX_OK, r.code);
}

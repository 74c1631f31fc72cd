#include "codec/credit.h"
#include "tests/support/test.h"

TEST(credit_lets_an_item_go_while_one_item_and_one_byte_are_left)
{
    struct agx_credit granted = { 2, 100 }, used = { 0 };

    ASSERT_TRUE(agx_credit_left(&granted, &used));
    agx_credit_count(&used, 99);
    ASSERT_TRUE(agx_credit_left(&granted, &used));
    agx_credit_count(&used, 5000);
    ASSERT_FALSE(agx_credit_left(&granted, &used));
    granted.bytes = 10000;
    ASSERT_FALSE(agx_credit_left(&granted, &used));
    granted.n = 3;
    ASSERT_TRUE(agx_credit_left(&granted, &used));
}

TEST(credit_that_is_older_changes_nothing)
{
    struct agx_credit granted = AGX_CREDIT_INIT;

    ASSERT_FALSE(agx_credit_raise(&granted, AGX_CREDIT_ITEMS, AGX_CREDIT_BYTES));
    ASSERT_FALSE(agx_credit_raise(&granted, 1, 1));
    ASSERT_TRUE(agx_credit_raise(&granted, 1, AGX_CREDIT_BYTES + 1));
    ASSERT_UINT(AGX_CREDIT_ITEMS, granted.n);
    ASSERT_UINT(AGX_CREDIT_BYTES + 1, granted.bytes);
}

TEST(credit_is_due_when_half_of_its_items_are_taken)
{
    struct agx_credit granted = AGX_CREDIT_INIT, taken = { 0 };

    taken.n = AGX_CREDIT_ITEMS / 2 - 1;
    ASSERT_FALSE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS_GROWN));
    taken.n++;
    ASSERT_TRUE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS_GROWN));
    agx_credit_grant(&granted, &taken, AGX_CREDIT_ITEMS_GROWN);
    ASSERT_UINT(AGX_CREDIT_ITEMS / 2 + AGX_CREDIT_ITEMS_GROWN, granted.n);
    ASSERT_UINT(AGX_CREDIT_BYTES, granted.bytes);
    /* The window is the wider one from now on. */
    taken.n += AGX_CREDIT_ITEMS_GROWN / 2 - 1;
    ASSERT_FALSE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS_GROWN));
    taken.n++;
    ASSERT_TRUE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS_GROWN));
}

TEST(credit_is_due_when_half_of_its_bytes_are_taken)
{
    struct agx_credit granted = AGX_CREDIT_INIT, taken = { 1, AGX_CREDIT_BYTES / 2 - 1 };

    ASSERT_FALSE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS));
    taken.bytes++;
    ASSERT_TRUE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS));
    agx_credit_grant(&granted, &taken, AGX_CREDIT_ITEMS);
    ASSERT_UINT(AGX_CREDIT_BYTES / 2 + AGX_CREDIT_BYTES, granted.bytes);
}

TEST(credit_is_due_after_an_item_that_is_larger_than_the_window)
{
    struct agx_credit granted = AGX_CREDIT_INIT, taken = { 0 };

    agx_credit_count(&taken, 10 * AGX_CREDIT_BYTES);
    ASSERT_TRUE(agx_credit_due(&granted, &taken, AGX_CREDIT_ITEMS));
    agx_credit_grant(&granted, &taken, AGX_CREDIT_ITEMS);
    ASSERT_UINT(11 * AGX_CREDIT_BYTES, granted.bytes);
    ASSERT_UINT(AGX_CREDIT_ITEMS + 1, granted.n);
}

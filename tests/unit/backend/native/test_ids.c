#include "backend/native/net/ids.h"
#include "base/limits_native.h"
#include "tests/support/test.h"

enum { BASE = AGX_NSSET_IDS * 16 };

static struct agx_ids make(uint32_t n)
{
    struct agx_ids s = { 0 };

    ASSERT_OK(agx_ids_init(&s, BASE, n, NULL));
    return s;
}

static void check_take(struct agx_ids *s, uint32_t want)
{
    uint32_t got = 0;

    ASSERT_OK(agx_ids_take(s, &got, NULL));
    ASSERT_INT(BASE + want * AGX_NSSET_IDS, got);
}

TEST(ids_take_goes_round_so_that_a_range_comes_back_late)
{
    _cleanup_(agx_ids_done) struct agx_ids s = make(3);

    check_take(&s, 0);
    check_take(&s, 1);
    agx_ids_release(&s, BASE);
    check_take(&s, 2);
    check_take(&s, 0);
}

TEST(ids_take_when_all_are_taken_is_resource_exhausted)
{
    _cleanup_(agx_ids_done) struct agx_ids s = make(70);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uint32_t got = 0;

    for (uint32_t i = 0; i < 70; i++)
        check_take(&s, i);
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_ids_take(&s, &got, &err));
    ASSERT_MESSAGE(err, "all 70 ranges");
    agx_ids_release(&s, BASE + 65 * AGX_NSSET_IDS);
    check_take(&s, 65);
}

TEST(ids_reserve_keeps_a_range_from_others)
{
    _cleanup_(agx_ids_done) struct agx_ids s = make(3);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_ids_reserve(&s, BASE + AGX_NSSET_IDS, NULL));
    ASSERT_TRUE(agx_ids_has(&s, BASE + AGX_NSSET_IDS));
    ASSERT_FALSE(agx_ids_has(&s, BASE));
    check_take(&s, 0);
    check_take(&s, 2);
    ASSERT_CODE(AGX_ALREADY_EXISTS, agx_ids_reserve(&s, BASE + AGX_NSSET_IDS, &err));
    ASSERT_MESSAGE(err, "taken already");
}

TEST(ids_that_are_none_of_the_ranges_are_refused)
{
    _cleanup_(agx_ids_done) struct agx_ids s = make(3);
    const uint32_t wrong[] = { 0, BASE - AGX_NSSET_IDS, BASE + 1, BASE + 3 * AGX_NSSET_IDS };

    for (size_t i = 0; i < AGX_ARRAY_LEN(wrong); i++) {
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_ids_reserve(&s, wrong[i], NULL));
        ASSERT_FALSE(agx_ids_has(&s, wrong[i]));
        agx_ids_release(&s, wrong[i]);
    }
    check_take(&s, 0);
}

TEST(ids_init_wants_ranges_that_fit)
{
    const uint32_t wrong[][2] = {
        { 0, 1 }, { BASE + 1, 1 }, { BASE, 0 }, { BASE, 65536 }, { 0xffff0000U, 1 }
    };
    struct agx_ids s;

    for (size_t i = 0; i < AGX_ARRAY_LEN(wrong); i++)
        ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_ids_init(&s, wrong[i][0], wrong[i][1], NULL));
    ASSERT_OK(agx_ids_init(&s, AGX_NSSET_ID_BASE, AGX_NSSET_RANGES, NULL));
    agx_ids_done(&s);
}
TEST(ids_that_are_shared_are_everybodys)
{
    struct agx_ids s;
    uint32_t got = 0;

    agx_ids_share(&s, AGX_NSSET_SHARED_ID);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(agx_ids_take(&s, &got, NULL));
        ASSERT_UINT(AGX_NSSET_SHARED_ID, got);
    }
    ASSERT_OK(agx_ids_reserve(&s, AGX_NSSET_SHARED_ID, NULL));
    agx_ids_release(&s, AGX_NSSET_SHARED_ID);
    ASSERT_TRUE(agx_ids_has(&s, AGX_NSSET_SHARED_ID));
    ASSERT_FALSE(agx_ids_has(&s, BASE));
    agx_ids_done(&s);
}

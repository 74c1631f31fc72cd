#include "base/map.h"
#include "tests/support/test.h"

#include <stdio.h>

static const struct agx_siphash_key seed = { 1, 2 };

/* "k<i>" in a buffer of the caller's. */
static struct agx_str name(char buf[16], int i)
{
    return agx_str_bytes(buf, (size_t)snprintf(buf, 16, "k%d", i));
}

TEST(map_put_get_and_replace)
{
    _cleanup_(agx_map_done) struct agx_map m;
    int one, two;
    void *old = &one;

    agx_map_init(&m, seed);
    ASSERT_NULL(agx_map_get(&m, AGX_STR("a")));
    ASSERT_OK(agx_map_put(&m, AGX_STR("a"), &one, &old));
    ASSERT_NULL(old);
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("a")) == &one);
    ASSERT_OK(agx_map_put(&m, AGX_STR("a"), &two, &old));
    ASSERT_TRUE(old == &one);
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("a")) == &two);
    ASSERT_UINT(1, m.len);
}

TEST(map_keys_are_copied_and_may_have_any_bytes)
{
    _cleanup_(agx_map_done) struct agx_map m;
    char key[] = "abc";
    int one, two, three;

    agx_map_init(&m, seed);
    ASSERT_OK(agx_map_put(&m, agx_str_bytes(key, 3), &one, NULL));
    key[0] = 'x';
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("abc")) == &one);
    ASSERT_NULL(agx_map_get(&m, AGX_STR("xbc")));
    ASSERT_OK(agx_map_put(&m, AGX_STR(""), &two, NULL));
    ASSERT_OK(agx_map_put(&m, AGX_STR("abc\0d"), &three, NULL));
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("")) == &two);
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("abc\0d")) == &three);
    ASSERT_TRUE(agx_map_get(&m, AGX_STR("abc")) == &one);
}

TEST(map_of_many_keys_survives_growing_and_removing_in_another_order)
{
    enum { N = 5000, STEP = 1237 /* prime to N */ };
    static char present[N];
    _cleanup_(agx_map_done) struct agx_map m;
    char buf[16];

    agx_map_init(&m, seed);
    for (int i = 0; i < N; i++)
        ASSERT_OK(agx_map_put(&m, name(buf, i), &present[i], NULL));
    ASSERT_UINT(N, m.len);
    for (int n = 0, i = 0; n < N; n++, i = (i + STEP) % N) {
        ASSERT_TRUE(agx_map_remove(&m, name(buf, i)) == &present[i]);
        present[i] = 1;
        ASSERT_NULL(agx_map_remove(&m, name(buf, i)));
        for (int k = 0; n % 500 == 0 && k < N; k++)
            ASSERT_TRUE(agx_map_get(&m, name(buf, k)) == (present[k] ? NULL : &present[k]));
    }
    ASSERT_UINT(0, m.len);
}

TEST(map_next_visits_each_entry_once)
{
    _cleanup_(agx_map_done) struct agx_map m;
    struct agx_str key;
    int seen[100] = { 0 };
    char buf[16];
    void *value;

    agx_map_init(&m, seed);
    for (size_t at = 0; agx_map_next(&m, &at, NULL, NULL);)
        FAIL("an empty map has an entry");
    for (int i = 0; i < 100; i++)
        ASSERT_OK(agx_map_put(&m, name(buf, i), &seen[i], NULL));
    for (size_t at = 0; agx_map_next(&m, &at, &key, &value);) {
        ASSERT_STR(name(buf, (int)((int *)value - seen)), key);
        ++*(int *)value;
    }
    for (int i = 0; i < 100; i++)
        ASSERT_INT(1, seen[i]);
}

TEST(map_is_usable_after_done)
{
    struct agx_map m;
    int one;

    agx_map_init(&m, seed);
    ASSERT_OK(agx_map_put(&m, AGX_STR("a"), &one, NULL));
    agx_map_done(&m);
    ASSERT_NULL(agx_map_get(&m, AGX_STR("a")));
    ASSERT_OK(agx_map_put(&m, AGX_STR("a"), &one, NULL));
    agx_map_done(&m);
    agx_map_done(NULL);
}

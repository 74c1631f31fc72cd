#include "base/heap.h"
#include "tests/support/test.h"

enum { MANY = 500 };

/* A fixed sequence that looks random. */
static uint32_t scramble(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

TEST(heap_gives_the_smallest_key_first_whatever_was_taken_out_between)
{
    struct agx_heap_node nodes[MANY] = { 0 };
    struct agx_heap h = { 0 };
    uint32_t state = 7;
    uint64_t last = 0;
    size_t n = 0;

    for (int i = 0; i < MANY; i++)
        ASSERT_OK(agx_heap_put(&h, &nodes[i], scramble(&state) % 100));
    for (int i = 0; i < MANY; i += 3)
        agx_heap_remove(&h, &nodes[i]);
    for (struct agx_heap_node *top; (top = agx_heap_peek(&h)); n++) {
        ASSERT_TRUE(top->key >= last);
        ASSERT_TRUE(agx_heap_has(top));
        last = top->key;
        agx_heap_remove(&h, top);
        ASSERT_FALSE(agx_heap_has(top));
    }
    ASSERT_UINT(MANY - (MANY + 2) / 3, n);
    agx_heap_done(&h);
}

TEST(heap_remove_of_a_node_in_no_heap_does_nothing)
{
    struct agx_heap h = { 0 };
    struct agx_heap_node n = { 0 };

    agx_heap_remove(&h, &n);
    ASSERT_NULL(agx_heap_peek(&h));
    agx_heap_done(&h);
    agx_heap_done(NULL);
}

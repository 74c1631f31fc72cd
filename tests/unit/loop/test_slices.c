#include "base/limits.h"
#include "loop/slices.h"
#include "tests/support/loop.h"

#include "base/banned.h"

struct work {
    struct agx_slice slice;
    struct agx_slices *q;
    struct work *drops; /* taken out when this runs */
    unsigned n, left;
    unsigned slow_us;
};

static char order[64];

static void run(struct agx_slice *s)
{
    struct work *w = container_of(s, struct work, slice);
    size_t len = strlen(order);
    uint64_t end = uv_hrtime() + (uint64_t)w->slow_us * 1000;

    w->n++;
    if (len < sizeof(order) - 1)
        order[len] = (char)('0' + w->n);
    while (uv_hrtime() < end)
        ;
    if (w->drops)
        agx_slices_remove(w->q, &w->drops->slice);
    if (w->left > 0) {
        w->left--;
        agx_slices_add(w->q, s);
        agx_slices_add(w->q, s); /* it is queued: nothing */
    }
}

static struct agx_loop *setup(struct agx_slices *q)
{
    struct agx_loop *l = test_loop_open();

    memset(order, 0, sizeof(order));
    agx_slices_open(q, l);
    return l;
}

static void teardown(struct agx_slices *q, struct agx_loop *l)
{
    agx_slices_close(q, NULL, NULL);
    test_loop_close(l);
}

TEST(slices_take_turns_and_the_loop_rests_when_all_are_done)
{
    struct agx_slices q;
    struct agx_loop *l = setup(&q);
    struct work a = { .slice.run = run, .q = &q, .left = 2 };
    struct work b = { .slice.run = run, .q = &q, .left = 2 };

    agx_slices_add(&q, &a.slice);
    agx_slices_add(&q, &b.slice);
    ASSERT_UINT(0, a.n);
    test_loop_run(l);
    ASSERT_CSTR("112233", order);
    teardown(&q, l);
}

TEST(slices_that_begin_run_at_once_only_when_none_waits)
{
    struct agx_slices q;
    struct agx_loop *l = setup(&q);
    struct work a = { .slice.run = run, .q = &q, .left = 1 };
    struct work b = { .slice.run = run, .q = &q };

    agx_slices_begin(&q, &a.slice);
    ASSERT_UINT(1, a.n);
    agx_slices_begin(&q, &b.slice);
    ASSERT_UINT(0, b.n);
    test_loop_run(l);
    ASSERT_UINT(2, a.n);
    ASSERT_UINT(1, b.n);
    teardown(&q, l);
}

TEST(slice_that_another_takes_out_does_not_run)
{
    struct agx_slices q;
    struct agx_loop *l = setup(&q);
    struct work b = { .slice.run = run, .q = &q };
    struct work a = { .slice.run = run, .q = &q, .drops = &b };

    agx_slices_add(&q, &a.slice);
    agx_slices_add(&q, &b.slice);
    test_loop_run(l);
    ASSERT_UINT(1, a.n);
    ASSERT_UINT(0, b.n);
    agx_slices_remove(&q, &b.slice);
    teardown(&q, l);
}

TEST(slices_that_use_up_the_turn_put_the_others_off)
{
    struct agx_slices q;
    struct agx_loop *l = setup(&q);
    struct work a = { .slice.run = run, .q = &q, .slow_us = 2 * AGX_SLICES_TURN_US };
    struct work b = { .slice.run = run, .q = &q };

    agx_slices_add(&q, &a.slice);
    agx_slices_add(&q, &b.slice);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
    ASSERT_UINT(1, a.n);
    ASSERT_UINT(0, b.n);
    test_loop_run(l);
    ASSERT_UINT(1, b.n);
    teardown(&q, l);
}

#include "loop/turnwatch.h"
#include "tests/support/loop.h"

#include "base/banned.h"

enum { BUSY_MS = 20 };

static unsigned n_fired;

/* The second time it is busy: the loop has slept before then. */
static void on_timer(uv_timer_t *t)
{
    uint64_t end = uv_hrtime() + (uint64_t)BUSY_MS * 1000000;

    if (n_fired++ == 0)
        (void)uv_timer_start(t, on_timer, 1, 0);
    else
        while (uv_hrtime() < end)
            ;
}

TEST(turnwatch_tells_how_long_the_longest_turn_took)
{
    struct agx_loop *l = test_loop_open();
    struct agx_turnwatch w;
    uv_timer_t t;

    agx_turnwatch_open(&w, l);
    (void)uv_timer_init(agx_loop_uv(l), &t);
    (void)uv_timer_start(&t, on_timer, 1, 0);
    test_loop_run(l);
    ASSERT_UINT(2, n_fired);
    ASSERT_TRUE(w.longest_ns >= (uint64_t)BUSY_MS * 1000000);
    uv_close((uv_handle_t *)&t, NULL);
    agx_turnwatch_close(&w, NULL, NULL);
    test_loop_close(l);
}

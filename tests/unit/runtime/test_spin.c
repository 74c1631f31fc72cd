/* test_spin.c: when the loop stays awake. A loop with an active idle handle does not sleep. */
#include "base/clock.h"
#include "runtime/spin.h"
#include "tests/support/loop.h"

enum { WINDOW_US = 60 * 1000000 }; /* we are always quicker */

/* Whether a turn of the loop, with nothing else to do, would wait. */
static bool sleeps(struct agx_loop *l)
{
    return uv_backend_timeout(agx_loop_uv(l)) != 0;
}

static void on_timer(uv_timer_t *t)
{
    (void)t;
}

struct world {
    struct agx_loop *loop;
    struct agx_spin *spin;
    uv_timer_t far; /* something to sleep for */
};

static void world_open(struct world *w, unsigned window_us)
{
    w->loop = test_loop_open();
    w->spin = agx_spin_open(w->loop, window_us);
    (void)uv_timer_init(agx_loop_uv(w->loop), &w->far);
    (void)uv_timer_start(&w->far, on_timer, 1000000, 0);
    (void)uv_run(agx_loop_uv(w->loop), UV_RUN_NOWAIT);
}

static void world_close(struct world *w)
{
    w->spin = agx_spin_close(w->spin);
    uv_close((uv_handle_t *)&w->far, NULL);
    test_loop_run(w->loop);
    test_loop_close(w->loop);
}

TEST(spin_begins_after_several_messages_in_a_row)
{
    struct world w;

    world_open(&w, WINDOW_US);
    agx_spin_touch(w.spin);
    ASSERT_TRUE(sleeps(w.loop));
    for (int i = 0; i < 8; i++)
        agx_spin_touch(w.spin);
    ASSERT_FALSE(sleeps(w.loop));
    world_close(&w);
}

TEST(spin_ends_when_its_window_is_over)
{
    struct world w;
    uint64_t begin = agx_clock_us();

    world_open(&w, 2000);
    for (int i = 0; i < 8; i++)
        agx_spin_touch(w.spin);
    while (!sleeps(w.loop)) {
        ASSERT_TRUE(agx_clock_us() - begin < 20000000);
        (void)uv_run(agx_loop_uv(w.loop), UV_RUN_NOWAIT);
    }
    world_close(&w);
}

TEST(spin_of_nothing_never_begins)
{
    struct world w;

    world_open(&w, 0);
    for (int i = 0; i < 100; i++)
        agx_spin_touch(w.spin);
    ASSERT_TRUE(sleeps(w.loop));
    world_close(&w);
}

TEST(spin_close_accepts_nothing)
{
    ASSERT_NULL(agx_spin_close(NULL));
}

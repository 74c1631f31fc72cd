#include "loop/alarms.h"
#include "tests/support/loop.h"

#include "base/banned.h"

struct fixture {
    struct agx_loop *loop;
    struct agx_alarms alarms;
};

struct ring {
    struct agx_alarm alarm;
    struct fixture *f;
    struct ring *clears; /* one that is cleared when this fires */
    unsigned n, again;   /* set again so often */
};

static char order[16];

static void on_fire(struct agx_alarm *a)
{
    struct ring *r = container_of(a, struct ring, alarm);
    size_t len = strlen(order);

    r->n++;
    if (len < sizeof(order) - 1)
        order[len] = (char)('0' + r->n);
    if (r->clears)
        agx_alarms_clear(&r->f->alarms, &r->clears->alarm);
    if (r->again > 0) {
        r->again--;
        ASSERT_OK(agx_alarms_set(&r->f->alarms, a, 0, NULL));
    }
}

static void setup(struct fixture *f)
{
    memset(order, 0, sizeof(order));
    f->loop = test_loop_open();
    agx_alarms_open(&f->alarms, f->loop);
}

static void teardown(struct fixture *f)
{
    agx_alarms_close(&f->alarms, NULL, NULL);
    test_loop_close(f->loop);
}

TEST(alarm_fires_once_and_never_inside_set)
{
    struct fixture f;
    struct ring r = { .alarm.fire = on_fire, .f = &f };

    setup(&f);
    ASSERT_OK(agx_alarms_set(&f.alarms, &r.alarm, 0, NULL));
    ASSERT_UINT(0, r.n);
    test_loop_run(f.loop);
    ASSERT_UINT(1, r.n);
    teardown(&f);
}

TEST(alarm_that_is_set_again_fires_at_the_later_moment_only)
{
    struct fixture f;
    struct ring r = { .alarm.fire = on_fire, .f = &f };

    setup(&f);
    ASSERT_OK(agx_alarms_set(&f.alarms, &r.alarm, UINT64_MAX, NULL));
    ASSERT_OK(agx_alarms_set(&f.alarms, &r.alarm, 5, NULL));
    test_loop_run(f.loop);
    ASSERT_UINT(1, r.n);
    teardown(&f);
}

TEST(alarm_that_is_cleared_by_another_does_not_fire)
{
    struct fixture f;
    struct ring second = { .alarm.fire = on_fire, .f = &f };
    struct ring first = { .alarm.fire = on_fire, .f = &f, .clears = &second };

    setup(&f);
    ASSERT_OK(agx_alarms_set(&f.alarms, &second.alarm, 2, NULL));
    ASSERT_OK(agx_alarms_set(&f.alarms, &first.alarm, 1, NULL));
    test_loop_run(f.loop);
    ASSERT_UINT(1, first.n);
    ASSERT_UINT(0, second.n);
    agx_alarms_clear(&f.alarms, &second.alarm);
    teardown(&f);
}

TEST(alarm_that_sets_itself_for_now_leaves_room_for_others)
{
    struct fixture f;
    struct ring busy = { .alarm.fire = on_fire, .f = &f, .again = 3 };
    struct ring other = { .alarm.fire = on_fire, .f = &f };

    setup(&f);
    ASSERT_OK(agx_alarms_set(&f.alarms, &busy.alarm, 0, NULL));
    ASSERT_OK(agx_alarms_set(&f.alarms, &other.alarm, 1, NULL));
    test_loop_run(f.loop);
    ASSERT_UINT(4, busy.n);
    ASSERT_UINT(1, other.n);
    ASSERT_CSTR("11234", order); /* the other one's 1 is not the last */
    teardown(&f);
}

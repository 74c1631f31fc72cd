/*
 * loop.h: the loop of a test. It ends a test that hangs, and every test that uses it ends with the
 * loop closed and no handle left.
 */
#ifndef AGX_TESTS_LOOP_H
#define AGX_TESTS_LOOP_H

#include "loop/loop.h"
#include "tests/support/test.h"

#include <stdio.h>

/* Only ends a hang; no test may depend on how long anything takes. */
#define TEST_LOOP_HANG_MS 120000

static inline struct agx_loop *test_loop_open(void)
{
    struct agx_loop *l = NULL;

    ASSERT_OK(agx_loop_open(&l, NULL));
    return l;
}

static inline void test_loop_hang(uv_timer_t *t)
{
    (void)t;
    FAIL("the loop did not come to an end");
}

/* agx_loop_run() with a time limit. `until_stop`: runs even if no other handle keeps the loop. */
static inline void test_loop_run_guarded(struct agx_loop *l, bool until_stop)
{
    uv_timer_t guard;

    (void)uv_timer_init(agx_loop_uv(l), &guard);
    (void)uv_timer_start(&guard, test_loop_hang, TEST_LOOP_HANG_MS, 0);
    if (!until_stop)
        uv_unref((uv_handle_t *)&guard);
    agx_loop_run(l);
    uv_close((uv_handle_t *)&guard, NULL);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT); /* the guard timer is on our stack */
}

/* Runs until no handle is left. */
static inline void test_loop_run(struct agx_loop *l)
{
    test_loop_run_guarded(l, false);
}

/* Runs until agx_loop_stop(). */
static inline void test_loop_run_until_stop(struct agx_loop *l)
{
    test_loop_run_guarded(l, true);
}

static inline void test_loop_close(struct agx_loop *l)
{
    struct agx_error *err = NULL;
    char text[512];

    if (agx_loop_close(l, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
}

#endif

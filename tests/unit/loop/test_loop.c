#include "loop/loop.h"
#include "loop/uverr.h"
#include "tests/support/loop.h"

#include <pthread.h>

struct log {
    struct agx_loop *loop;
    unsigned n, until; /* stops the loop at `until` */
    pthread_t ran_on;
};

static void count_up(void *user)
{
    struct log *log = user;

    log->ran_on = pthread_self();
    if (++log->n == log->until)
        agx_loop_stop(log->loop);
}

static void *post_thousand(void *user)
{
    struct log *log = user;

    for (int i = 0; i < 1000; i++)
        (void)!agx_loop_post(log->loop, count_up, log);
    return NULL;
}

TEST(loop_post_from_threads_runs_every_function_on_the_loop_thread)
{
    struct log log = { .loop = test_loop_open(), .until = 4000 };
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++)
        ASSERT_INT(0, pthread_create(&threads[i], NULL, post_thousand, &log));
    test_loop_run_until_stop(log.loop);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ASSERT_UINT(4000, log.n);
    ASSERT_TRUE(pthread_equal(pthread_self(), log.ran_on));
    test_loop_close(log.loop);
}

TEST(loop_post_never_runs_inside_the_call)
{
    struct log log = { .loop = test_loop_open() };

    ASSERT_OK(agx_loop_post(log.loop, count_up, &log));
    ASSERT_UINT(0, log.n);
    test_loop_close(log.loop);
    ASSERT_UINT(1, log.n); /* what was posted before the close is not lost */
}

struct repost {
    struct agx_loop *loop;
    uv_timer_t timer;
    bool seen_timer;
    unsigned n;
};

static void post_again(void *user)
{
    struct repost *rp = user;

    rp->n++;
    if (!rp->seen_timer)
        (void)!agx_loop_post(rp->loop, post_again, rp);
}

static void on_timer(uv_timer_t *t)
{
    container_of(t, struct repost, timer)->seen_timer = true;
    uv_close((uv_handle_t *)t, NULL);
}

TEST(loop_function_that_posts_itself_does_not_starve_the_others)
{
    struct repost rp = { .loop = test_loop_open() };

    ASSERT_INT(0, uv_timer_init(agx_loop_uv(rp.loop), &rp.timer));
    ASSERT_INT(0, uv_timer_start(&rp.timer, on_timer, 1, 0));
    ASSERT_OK(agx_loop_post(rp.loop, post_again, &rp));
    test_loop_run(rp.loop);
    ASSERT_TRUE(rp.seen_timer);
    test_loop_close(rp.loop);
}

TEST(loop_close_with_handles_left_names_their_kinds_and_can_be_tried_again)
{
    struct agx_loop *l = test_loop_open();
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    uv_timer_t timers[2];
    uv_idle_t idle;

    (void)uv_timer_init(agx_loop_uv(l), &timers[0]);
    (void)uv_timer_init(agx_loop_uv(l), &timers[1]);
    (void)uv_idle_init(agx_loop_uv(l), &idle);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_loop_close(l, &err));
    ASSERT_MESSAGE(err, "2 timer");
    ASSERT_MESSAGE(err, "1 idle");
    uv_close((uv_handle_t *)&timers[0], NULL);
    uv_close((uv_handle_t *)&timers[1], NULL);
    uv_close((uv_handle_t *)&idle, NULL);
    test_loop_close(l);
}

TEST(loop_close_of_null_is_fine)
{
    ASSERT_OK(agx_loop_close(NULL, NULL));
}

static void *is_mine(void *loop)
{
    return agx_loop_is_mine(loop) ? loop : NULL;
}

TEST(loop_belongs_to_the_thread_that_opened_it)
{
    struct agx_loop *l = test_loop_open();
    void *mine = l;
    pthread_t t;

    ASSERT_TRUE(agx_loop_is_mine(l));
    ASSERT_INT(0, pthread_create(&t, NULL, is_mine, l));
    pthread_join(t, &mine);
    ASSERT_NULL(mine);
    test_loop_close(l);
}

TEST(uverr_set_of_an_errno_keeps_it)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_NOT_FOUND, agx_uverr_set(&err, UV_ENOENT, "open '%s'", "x"));
    ASSERT_INT(ENOENT, err->sys_errno);
    ASSERT_MESSAGE(err, "open 'x': No such file or directory");
}

TEST(uverr_set_of_libuvs_own_codes_has_their_text)
{
    _cleanup_(agx_error_freep) struct agx_error *eof = NULL, *name = NULL;

    ASSERT_CODE(AGX_UNAVAILABLE, agx_uverr_set(&eof, UV_EOF, "read"));
    ASSERT_INT(0, eof->sys_errno);
    ASSERT_MESSAGE(eof, "read: end of file");
    ASSERT_CODE(AGX_NOT_FOUND, agx_uverr_set(&name, UV_EAI_NONAME, "resolve 'h'"));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_uverr_set(NULL, UV_EAI_SERVICE, "x"));
    ASSERT_CODE(AGX_UNKNOWN, agx_uverr_set(NULL, UV_UNKNOWN, "x"));
}

#include "loop/job.h"
#include "tests/support/loop.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

/* A job that waits for `gate`, if it has one, and then doubles its number. */
struct twice_job {
    struct agx_job job;
    int in, out;
    sem_t *gate;
    atomic_bool running, returned, asked;
    int n_done;
    enum agx_code code;
    pthread_t ran_on;
};

static int twice_run(struct agx_job *j, struct agx_error **err)
{
    struct twice_job *t = container_of(j, struct twice_job, job);

    t->running = true;
    t->ran_on = pthread_self();
    if (t->gate)
        while (sem_wait(t->gate) < 0)
            ;
    t->out = 2 * t->in;
    t->returned = true;
    if (t->in < 0)
        return agx_error_set(err, AGX_OUT_OF_RANGE, "%d is below zero", t->in);
    return t->asked ? -AGX_CANCELLED : 0;
}

static void twice_done(struct agx_job *j, struct agx_error *error)
{
    struct twice_job *t = container_of(j, struct twice_job, job);

    t->n_done++;
    t->code = error ? error->code : AGX_OK;
    agx_error_free(error);
}

static void twice_cancel(struct agx_job *j)
{
    struct twice_job *t = container_of(j, struct twice_job, job);

    t->asked = true;
    sem_post(t->gate);
}

static const struct agx_job_kind twice_kind = { "twice", twice_run, twice_done, twice_cancel };
static const struct agx_job_kind deaf_kind = { "deaf", twice_run, twice_done, NULL };

static struct agx_pool *open_pool(struct agx_loop *l, unsigned threads, size_t max_queued)
{
    const struct agx_pool_config c = { "test", threads, max_queued };
    struct agx_pool *p = NULL;

    ASSERT_OK(agx_pool_open(l, &c, &p, NULL));
    return p;
}

struct stopped {
    int n;
    struct agx_error *error;
};

static void on_stopped(void *user, struct agx_error *error)
{
    struct stopped *s = user;

    s->n++;
    s->error = error;
}

/* Stops the pool, runs the loop to its end and closes it. */
static void finish(struct agx_loop *l, struct agx_pool *p)
{
    struct stopped s = { 0 };

    agx_pool_stop(p, TEST_LOOP_HANG_MS, on_stopped, &s);
    test_loop_run(l);
    ASSERT_INT(1, s.n);
    ASSERT_NULL(s.error);
    test_loop_close(l);
}

static void wait_until(atomic_bool *flag)
{
    while (!*flag)
        sched_yield();
}

TEST(job_runs_on_another_thread_and_is_done_on_the_loop)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 3, 100);
    struct twice_job jobs[50];

    for (int i = 0; i < 50; i++) {
        jobs[i] = (struct twice_job){ .job.kind = &twice_kind, .in = i };
        ASSERT_OK(agx_job_start(&jobs[i].job, p, NULL));
        ASSERT_INT(0, jobs[i].n_done);
    }
    test_loop_run(l); /* ends by itself when all are done */
    for (int i = 0; i < 50; i++) {
        ASSERT_INT(1, jobs[i].n_done);
        ASSERT_INT(2 * i, jobs[i].out);
        ASSERT_FALSE(pthread_equal(pthread_self(), jobs[i].ran_on));
    }
    finish(l, p);
}

TEST(job_that_fails_is_done_with_its_error)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 1, 1);
    struct twice_job j = { .job.kind = &twice_kind, .in = -1 };

    ASSERT_OK(agx_job_start(&j.job, p, NULL));
    test_loop_run(l);
    ASSERT_INT(AGX_OUT_OF_RANGE, j.code);
    j.in = 4;
    ASSERT_OK(agx_job_start(&j.job, p, NULL)); /* a job may be used again */
    test_loop_run(l);
    ASSERT_INT(AGX_OK, j.code);
    ASSERT_INT(2, j.n_done);
    finish(l, p);
}

TEST(job_cancelled_before_its_turn_does_not_run)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 1, 10);
    sem_t gate;
    struct twice_job first = { .job.kind = &twice_kind, .in = 1, .gate = &gate };
    struct twice_job second = { .job.kind = &twice_kind, .in = 1 }, third = second, last = second;

    sem_init(&gate, 0, 0);
    ASSERT_OK(agx_job_start(&first.job, p, NULL));
    ASSERT_OK(agx_job_start(&second.job, p, NULL));
    ASSERT_OK(agx_job_start(&third.job, p, NULL));
    wait_until(&first.running);
    agx_job_cancel(&third.job); /* the tail, then the head: the queue stays whole */
    agx_job_cancel(&second.job);
    agx_job_cancel(&second.job);
    ASSERT_INT(0, second.n_done);
    ASSERT_OK(agx_job_start(&last.job, p, NULL));
    sem_post(&gate);
    test_loop_run(l);
    ASSERT_INT(1, second.n_done);
    ASSERT_INT(AGX_CANCELLED, second.code);
    ASSERT_FALSE(second.running);
    ASSERT_INT(AGX_CANCELLED, third.code);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(2, last.out);
    finish(l, p);
    sem_destroy(&gate);
}

TEST(job_cancelled_while_it_runs_is_asked_once_and_gives_its_own_result)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 1, 10);
    sem_t gate;
    struct twice_job j = { .job.kind = &twice_kind, .in = 1, .gate = &gate };
    int left = -1;

    sem_init(&gate, 0, 0);
    ASSERT_OK(agx_job_start(&j.job, p, NULL));
    wait_until(&j.running);
    agx_job_cancel(&j.job);
    agx_job_cancel(&j.job);
    test_loop_run(l);
    ASSERT_INT(1, j.n_done);
    ASSERT_INT(AGX_CANCELLED, j.code);
    sem_getvalue(&gate, &left);
    ASSERT_INT(0, left);
    agx_job_cancel(&j.job); /* ended: nothing happens */
    finish(l, p);
    sem_destroy(&gate);
}

TEST(pool_that_is_full_refuses_and_a_stuck_one_stops_no_other)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *stuck = open_pool(l, 1, 1), *other = open_pool(l, 1, 1);
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    sem_t gate;
    struct twice_job a = { .job.kind = &deaf_kind, .gate = &gate }, b = a, c = a;
    struct twice_job free_one = { .job.kind = &twice_kind, .in = 3 };
    struct stopped s = { 0 };

    sem_init(&gate, 0, 0);
    ASSERT_OK(agx_job_start(&a.job, stuck, NULL));
    wait_until(&a.running);
    ASSERT_OK(agx_job_start(&b.job, stuck, NULL));
    ASSERT_CODE(AGX_RESOURCE_EXHAUSTED, agx_job_start(&c.job, stuck, &err));
    ASSERT_MESSAGE(err, "pool 'test' is full");
    ASSERT_OK(agx_job_start(&free_one.job, other, NULL));
    while (free_one.n_done == 0)
        (void)uv_run(agx_loop_uv(l), UV_RUN_ONCE);
    ASSERT_FALSE(a.returned);
    ASSERT_INT(0, c.n_done);
    sem_post(&gate);
    sem_post(&gate);
    agx_pool_stop(other, TEST_LOOP_HANG_MS, on_stopped, &s);
    finish(l, stuck);
    ASSERT_INT(1, s.n);
    sem_destroy(&gate);
}

TEST(pool_stop_cancels_what_waits_and_asks_what_runs)
{
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 2, 10);
    sem_t gates[2];
    struct twice_job running[2], waiting[3], late = { .job.kind = &twice_kind };
    struct stopped s = { 0 };

    for (int i = 0; i < 2; i++) {
        sem_init(&gates[i], 0, 0);
        running[i] = (struct twice_job){ .job.kind = &twice_kind, .gate = &gates[i] };
        ASSERT_OK(agx_job_start(&running[i].job, p, NULL));
        wait_until(&running[i].running);
    }
    for (int i = 0; i < 3; i++) {
        waiting[i] = (struct twice_job){ .job.kind = &twice_kind };
        ASSERT_OK(agx_job_start(&waiting[i].job, p, NULL));
    }
    agx_pool_stop(p, TEST_LOOP_HANG_MS, on_stopped, &s);
    ASSERT_CODE(AGX_UNAVAILABLE, agx_job_start(&late.job, p, NULL));
    ASSERT_INT(0, s.n);
    test_loop_run(l);
    ASSERT_INT(1, s.n);
    ASSERT_NULL(s.error);
    for (int i = 0; i < 2; i++)
        ASSERT_TRUE(running[i].n_done == 1 && running[i].asked);
    for (int i = 0; i < 3; i++)
        ASSERT_TRUE(waiting[i].n_done == 1 && waiting[i].code == AGX_CANCELLED);
    test_loop_close(l);
}

TEST(pool_stop_gives_up_jobs_that_do_not_end_and_names_them)
{
    static sem_t gate; /* static, as the job is: its thread outlives the loop */
    static struct twice_job deaf;
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 1, 10); /* one thread: the second job does wait */
    struct twice_job waiting = { .job.kind = &twice_kind };
    struct stopped s = { 0 };

    sem_init(&gate, 0, 0);
    deaf = (struct twice_job){ .job.kind = &deaf_kind, .gate = &gate };
    ASSERT_OK(agx_job_start(&deaf.job, p, NULL));
    wait_until(&deaf.running);
    ASSERT_OK(agx_job_start(&waiting.job, p, NULL));
    agx_pool_stop(p, 20, on_stopped, &s);
    test_loop_run(l);
    ASSERT_INT(1, s.n);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, s.error->code);
    ASSERT_MESSAGE(s.error, "stop pool 'test': 1 jobs did not end: 'deaf'");
    ASSERT_INT(1, waiting.n_done);
    ASSERT_INT(AGX_CANCELLED, waiting.code);
    ASSERT_INT(0, deaf.n_done);
    agx_error_free(s.error);
    test_loop_close(l);
    sem_post(&gate); /* the thread comes back after all: it finds its pool's memory */
    wait_until(&deaf.returned);
}

static void free_done(struct agx_job *j, struct agx_error *error)
{
    struct twice_job *t = container_of(j, struct twice_job, job);

    agx_error_free(error);
    free(t);
}

TEST(job_may_free_itself_when_done)
{
    static const struct agx_job_kind kind = { "free", twice_run, free_done, NULL };
    struct agx_loop *l = test_loop_open();
    struct agx_pool *p = open_pool(l, 2, 100);

    for (int i = 0; i < 100; i++) {
        struct twice_job *t = calloc(1, sizeof(*t));

        t->job.kind = &kind;
        if (agx_job_start(&t->job, p, NULL) < 0)
            free(t);
    }
    finish(l, p);
}

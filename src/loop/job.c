/*
 * job.c: pools of threads that run jobs.
 *
 *   IDLE --start--> QUEUED --a thread--> RUNNING --returns--> FINISHED --done--> IDLE
 *                     |                                          ^
 *                     +-- cancel, stop --------------------------+
 *
 * Invariants:
 *  (1) the fields below `lock` in struct agx_pool, and a job's state and error, are accessed under
 *      that lock; everything else only by the loop thread.
 *  (2) `done` runs on the loop thread, so a job that the loop thread sees is not freed meanwhile.
 *  (3) threads send to `wake` under the lock and only while the pool is not `abandoned`; the loop
 *      closes it when no thread is left, or after setting `abandoned`.
 *  (4) `refs` counts the loop side and each thread, so a thread that returns after the pool was
 *      given up still finds the pool's memory.
 */
#include "loop/job.h"

#include "loop/uverr.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/banned.h"

struct worker {
    struct agx_pool *pool;
    pthread_t thread;
    struct agx_job *running; /* under the pool's lock */
};

struct agx_pool {
    struct agx_loop *loop;
    char name[16];
    uv_async_t wake;
    uv_timer_t deadline;
    unsigned n_handles; /* handles not closed yet */
    size_t in_flight;   /* started jobs without `done` yet */
    bool stopping;
    bool ended; /* the handles are being closed */
    agx_done_fn stopped;
    void *user;
    struct agx_error *stop_error;
    size_t max_queued;
    unsigned n_threads;

    pthread_mutex_t lock;
    pthread_cond_t work;             /* the queue has grown, or `quit` */
    struct agx_list queue, finished; /* of struct agx_job */
    size_t n_queued;
    bool quit, abandoned;
    unsigned refs;
    struct worker workers[];
};

static void pool_unref(struct agx_pool *p)
{
    bool last;

    pthread_mutex_lock(&p->lock);
    last = --p->refs == 0;
    pthread_mutex_unlock(&p->lock);
    if (!last)
        return;
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Under the lock. */
static void finish_job(struct agx_pool *p, struct agx_job *j)
{
    j->state = AGX_JOB_FINISHED;
    agx_list_push_back(&p->finished, &j->node);
    (void)uv_async_send(&p->wake);
}

/* Under the lock, which is released while the job runs. */
static void run_job(struct agx_pool *p, struct worker *w, struct agx_job *j)
{
    struct agx_error *error = NULL;
    int r;

    j->state = AGX_JOB_RUNNING;
    w->running = j;
    pthread_mutex_unlock(&p->lock);
    r = j->kind->run(j, &error);
    if (r < 0 && !error)
        (void)agx_error_set(&error, (enum agx_code)(-r), "job '%s' failed", j->kind->name);
    pthread_mutex_lock(&p->lock);
    w->running = NULL;
    if (p->abandoned) {
        agx_error_free(error);
        return;
    }
    j->error = error;
    finish_job(p, j);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    struct agx_pool *p = w->pool;
    struct agx_job *j;

    (void)pthread_setname_np(pthread_self(), p->name);
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (agx_list_is_empty(&p->queue) && !p->quit)
            pthread_cond_wait(&p->work, &p->lock);
        j = AGX_LIST_TAKE(&p->queue, struct agx_job, node);
        if (!j)
            break;
        p->n_queued--;
        run_job(p, w, j);
    }
    pthread_mutex_unlock(&p->lock);
    pool_unref(p);
    return NULL;
}

/* A busy pool keeps the loop running; an idle one does not. */
static void update_ref(struct agx_pool *p)
{
    if (p->in_flight > 0 || p->stopping)
        uv_ref((uv_handle_t *)&p->wake);
    else
        uv_unref((uv_handle_t *)&p->wake);
}

static void handle_closed(struct agx_pool *p)
{
    if (--p->n_handles > 0)
        return;
    if (p->stopped)
        p->stopped(p->user, AGX_TAKE_PTR(p->stop_error));
    pool_unref(p);
}

static void on_wake_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_pool, wake));
}

static void on_deadline_closed(uv_handle_t *h)
{
    handle_closed(container_of(h, struct agx_pool, deadline));
}

static void end_pool(struct agx_pool *p)
{
    p->ended = true;
    uv_close((uv_handle_t *)&p->wake, on_wake_closed);
    uv_close((uv_handle_t *)&p->deadline, on_deadline_closed);
}

/* Calls `done` of the finished jobs. */
static void job_deliver(struct agx_pool *p)
{
    struct agx_list finished = { 0 };
    struct agx_job *j;

    pthread_mutex_lock(&p->lock);
    agx_list_move(&finished, &p->finished);
    pthread_mutex_unlock(&p->lock);
    while ((j = AGX_LIST_TAKE(&finished, struct agx_job, node))) {
        struct agx_error *error = AGX_TAKE_PTR(j->error);

        j->state = AGX_JOB_IDLE;
        j->pool = NULL;
        p->in_flight--;
        update_ref(p);
        j->kind->done(j, error);
    }
}

static unsigned count_running(struct agx_pool *p)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_threads; i++)
        n += p->workers[i].running != NULL;
    return n;
}

static void quit_threads(struct agx_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void join_threads(struct agx_pool *p)
{
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->workers[i].thread, NULL); /* short: they only have to notice `quit` */
}

static void on_wake(uv_async_t *wake)
{
    struct agx_pool *p = container_of(wake, struct agx_pool, wake);
    bool idle;

    job_deliver(p);
    if (!p->stopping || p->ended)
        return;
    pthread_mutex_lock(&p->lock);
    idle = count_running(p) == 0 && agx_list_is_empty(&p->finished);
    pthread_mutex_unlock(&p->lock);
    if (!idle)
        return;
    join_threads(p);
    end_pool(p);
}

/* Under the lock: makes the error that names the stuck jobs. */
static void describe_stuck(struct agx_pool *p, struct agx_error **err)
{
    char names[200] = "";
    size_t used = 0;

    for (unsigned i = 0; i < p->n_threads && used < sizeof(names); i++) {
        const struct agx_job *j = p->workers[i].running;

        if (j)
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s'%s'", used ? ", " : "",
                                     j->kind->name);
    }
    (void)agx_error_set(err, AGX_DEADLINE_EXCEEDED, "stop pool '%s': %u jobs did not end: %s",
                        p->name, count_running(p), names);
}

static void on_deadline(uv_timer_t *timer)
{
    struct agx_pool *p = container_of(timer, struct agx_pool, deadline);
    bool stuck;

    pthread_mutex_lock(&p->lock);
    stuck = count_running(p) > 0;
    if (stuck) {
        p->abandoned = true;
        describe_stuck(p, &p->stop_error);
        for (unsigned i = 0; i < p->n_threads; i++)
            pthread_detach(p->workers[i].thread);
    }
    pthread_mutex_unlock(&p->lock);
    job_deliver(p);
    if (!stuck)
        join_threads(p);
    end_pool(p);
}

/* Starts the threads with all signals blocked: the loop thread handles signals. */
static int start_threads(struct agx_pool *p, unsigned n)
{
    sigset_t all, old;
    int r = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (p->n_threads < n) {
        struct worker *w = &p->workers[p->n_threads];

        w->pool = p;
        r = pthread_create(&w->thread, NULL, thread_main, w);
        if (r != 0)
            break;
        p->n_threads++;
        pthread_mutex_lock(&p->lock);
        p->refs++; /* not too late: it drops its reference only after `quit` */
        pthread_mutex_unlock(&p->lock);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

int agx_pool_open(struct agx_loop *l, const struct agx_pool_config *c, struct agx_pool **ret_pool,
                  struct agx_error **err)
{
    struct agx_pool *p = calloc(1, sizeof(*p) + c->threads * sizeof(p->workers[0]));
    int r;

    agx_loop_assert(l);
    assert(c->threads > 0 && c->max_queued > 0);
    if (!p)
        return agx_error_errno(err, ENOMEM, "open pool '%s'", c->name);
    r = uv_async_init(agx_loop_uv(l), &p->wake, on_wake);
    if (r < 0) {
        free(p);
        return agx_uverr_set(err, r, "open pool '%s'", c->name);
    }
    (void)uv_timer_init(agx_loop_uv(l), &p->deadline);
    p->n_handles = 2;
    p->loop = l;
    p->refs = 1;
    p->max_queued = c->max_queued;
    (void)snprintf(p->name, sizeof(p->name), "%s", c->name);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    update_ref(p);
    r = start_threads(p, c->threads);
    if (r != 0) {
        quit_threads(p);
        join_threads(p);
        end_pool(p);
        return agx_error_errno(err, r, "start the threads of pool '%s'", c->name);
    }
    *ret_pool = p;
    return 0;
}

/* Under the lock: it will not run. */
static void drop_queued(struct agx_pool *p, struct agx_job *j)
{
    agx_list_remove(&j->node);
    p->n_queued--;
    (void)agx_error_set(&j->error, AGX_CANCELLED, "job '%s' was cancelled before its turn",
                        j->kind->name);
    finish_job(p, j);
}

void agx_pool_stop(struct agx_pool *p, uint64_t deadline_ms, agx_done_fn stopped, void *user)
{
    struct agx_job *j;

    agx_loop_assert(p->loop);
    assert(!p->stopping);
    p->stopping = true;
    p->stopped = stopped;
    p->user = user;
    update_ref(p);
    (void)uv_timer_start(&p->deadline, on_deadline, deadline_ms, 0);
    pthread_mutex_lock(&p->lock);
    while ((j = AGX_LIST_FIRST(&p->queue, struct agx_job, node)))
        drop_queued(p, j);
    (void)uv_async_send(&p->wake);
    pthread_mutex_unlock(&p->lock);
    quit_threads(p);
    for (unsigned i = 0; i < p->n_threads; i++) {
        pthread_mutex_lock(&p->lock);
        j = p->workers[i].running;
        pthread_mutex_unlock(&p->lock);
        if (j)
            agx_job_cancel(j); /* may have finished: it still exists, by invariant 2 */
    }
}

int agx_job_start(struct agx_job *j, struct agx_pool *p, struct agx_error **err)
{
    bool full;

    agx_loop_assert(p->loop);
    assert(j->state == AGX_JOB_IDLE && !j->pool);
    if (p->stopping)
        return agx_error_set(err, AGX_UNAVAILABLE, "pool '%s' is stopping", p->name);
    pthread_mutex_lock(&p->lock);
    full = p->n_queued >= p->max_queued;
    if (!full) {
        j->pool = p;
        j->state = AGX_JOB_QUEUED;
        j->cancelled = false;
        agx_list_push_back(&p->queue, &j->node);
        p->n_queued++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (full)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "pool '%s' is full: %zu jobs wait",
                             p->name, p->max_queued);
    p->in_flight++;
    update_ref(p);
    return 0;
}

void agx_job_cancel(struct agx_job *j)
{
    struct agx_pool *p = j->pool;
    bool running;

    if (!p)
        return;
    agx_loop_assert(p->loop);
    pthread_mutex_lock(&p->lock);
    running = j->state == AGX_JOB_RUNNING;
    if (j->state == AGX_JOB_QUEUED)
        drop_queued(p, j);
    pthread_mutex_unlock(&p->lock);
    if (!running || j->cancelled)
        return;
    j->cancelled = true;
    if (j->kind->cancel)
        j->kind->cancel(j);
}

/*
 * fnpool.c: a row of calls, and threads that come and go with its length.
 *
 * Threads grow in a chain: one more is started only when the last one has arrived and calls still
 * wait for which no thread is idle. So calls that block soon have a thread each, while a burst of
 * short ones is done by a few.
 */
#include "worker/fnpool.h"

#include "base/clock.h"
#include "base/mem.h"
#include "worker/fncall_internal.h"

#include <pthread.h>
#include <time.h>

#include "base/banned.h"

struct agx_fnpool {
    struct agx_fnlib *lib;
    pthread_mutex_t lock; /* guards all below, and the rows of serial functions */
    pthread_cond_t work;  /* a call waits, or stop */
    pthread_cond_t gone;  /* a thread has ended */
    struct agx_list row;  /* of struct agx_fncall */
    unsigned queued, threads, idle, starting, max;
    bool stop;
};

struct agx_fnpool *agx_fnpool_new(struct agx_fnlib *lib, unsigned max_threads)
{
    struct agx_fnpool *p = agx_new(struct agx_fnpool);
    pthread_condattr_t attr;

    p->lib = lib;
    p->max = max_threads;
    if (pthread_mutex_init(&p->lock, NULL) != 0 || pthread_condattr_init(&attr) != 0 ||
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) != 0 ||
        pthread_cond_init(&p->work, &attr) != 0 || pthread_cond_init(&p->gone, &attr) != 0)
        abort();
    (void)pthread_condattr_destroy(&attr);
    return p;
}

/* A serial function takes one call at a time. False: this one stands in its row now. */
static bool enter_serial(struct agx_fnpool *p, struct agx_fn *fn, struct agx_fncall *call)
{
    bool entered;

    (void)pthread_mutex_lock(&p->lock);
    entered = !fn->busy;
    if (fn->busy)
        agx_list_push_back(&fn->waiting, &call->node);
    fn->busy = true;
    (void)pthread_mutex_unlock(&p->lock);
    return entered;
}

/* The next call of a serial function, which then stays busy. */
static struct agx_fncall *leave_serial(struct agx_fnpool *p, struct agx_fn *fn)
{
    struct agx_fncall *next;

    (void)pthread_mutex_lock(&p->lock);
    next = AGX_LIST_TAKE(&fn->waiting, struct agx_fncall, node);
    fn->busy = next != NULL;
    (void)pthread_mutex_unlock(&p->lock);
    return next;
}

/* Runs a call, and after a serial one those that stood behind it. */
static void run_call(struct agx_fnpool *p, struct agx_fncall *call)
{
    struct agx_fn *fn;
    bool serial;

    if (agx_fncall_resolve(call, p->lib, &fn) < 0) {
        (void)agx_fncall_unref(call);
        return;
    }
    serial = (fn->def->flags & AGX_FUNCTION_SERIAL) != 0;
    if (serial && !enter_serial(p, fn, call))
        return;
    while (call) {
        agx_fncall_run(call, fn);
        (void)agx_fncall_unref(call);
        call = serial ? leave_serial(p, fn) : NULL;
    }
}

static int fnpool_grow(struct agx_fnpool *p);

/* Under the lock: waits for a call. NULL: this thread is not needed any more. */
static struct agx_fncall *wait_for_call(struct agx_fnpool *p)
{
    uint64_t until = agx_clock_ms() + AGX_FN_THREAD_IDLE_MS;
    struct timespec ts = { .tv_sec = (time_t)(until / 1000),
                           .tv_nsec = (long)(until % 1000) * 1000000 };
    int r = 0;

    p->idle++;
    while (agx_list_is_empty(&p->row) && !p->stop && r == 0)
        r = pthread_cond_timedwait(&p->work, &p->lock, &ts);
    p->idle--;
    if (!agx_list_is_empty(&p->row))
        p->queued--;
    return AGX_LIST_TAKE(&p->row, struct agx_fncall, node);
}

static void *thread_main(void *arg)
{
    struct agx_fnpool *p = arg;
    struct agx_fncall *call;

    (void)pthread_mutex_lock(&p->lock);
    p->starting--;
    while ((call = wait_for_call(p))) {
        (void)fnpool_grow(p); /* without another thread the others wait for this one */
        (void)pthread_mutex_unlock(&p->lock);
        run_call(p, call);
        (void)pthread_mutex_lock(&p->lock);
    }
    p->threads--;
    (void)pthread_cond_signal(&p->gone);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Under the lock: one more thread where one is needed. 0, or an errno. */
static int fnpool_grow(struct agx_fnpool *p)
{
    pthread_attr_t attr;
    pthread_t thread;
    int e;

    if (p->queued <= p->idle || p->starting > 0 || p->threads >= p->max)
        return 0;
    e = pthread_attr_init(&attr);
    if (e != 0)
        return e;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    e = pthread_create(&thread, &attr, thread_main, p);
    (void)pthread_attr_destroy(&attr);
    if (e == 0) {
        p->threads++;
        p->starting++;
    }
    return e;
}

int agx_fnpool_start(struct agx_fnpool *p, struct agx_fncall *take_call, struct agx_error **err)
{
    int e;

    (void)pthread_mutex_lock(&p->lock);
    p->queued++;
    e = fnpool_grow(p);
    if (p->threads > 0) {
        e = 0; /* those that there are will come to it */
        agx_list_push_back(&p->row, &take_call->node);
        (void)pthread_cond_signal(&p->work);
    } else {
        p->queued--;
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (e != 0)
        return agx_error_errno(err, e, "start a thread for the call");
    return 0;
}

struct agx_fnpool *agx_fnpool_free(struct agx_fnpool *p)
{
    if (!p)
        return NULL;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_broadcast(&p->work);
    while (p->threads > 0)
        (void)pthread_cond_wait(&p->gone, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_cond_destroy(&p->gone);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

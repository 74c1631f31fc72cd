/*
 * py_worker_pool.c: the threads that run plain functions.
 *
 * One thread is the leader: it reads the thread lane and runs each function itself, from frame to
 * answer without a hand-over. While it runs a function, no thread reads. If a call takes a
 * millisecond, the watchdog makes another thread the leader; the old one becomes a follower when
 * its function returns.
 *
 *      LEAD --in one call for too long--> FOLLOW --backlog--> RUN --> FOLLOW
 *        ^                                  |
 *        +---------- promoted --------------+--idle for long--> gone
 *
 * Calls from the loop lane, and calls that come while the maximum number of functions run, wait in
 * the backlog for any thread. One thread more than the limit may exist: it only reads, so that
 * blocking functions never delay frames of other kinds.
 *
 * Invariants:
 *  (1) at most one leader, and only it touches the lane's input buffer;
 *  (2) no pointer into that buffer is left when the leader marks itself busy, because another
 *      thread may use the buffer from then on;
 *  (3) `busy` belongs to the current leader.
 */
#include "pyext/py_worker.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/banned.h"

enum { IDLE_SECONDS = 10, KEEP_THREADS = 4, QUIET_TICKS = 50 };

struct thread {
    struct worker *w;
    struct agx_list_node node; /* in the list of idle threads */
    pthread_cond_t cond;
    bool woken; /* it was removed from the list */
};

static void *thread_main(void *arg);
static void *watchdog_main(void *arg);

static bool is_leader(struct worker *w, const struct thread *t)
{
    bool is;

    pthread_mutex_lock(&w->pool.mutex);
    is = w->pool.leader == t;
    pthread_mutex_unlock(&w->pool.mutex);
    return is;
}

/* After an answer: writes now, unless the leader has more calls whose answers can go along. */
static void flush_after_call(struct worker *w, const struct thread *t)
{
    struct agx_str frame;

    if (is_leader(w, t) && agx_inbuf_peek(&w->lanes[AGX_LANE_THREAD].in, &frame, NULL) > 0 &&
        agx_clock_us() - w->thread_out.since_us < AGX_WORKER_FLUSH_US)
        return;
    pyworker_pool_flush(w);
}

/* ---- threads and their roles; the mutex is held where a function's name ends in _locked ---- */

static bool spawn_locked(struct worker *w, struct thread **ret_thread)
{
    struct thread *t = calloc(1, sizeof(*t));
    pthread_attr_t attr;
    pthread_t id;
    bool ok;

    if (!t)
        return false;
    t->w = w;
    (void)pthread_cond_init(&t->cond, NULL);
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    ok = pthread_create(&id, &attr, thread_main, t) == 0;
    (void)pthread_attr_destroy(&attr);
    if (!ok) {
        (void)pthread_cond_destroy(&t->cond);
        free(t);
        return false;
    }
    w->pool.n_threads++;
    *ret_thread = t;
    return true;
}

/* Wakes an idle thread, or starts a new one; NULL if the limit is reached. */
static struct thread *recruit_locked(struct worker *w)
{
    struct pool *p = &w->pool;
    struct thread *t = AGX_LIST_TAKE(&p->idle, struct thread, node);

    if (t) {
        t->woken = true;
        (void)pthread_cond_signal(&t->cond);
        return t;
    }
    if (p->n_threads > p->max || !spawn_locked(w, &t))
        return NULL;
    return t;
}

void pyworker_pool_submit(struct worker *w, struct call *take_call)
{
    struct pool *p = &w->pool;

    pthread_mutex_lock(&p->mutex);
    agx_list_push_back(&p->backlog, &take_call->node);
    if (p->running < p->max)
        (void)recruit_locked(w);
    pthread_mutex_unlock(&p->mutex);
}

/* A waiting call, if one more may run. Owned. */
static struct call *take_backlog_locked(struct pool *p)
{
    struct call *c = p->running < p->max ? AGX_LIST_TAKE(&p->backlog, struct call, node) : NULL;

    if (c)
        p->running++;
    return c;
}

/* Waits on the list of idle threads; holds the mutex, releases the GIL. False: idle for long. */
static bool idle_locked(struct pool *p, struct thread *t)
{
    struct timespec until;
    PyThreadState *state;
    bool woken;
    int r = 0;

    t->woken = false;
    agx_list_push_front(&p->idle, &t->node);
    state = PyEval_SaveThread();
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    while (!t->woken && r == 0)
        r = pthread_cond_timedwait(&t->cond, &p->mutex, &until);
    woken = t->woken;
    agx_list_remove(&t->node);
    pthread_mutex_unlock(&p->mutex);
    PyEval_RestoreThread(state);
    pthread_mutex_lock(&p->mutex);
    return woken;
}

enum role { ROLE_LEAD, ROLE_RUN, ROLE_GONE };

/* The next role of this thread; *ret_call (owned) for ROLE_RUN. The GIL is held. */
static enum role next_role(struct worker *w, struct thread *t, struct call **ret_call)
{
    struct pool *p = &w->pool;
    enum role role;

    pthread_mutex_lock(&p->mutex);
    for (;;) {
        if (p->leader == t || (!p->leader && !w->lanes[AGX_LANE_THREAD].eof)) {
            p->leader = t;
            p->busy = 0;
            role = ROLE_LEAD;
            break;
        }
        *ret_call = take_backlog_locked(p);
        if (*ret_call) {
            role = ROLE_RUN;
            break;
        }
        if (!idle_locked(p, t) && p->n_threads > KEEP_THREADS && agx_list_is_empty(&p->backlog) &&
            p->leader != t) {
            p->n_threads--;
            role = ROLE_GONE;
            break;
        }
    }
    pthread_mutex_unlock(&p->mutex);
    return role;
}

/* ---- the watchdog ---- */

/* The leader enters a function: from now on it may be replaced. False: too many run already. */
static bool enter_call(struct worker *w)
{
    struct pool *p = &w->pool;
    bool may;

    pthread_mutex_lock(&p->mutex);
    may = p->running < p->max;
    if (may) {
        p->running++;
        p->busy = ++p->started;
        if (!p->watching) {
            p->watching = true;
            (void)pthread_cond_signal(&p->watch);
        }
    }
    pthread_mutex_unlock(&p->mutex);
    return may;
}

static void leave_call(struct worker *w, const struct thread *t)
{
    struct pool *p = &w->pool;

    pthread_mutex_lock(&p->mutex);
    p->running--;
    if (p->leader == t)
        p->busy = 0;
    if (!agx_list_is_empty(
            &p->backlog)) /* it waited because too many ran; the leader continues to read */
        (void)recruit_locked(w);
    pthread_mutex_unlock(&p->mutex);
}

/* The leader is stuck: another takes the lane. If there is none, nothing changes until one ends. */
static void promote_locked(struct worker *w)
{
    struct thread *t = recruit_locked(w);

    if (t) {
        w->pool.leader = t;
        w->pool.busy = 0;
    }
}

/* Needs no GIL: it reads only numbers. Sleeps without a timeout while no calls come. */
static void *watchdog_main(void *arg)
{
    static const struct timespec tick = { .tv_nsec = AGX_WORKER_SLOW_US * 1000 };
    struct worker *w = arg;
    struct pool *p = &w->pool;
    unsigned quiet = 0;

    pthread_mutex_lock(&p->mutex);
    for (;;) {
        uint64_t seen = p->busy, started = p->started;

        while (!p->watching)
            (void)pthread_cond_wait(&p->watch, &p->mutex);
        pthread_mutex_unlock(&p->mutex);
        (void)nanosleep(&tick, NULL);
        pthread_mutex_lock(&p->mutex);
        if (seen > 0 && p->busy == seen)
            promote_locked(w);
        quiet = p->started == started && p->busy == 0 ? quiet + 1 : 0;
        if (quiet > QUIET_TICKS) {
            quiet = 0;
            p->watching = false;
        }
    }
    return NULL;
}

/* ---- calls that wait ---- */

static void run_backlog(struct worker *w, struct thread *t, struct call *take_call)
{
    _cleanup_py_ PyObject *args = NULL, *kwargs = NULL;
    struct call *c = take_call;
    struct agx_worker_frame f;

    if (agx_worker_frame_parse(agx_str_bytes(c->frame, c->frame_len), &f, NULL) == 0) {
        args = pyworker_call_args(w, &f);
        kwargs = args ? pyworker_call_kwargs(w, &f) : NULL;
    }
    if (kwargs)
        pyworker_call_run(c, args, kwargs);
    else
        pyworker_call_fail(c, PHASE_BIND, true);
    Py_DECREF((PyObject *)c);
    leave_call(w, t);
    pyworker_pool_flush(w);
}

/* ---- leading ---- */

/* Was this call cancelled before it was read? Drops older ids: they never come by this lane. */
static bool was_cancelled(struct worker *w, uint64_t id)
{
    unsigned kept = 0;
    bool found = false;

    for (unsigned i = 0; i < w->n_early; i++) {
        found = found || w->early[i] == id;
        if (w->early[i] > id)
            w->early[kept++] = w->early[i];
    }
    w->n_early = kept;
    return found;
}

/* A plan that this thread may use: cached, or known to need no import. New or NULL. */
static struct plan *plan_here(struct worker *w, const struct agx_worker_frame *f)
{
    _cleanup_py_ PyObject *key = pyworker_plan_key(f);
    struct plan *p = NULL;
    bool known = false;

    if (key)
        p = pyworker_find_plan(w, key, &known);
    if (p)
        return (struct plan *)Py_NewRef((PyObject *)p);
    if (known)
        p = pyworker_load_plan(w, key, f->by_target);
    PyErr_Clear(); /* the main thread will try again, and report the error */
    return p;
}

/* The leader runs the call itself. The function runs after the last use of the frame. */
static void lead_call(struct worker *w, struct thread *t, struct call *c,
                      const struct agx_worker_frame *f, struct agx_str frame)
{
    _cleanup_py_ PyObject *args = pyworker_call_args(w, f), *kwargs = NULL;

    kwargs = args ? pyworker_call_kwargs(w, f) : NULL;
    if (!kwargs) {
        pyworker_call_fail(c, PHASE_BIND, true);
    } else if (enter_call(w)) {
        pyworker_call_run(c, args, kwargs);
        leave_call(w, t);
    } else if (pyworker_call_keep_frame(c, frame) == 0) {
        pyworker_pool_submit(w, (struct call *)Py_NewRef((PyObject *)c));
        return;
    } else {
        pyworker_call_fail(c, PHASE_LOAD, true);
    }
    flush_after_call(w, t);
}

static void on_thread_call(struct worker *w, struct thread *t, const struct agx_worker_frame *f,
                           struct agx_str frame)
{
    struct call *c = f->id > 0 ? pyworker_call_new(w, f) : NULL;

    PyErr_Clear();
    if (!c)
        return;
    w->thread_last_id = AGX_MAX(w->thread_last_id, f->id);
    if (w->n_early > 0 && was_cancelled(w, f->id)) {
        pyworker_call_cancelled(c, true);
    } else if (f->bad) {
        pyworker_call_fail_text(c, "BadFrame", f->bad, false, true);
    } else {
        c->plan = plan_here(w, f);
        if (!c->plan || c->plan->mode != PLAN_THREAD)
            pyworker_note(w, (struct call *)Py_NewRef((PyObject *)c), NULL, frame);
        else if (pyworker_check_shape(c, f, true))
            lead_call(w, t, c, f, frame);
    }
    Py_DECREF((PyObject *)c);
}

static void on_thread_frame(struct worker *w, struct thread *t, struct agx_str frame)
{
    struct agx_worker_frame f;

    if (agx_worker_frame_parse(frame, &f, NULL) < 0)
        w->lanes[AGX_LANE_THREAD].eof = true;
    else if (f.type == AGX_WF_CALL && pyworker_cfn_frame(w, AGX_LANE_THREAD, &f))
        w->thread_last_id = AGX_MAX(w->thread_last_id, f.id);
    else if (f.type == AGX_WF_CALL)
        on_thread_call(w, t, &f, frame);
    else if (f.type != AGX_WF_UNKNOWN)
        pyworker_note(w, NULL, NULL, frame); /* for a call that runs on the loop */
}

/* Waits for bytes, without the GIL. */
static void read_lane(struct worker *w, struct lane *lane)
{
    uint8_t *at;
    size_t room;
    ssize_t n;

    pyworker_pool_flush(w);
    if (agx_inbuf_room(&lane->in, &at, &room, NULL) < 0) {
        lane->eof = true;
        return;
    }
    Py_BEGIN_ALLOW_THREADS;
    n = recv(lane->fd, at, room, 0);
    if (n < 0 && errno == EAGAIN) {
        struct pollfd wait = { .fd = lane->fd, .events = POLLIN };

        (void)poll(&wait, 1, -1);
        errno = EINTR;
    }
    Py_END_ALLOW_THREADS;
    if (n > 0)
        agx_inbuf_read(&lane->in, (size_t)n);
    else if (n == 0 || errno != EINTR)
        lane->eof = true;
}

/* The server is gone, or sent garbage. The worker ends as if the other lane had ended. */
static void end_of_thread_lane(struct worker *w)
{
    pthread_mutex_lock(&w->pool.mutex);
    w->pool.leader = NULL;
    pthread_mutex_unlock(&w->pool.mutex);
    pyworker_pool_flush(w);
    w->lanes[AGX_LANE_LOOP].eof = true;
    pyworker_wake(w);
}

static void lead(struct worker *w, struct thread *t)
{
    struct lane *lane = &w->lanes[AGX_LANE_THREAD];

    while (is_leader(w, t)) {
        struct agx_str frame;
        int r = agx_inbuf_peek(&lane->in, &frame, NULL);

        if (r < 0)
            lane->eof = true;
        if (lane->eof) {
            end_of_thread_lane(w);
            return;
        }
        if (r > 0) {
            agx_inbuf_used(&lane->in);
            on_thread_frame(w, t, frame);
        } else {
            read_lane(w, lane);
        }
    }
}

static void *thread_main(void *arg)
{
    struct thread *t = arg;
    struct worker *w = t->w;
    PyGILState_STATE state = PyGILState_Ensure();
    struct call *call = NULL;
    enum role role;

    while ((role = next_role(w, t, &call)) != ROLE_GONE) {
        if (role == ROLE_LEAD)
            lead(w, t);
        else
            run_backlog(w, t, call);
    }
    PyGILState_Release(state);
    (void)pthread_cond_destroy(&t->cond);
    free(t);
    return NULL;
}

int pyworker_pool_start(struct worker *w)
{
    struct pool *p = &w->pool;
    struct thread *first;
    pthread_t id;
    bool ok;

    pthread_mutex_lock(&p->mutex);
    ok = spawn_locked(w, &first) && pthread_create(&id, NULL, watchdog_main, w) == 0;
    pthread_mutex_unlock(&p->mutex);
    if (ok && pthread_detach(id) == 0)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "cannot start a thread");
    return -1;
}

/*
 * py_worker_loop.c: the main thread: frames of the loop lane, notes from pool threads, output.
 *
 * A frame is taken off the buffer before user code runs for it, and no pointer into the buffer is
 * left by then: user code may come back here through a nested loop.
 */
#include "pyext/py_worker.h"

#include "pyext/py_error.h"

#include "base/limits.h"
#include "codec/frame.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/banned.h"

/* The result of handling a frame. */
enum verdict { HANDLED, NEED_LOOP, FAILED };

bool pyworker_check_shape(struct call *c, const struct agx_worker_frame *f, bool on_thread)
{
    static const char *const not_a[] = {
        [AGX_REMOTE_UNARY] = "NotAUnaryCallable",
        [AGX_REMOTE_STREAM] = "NotAStreamFunction",
        [AGX_REMOTE_BIDI] = "NotABidiFunction",
    };
    enum agx_remote_kind is = c->plan->mode == PLAN_STREAM ? AGX_REMOTE_STREAM
                              : c->plan->mode == PLAN_BIDI ? AGX_REMOTE_BIDI
                                                           : AGX_REMOTE_UNARY;
    struct agx_str name = f->display_name.len > 0 ? f->display_name
                          : f->by_target          ? f->callable
                                                  : AGX_STR("the callable");
    char text[512];

    name.len = AGX_MIN(name.len, (size_t)300);
    if (f->shape != f->kind) {
        (void)snprintf(text, sizeof(text), "%.*s was called as %s, but sent with the shape %s",
                       AGX_STR_ARG(name), agx_remote_kind_name(f->kind).ptr,
                       agx_remote_kind_name(f->shape).ptr);
        pyworker_call_fail_text(c, not_a[f->kind], text, false, on_thread);
        return false;
    }
    if (is != f->shape) {
        (void)snprintf(text, sizeof(text), "%.*s is %s, but was called as %s", AGX_STR_ARG(name),
                       agx_remote_kind_name(is).ptr, agx_remote_kind_name(f->shape).ptr);
        pyworker_call_fail_text(c, "ShapeMismatch", text, false, on_thread);
        return false;
    }
    return true;
}

/* Tells the server, once for each callable, the lane for its next calls. */
static void hint(struct worker *w, struct plan *p, const struct agx_worker_frame *f)
{
    struct agx_mp_writer m;

    if (p->hinted)
        return;
    p->hinted = true;
    agx_frame_begin(&m, &w->out.urgent);
    agx_mp_write_map(&m, 3);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, AGX_STR("lane"));
    agx_mp_write_str(&m, AGX_STR("callable"));
    agx_mp_write_raw(&m, f->callable_raw);
    agx_mp_write_str(&m, AGX_STR("lane"));
    agx_mp_write_uint(&m, p->mode == PLAN_THREAD ? AGX_LANE_THREAD : AGX_LANE_LOOP);
    if (agx_frame_end(&m, AGX_MESSAGE_MAX, NULL) == 0) /* else the lane stays as it is */
        pyworker_flush_soon(w);
}

/* The plan of a frame in the main thread. New, or NULL with an exception. */
static struct plan *plan_of(struct worker *w, const struct agx_worker_frame *f)
{
    _cleanup_py_ PyObject *key = NULL;
    struct plan *p;
    bool known;

    if (w->held_plan)
        return (struct plan *)AGX_TAKE_PTR(w->held_plan);
    key = pyworker_plan_key(f);
    if (!key)
        return NULL;
    p = pyworker_find_plan(w, key, &known);
    return p ? (struct plan *)Py_NewRef((PyObject *)p) : pyworker_load_plan(w, key, f->by_target);
}

/* Starts a call that has its plan: in a thread, or on the loop. -1 with SystemExit set. */
static int dispatch(struct call *c, const struct agx_worker_frame *f, struct agx_str frame,
                    enum agx_remote_lane came_by)
{
    bool to_thread = c->plan->mode == PLAN_THREAD;

    if (!pyworker_check_shape(c, f, false))
        return 0;
    if (to_thread != (came_by == AGX_LANE_THREAD))
        hint(c->w, c->plan, f);
    if (!to_thread)
        return pyworker_start(c, f);
    if (!c->frame && pyworker_call_keep_frame(c, frame) < 0) {
        pyworker_call_fail(c, PHASE_LOAD, false);
        return 0;
    }
    pyworker_pool_submit(c->w, (struct call *)Py_NewRef((PyObject *)c));
    return 0;
}

static enum verdict py_worker_loop_refuse(struct worker *w, const struct agx_worker_frame *f)
{
    struct call *c = f->id > 0 ? pyworker_call_new(w, f) : NULL;

    PyErr_Clear();
    if (c)
        pyworker_call_fail_text(c, "BadFrame", f->bad, false, false);
    Py_XDECREF((PyObject *)c);
    return HANDLED;
}

/* A call whose frame was read from the loop lane. */
static enum verdict on_call(struct worker *w, const struct agx_worker_frame *f,
                            struct agx_str frame)
{
    struct plan *p = NULL;
    struct call *c;
    int r = 0;

    if (f->bad || f->id == 0)
        return py_worker_loop_refuse(w, f);
    p = plan_of(w, f);
    if (p && p->mode != PLAN_THREAD && !w->aio.loop) {
        agx_py_set(&w->held_plan, (PyObject *)p);
        return NEED_LOOP;
    }
    if (!p && (PyErr_ExceptionMatches(PyExc_SystemExit) ||
               PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)))
        return FAILED;
    if (!p) {
        PyObject *type, *value, *traceback;

        PyErr_Fetch(&type, &value, &traceback);
        c = pyworker_call_new(w, f);
        PyErr_Clear();
        PyErr_Restore(type, value, traceback);
        if (c)
            pyworker_call_fail(c, PHASE_LOAD, false);
        PyErr_Clear();
        Py_XDECREF((PyObject *)c);
        return HANDLED;
    }
    c = pyworker_call_new(w, f);
    if (c) {
        c->plan = p;
        r = dispatch(c, f, frame, AGX_LANE_LOOP);
    } else {
        PyErr_Clear(); /* the id of a call in flight, which continues */
        Py_DECREF((PyObject *)p);
    }
    Py_XDECREF((PyObject *)c);
    return r < 0 ? FAILED : HANDLED;
}

static void wake_waiter(struct call *c)
{
    _cleanup_py_ PyObject *waiter = AGX_TAKE_PTR(c->waiter);

    pyworker_release(waiter);
}

static void on_credit(struct worker *w, const struct agx_worker_frame *f)
{
    struct call *c = agx_call_table_get(&w->calls, f->id);

    if (!c)
        return;
    (void)agx_credit_raise(&c->granted, f->n, f->bytes);
    if (c->waiter && agx_credit_left(&c->granted, &c->sent))
        wake_waiter(c);
}

/* An item of input, or its end. The inbox itself reports a bad item. */
static void on_input(struct worker *w, const struct agx_worker_frame *f)
{
    struct call *c = agx_call_table_get(&w->calls, f->id);
    _cleanup_py_ PyObject *inbox = NULL, *item = NULL, *broken = NULL, *size = NULL;

    if (!c || !c->inbox)
        return;
    inbox = Py_NewRef(c->inbox);
    if (f->type == AGX_WF_BIDI_END_IN) {
        agx_py_ignore(PyObject_CallMethodObjArgs(inbox, pyworker_names.end, NULL));
    } else {
        item = f->item.len > 0 ? agx_py_unpack_raw(&w->codec, f->item) : Py_NewRef(Py_None);
        broken = item ? NULL : agx_py_take_exception();
        size = PyLong_FromSize_t(f->item.len);
        if (broken)
            agx_py_ignore(PyObject_CallMethodObjArgs(inbox, pyworker_names.broken, broken, NULL));
        else if (size)
            agx_py_ignore(PyObject_CallMethodObjArgs(inbox, pyworker_names.feed, item, size, NULL));
    }
}

/* Raises CancelledError in the function that runs in a thread. */
static void interrupt_thread(struct call *c)
{
    if (c->exc_sent || !c->w->aio.cancelled_error)
        return;
    c->exc_sent = true;
    (void)PyThreadState_SetAsyncExc(c->tid, c->w->aio.cancelled_error);
}

static void cancel_call(struct call *c)
{
    c->cancelled = true;
    if (c->tid != 0)
        interrupt_thread(c);
    else if (c->task)
        agx_py_ignore(PyObject_CallMethodObjArgs(c->task, pyworker_names.cancel, NULL));
}

void pyworker_cancel(struct worker *w, uint64_t id)
{
    struct call *c = agx_call_table_get(&w->calls, id);

    if (c) {
        Py_INCREF((PyObject *)c);
        cancel_call(c);
        Py_DECREF((PyObject *)c);
    } else if (id > w->thread_last_id) {
        /* The call may still be on its way in the other lane, least likely for the oldest ids. */
        if (w->n_early == AGX_ARRAY_LEN(w->early))
            memmove(w->early, w->early + 1, --w->n_early * sizeof(w->early[0]));
        w->early[w->n_early++] = id;
    }
}

static enum verdict on_shutdown(struct worker *w, uint64_t grace_ms)
{
    _cleanup_py_ PyObject *r = NULL;

    if (w->stopping)
        return HANDLED;
    if (!w->aio.loop && pyworker_active(w) == 0) {
        w->lanes[AGX_LANE_LOOP].eof = true; /* nothing to wait for, no need for asyncio */
        return HANDLED;
    }
    if (!w->aio.loop)
        return NEED_LOOP;
    w->stopping = true;
    r = PyObject_CallFunction(w->glue.shutdown, "K", (unsigned long long)grace_ms);
    return r ? HANDLED : FAILED;
}

static enum verdict handle(struct worker *w, struct agx_str frame)
{
    struct agx_worker_frame f;

    if (agx_worker_frame_parse(frame, &f, NULL) < 0) {
        w->lanes[AGX_LANE_LOOP].eof = true; /* a server does not send this */
        return HANDLED;
    }
    if (pyworker_cfn_frame(w, AGX_LANE_LOOP, &f))
        return HANDLED;
    switch (f.type) {
    case AGX_WF_CALL:
        return on_call(w, &f, frame);
    case AGX_WF_CREDIT:
        on_credit(w, &f);
        return HANDLED;
    case AGX_WF_BIDI_IN:
    case AGX_WF_BIDI_END_IN:
        on_input(w, &f);
        return HANDLED;
    case AGX_WF_CANCEL:
        /* Without a loop the only calls are plain functions; CancelledError is asyncio's. */
        if (!w->aio.loop && agx_call_table_get(&w->calls, f.id))
            return NEED_LOOP;
        pyworker_cancel(w, f.id);
        return HANDLED;
    case AGX_WF_SHUTDOWN:
        return on_shutdown(w, f.grace_ms);
    case AGX_WF_UNKNOWN:
        break;
    }
    return HANDLED;
}

/* Reads the available bytes without waiting. */
static void py_worker_loop_fill(struct worker *w)
{
    struct lane *lane = &w->lanes[AGX_LANE_LOOP];
    uint8_t *at;
    size_t room;
    ssize_t n;

    if (lane->eof || agx_inbuf_room(&lane->in, &at, &room, NULL) < 0) {
        lane->eof = true;
        return;
    }
    n = recv(lane->fd, at, room, MSG_DONTWAIT);
    if (n > 0)
        agx_inbuf_read(&lane->in, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        lane->eof = true;
}

/* Handles the frames in the buffer, at most AGX_WORKER_FRAMES_TURN. */
static enum verdict handle_buffered(struct worker *w, bool *ret_more)
{
    struct lane *lane = &w->lanes[AGX_LANE_LOOP];
    struct agx_str frame;

    *ret_more = false;
    for (unsigned i = 0; i < AGX_WORKER_FRAMES_TURN && !lane->eof; i++) {
        size_t at = lane->in.at;
        enum verdict v;
        int r = agx_inbuf_peek(&lane->in, &frame, NULL);

        if (r < 0)
            lane->eof = true;
        if (r <= 0)
            return HANDLED;
        agx_inbuf_used(&lane->in);
        v = handle(w, frame);
        if (v == NEED_LOOP)
            lane->in.at = at; /* handled again when there is a loop */
        if (v != HANDLED)
            return v;
    }
    *ret_more = agx_inbuf_peek(&lane->in, &frame, NULL) > 0;
    return HANDLED;
}

static int end_of_lane(struct worker *w)
{
    return on_shutdown(w, AGX_WORKER_EOF_GRACE_MS) == FAILED ? -1 : 0;
}

int pyworker_turn(struct worker *w)
{
    struct lane *lane = &w->lanes[AGX_LANE_LOOP];
    _cleanup_py_ PyObject *r = NULL;
    struct agx_str frame;
    enum verdict v;
    bool more, outer = w->in_turn;

    if (agx_inbuf_peek(&lane->in, &frame, NULL) == 0)
        py_worker_loop_fill(w);
    w->in_turn = true;
    v = handle_buffered(w, &more);
    w->in_turn = outer;
    if (v == FAILED)
        return -1;
    if (more) {
        r = PyObject_CallFunctionObjArgs(w->aio.call_soon, w->aio.on_readable, NULL);
        if (!r)
            return -1;
    }
    pyworker_flush(w);
    return lane->eof && !w->stopping ? end_of_lane(w) : 0;
}

void pyworker_wake(struct worker *w)
{
    uint64_t one = 1;

    (void)!write(w->wake_fd, &one, sizeof(one));
}

void pyworker_note(struct worker *w, struct call *take_call, PyObject *take_awaitable,
                   struct agx_str frame)
{
    struct note *n = malloc(sizeof(*n) + frame.len);

    if (!n) {
        if (take_call)
            pyworker_call_fail_text(take_call, "MemoryError", "no memory for the call", false,
                                    true);
        Py_XDECREF((PyObject *)take_call);
        Py_XDECREF(take_awaitable);
        return;
    }
    *n = (struct note){ .call = take_call, .awaitable = take_awaitable, .len = frame.len };
    if (frame.len > 0)
        memcpy(n->frame, frame.ptr, frame.len);
    agx_list_push_back(&w->notes, &n->node);
    pyworker_wake(w);
}

static int start_awaitable(struct call *c, PyObject *awaitable)
{
    _cleanup_py_ PyObject *coroutine =
        PyObject_CallFunctionObjArgs(c->w->glue.await_it, awaitable, NULL);

    if (coroutine)
        return pyworker_start_task(c, coroutine);
    pyworker_call_fail(c, PHASE_RUN, false);
    return 0;
}

/* A call from the thread lane that must run here, or whose callable was unknown there. */
static int start_noted(struct worker *w, struct call *c, struct agx_str frame)
{
    struct agx_worker_frame f;

    if (agx_worker_frame_parse(frame, &f, NULL) < 0)
        return 0; /* it was parsed before */
    if (!c->plan)
        c->plan = plan_of(w, &f);
    if (c->plan)
        return dispatch(c, &f, frame, AGX_LANE_THREAD);
    if (PyErr_ExceptionMatches(PyExc_SystemExit) || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        return -1;
    pyworker_call_fail(c, PHASE_LOAD, false);
    return 0;
}

static int handle_note(struct worker *w, struct note *n)
{
    if (!n->call)
        return handle(w, agx_str_bytes(n->frame, n->len)) == FAILED ? -1 : 0;
    if (n->call->cancelled) {
        pyworker_call_cancelled(n->call, false);
        return 0;
    }
    if (n->awaitable)
        return start_awaitable(n->call, n->awaitable);
    return start_noted(w, n->call, agx_str_bytes(n->frame, n->len));
}

int pyworker_notes(struct worker *w)
{
    bool outer = w->in_turn;
    struct note *n;
    uint64_t count;
    int r = 0;

    (void)!read(w->wake_fd, &count, sizeof(count));
    w->in_turn = true;
    while (r == 0 && (n = AGX_LIST_TAKE(&w->notes, struct note, node))) {
        r = handle_note(w, n);
        Py_XDECREF((PyObject *)n->call);
        Py_XDECREF(n->awaitable);
        free(n);
    }
    w->in_turn = outer;
    if (r < 0)
        return -1;
    pyworker_flush(w);
    return w->lanes[AGX_LANE_LOOP].eof && !w->stopping ? end_of_lane(w) : 0;
}

/* Waits for frames, notes, or room for output. */
static void wait_for_events(struct worker *w)
{
    struct pollfd fds[] = {
        { .fd = w->lanes[AGX_LANE_LOOP].fd, .events = POLLIN },
        { .fd = w->wake_fd, .events = POLLIN },
    };

    if (agx_outq_waiting(&w->out) > 0)
        fds[0].events |= POLLOUT;
    Py_BEGIN_ALLOW_THREADS;
    (void)poll(fds, AGX_ARRAY_LEN(fds), -1);
    Py_END_ALLOW_THREADS;
}

int pyworker_wait(struct worker *w)
{
    struct lane *lane = &w->lanes[AGX_LANE_LOOP];
    enum verdict v;
    bool more;

    for (;;) {
        v = handle_buffered(w, &more);
        pyworker_flush(w);
        if (v == FAILED || PyErr_CheckSignals() < 0)
            return -1;
        if (v == NEED_LOOP || !agx_list_is_empty(&w->notes))
            return 1;
        if (lane->eof)
            return pyworker_active(w) > 0;
        if (!more) {
            wait_for_events(w);
            py_worker_loop_fill(w);
        }
    }
}

/*
 * py_worker_out.c: output of both lanes.
 *
 * The main thread writes the loop lane and never waits: the rest goes when the socket is writable
 * again, and generators wait meanwhile. The first pool thread that has an answer writes the thread
 * lane; the others leave their answers to it.
 */
#include "pyext/py_worker.h"

#include "base/clock.h"
#include "base/limits.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/banned.h"

/* If the server does not read and more answers than this wait, threads wait too. */
#define OUT_MAX ((size_t)4 << 20)

void pyworker_release(PyObject *future)
{
    _cleanup_py_ PyObject *done =
        future ? PyObject_CallMethodObjArgs(future, pyworker_names.done, NULL) : NULL;

    if (done == Py_False)
        agx_py_ignore(PyObject_CallMethodObjArgs(future, pyworker_names.set_result, Py_None, NULL));
    PyErr_Clear();
}

static void wake_drained(struct worker *w)
{
    _cleanup_py_ PyObject *waiting = w->drained;

    w->drained = PyList_New(0);
    for (Py_ssize_t i = 0; waiting && i < PyList_Size(waiting); i++)
        pyworker_release(PyList_GetItem(waiting, i));
}

static void want_writer(struct worker *w, bool on)
{
    _cleanup_py_ PyObject *fd = NULL;

    if (!w->aio.loop || w->writer_added == on)
        return;
    fd = PyLong_FromLong(w->lanes[AGX_LANE_LOOP].fd);
    if (on && fd)
        agx_py_ignore(
            PyObject_CallFunctionObjArgs(w->aio.add_writer, fd, w->aio.on_writable, NULL));
    else if (fd)
        agx_py_ignore(PyObject_CallFunctionObjArgs(w->aio.remove_writer, fd, NULL));
    w->writer_added = on;
}

/* Sends as much as the socket takes; the rest goes when it is writable. Never blocks. */
void pyworker_flush(struct worker *w)
{
    struct agx_str next;

    while (!w->out_broken && (next = agx_outq_next(&w->out)).len > 0) {
        ssize_t n =
            send(w->lanes[AGX_LANE_LOOP].fd, next.ptr, next.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n >= 0)
            agx_outq_written(&w->out, (size_t)n);
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            w->out_broken = true; /* the reader will see the end of file */
    }
    if (w->out_broken) {
        agx_outq_done(&w->out);
        agx_outq_init(&w->out);
    }
    want_writer(w, agx_outq_waiting(&w->out) > 0);
    if (agx_outq_waiting(&w->out) <= AGX_OUT_HIGH / 2 && PyList_Size(w->drained) > 0)
        wake_drained(w);
}

/* Flushes at the end of this turn, or of the loop's turn. */
void pyworker_flush_soon(struct worker *w)
{
    _cleanup_py_ PyObject *r = NULL;

    if (w->in_turn || w->flush_scheduled || w->writer_added || !w->aio.loop)
        return;
    w->flush_scheduled = true;
    r = PyObject_CallFunctionObjArgs(w->aio.call_soon, w->aio.flush, NULL);
    if (!r) {
        PyErr_Clear();
        w->flush_scheduled = false;
    }
}

/* Writes all of it; waits for room until that time. The GIL is not held. */
static bool write_all(int fd, const uint8_t *p, size_t len, uint64_t until_ms)
{
    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            p += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd wait = { .fd = fd, .events = POLLOUT };
            uint64_t now = agx_clock_ms();

            if (now >= until_ms)
                return false;
            (void)poll(&wait, 1, (int)AGX_MIN(until_ms - now, (uint64_t)INT_MAX));
        } else if (n < 0 && errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Writes one batch: at once if the socket has room, otherwise without the GIL. */
static void write_batch(struct worker *w, struct agx_buf *batch, uint64_t until_ms)
{
    int fd = w->lanes[AGX_LANE_THREAD].fd;
    ssize_t n = send(fd, batch->data, batch->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    size_t done = n > 0 ? (size_t)n : 0;
    bool ok = n >= 0 || errno == EAGAIN || errno == EINTR;

    if (ok && done < batch->len) {
        Py_BEGIN_ALLOW_THREADS;
        ok = write_all(fd, batch->data + done, batch->len - done, until_ms);
        Py_END_ALLOW_THREADS;
    }
    if (!ok)
        w->thread_out.broken = true;
}

void pyworker_pool_flush_until(struct worker *w, uint64_t until_ms)
{
    struct thread_out *o = &w->thread_out;

    if (o->writing)
        return;
    o->writing = true;
    while (o->waiting.len > 0 && !o->broken) {
        struct agx_buf batch = o->waiting;

        o->waiting = (struct agx_buf)AGX_BUF_INIT(SIZE_MAX);
        write_batch(w, &batch, until_ms);
        if (o->waiting.len == 0 && batch.cap <= AGX_OUT_KEEP && !o->waiting.data) {
            agx_buf_clear(&batch);
            o->waiting = batch; /* its memory is used again */
        } else {
            agx_buf_done(&batch);
        }
    }
    o->writing = false;
}

void pyworker_pool_flush(struct worker *w)
{
    pyworker_pool_flush_until(w, UINT64_MAX);
}

void pyworker_pool_send(struct worker *w, struct agx_str frame)
{
    struct thread_out *o = &w->thread_out;

    while (o->waiting.len > OUT_MAX && !o->broken) {
        Py_BEGIN_ALLOW_THREADS;
        (void)poll(NULL, 0, 1);
        Py_END_ALLOW_THREADS;
    }
    if (o->broken)
        return;
    if (o->waiting.len == 0)
        o->since_us = agx_clock_us();
    if (agx_buf_append(&o->waiting, frame) < 0)
        o->broken = true; /* no memory for an answer: the server must not wait for it */
}

/*
 * py_worker.c: the module agentix._worker: the Worker object and its life.
 *
 *     worker = Worker(loop_fd, thread_fd, glue, max_threads)
 *     worker.start()                     # says that it is ready
 *     if worker.wait():                  # True: something needs a loop
 *         worker.attach(loop, ...)
 *         loop.run_forever()
 *     worker.drain(seconds)
 */
#include "pyext/py_worker.h"

#include "pyext/py_error.h"

#include "base/clock.h"
#include "base/limits.h"
#include "codec/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/banned.h"

struct names pyworker_names;

static int intern_names(void)
{
    static const struct {
        PyObject **at;
        const char *text;
    } all[] = {
        { &pyworker_names.run, "run" },
        { &pyworker_names.result, "result" },
        { &pyworker_names.done, "done" },
        { &pyworker_names.cancel, "cancel" },
        { &pyworker_names.add_done_callback, "add_done_callback" },
        { &pyworker_names.set_result, "set_result" },
        { &pyworker_names._run, "_run" },
        { &pyworker_names.feed, "feed" },
        { &pyworker_names.end, "end" },
        { &pyworker_names.broken, "broken" },
        { &pyworker_names.await_, "__await__" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(all); i++) {
        *all[i].at = PyUnicode_InternFromString(all[i].text);
        if (!*all[i].at)
            return -1;
    }
    return 0;
}

/* An attribute of `from`, kept in *slot. */
static int take_attribute(PyObject *from, const char *name, PyObject **slot)
{
    *slot = PyObject_GetAttrString(from, name);
    return *slot ? 0 : -1;
}

static int bind_glue(struct glue *g, PyObject *from)
{
    if (take_attribute(from, "prepare", &g->prepare) < 0 ||
        take_attribute(from, "describe", &g->describe) < 0 ||
        take_attribute(from, "replace", &g->replace) < 0 ||
        take_attribute(from, "replace_plain", &g->replace_plain) < 0 ||
        take_attribute(from, "stream", &g->stream) < 0 ||
        take_attribute(from, "bidi", &g->bidi) < 0 ||
        take_attribute(from, "await_it", &g->await_it) < 0 ||
        take_attribute(from, "collect", &g->collect) < 0 ||
        take_attribute(from, "leave", &g->leave) < 0 ||
        take_attribute(from, "shutdown", &g->shutdown) < 0)
        return -1;
    return 0;
}

/* Children of user code must not inherit a lane; reads of the thread lane block. */
static int prepare_lane(struct lane *lane, int fd)
{
    lane->fd = fd;
    agx_inbuf_init(&lane->in);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
        return 0;
    PyErr_SetFromErrno(PyExc_OSError);
    return -1;
}

static int find_types(struct worker *w, PyObject *module)
{
    _cleanup_py_ PyObject *contexts = PyImport_ImportModule("_contextvars");

    if (!contexts || take_attribute(contexts, "Context", &w->context_type) < 0)
        return -1;
    if (take_attribute(module, "Call", (PyObject **)&w->call_type) < 0 ||
        take_attribute(module, "Plan", (PyObject **)&w->plan_type) < 0)
        return -1;
    return 0;
}

static int init_worker(struct worker *w, PyObject *module, int fds[2], PyObject *glue)
{
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)pthread_mutex_init(&w->pool.mutex, NULL);
    (void)pthread_cond_init(&w->pool.watch, NULL);
    agx_outq_init(&w->out);
    w->thread_out.waiting = (struct agx_buf)AGX_BUF_INIT(SIZE_MAX);
    w->plans = PyDict_New();
    w->drained = PyList_New(0);
    if (w->wake_fd < 0 || !w->plans || !w->drained) {
        PyErr_SetString(PyExc_RuntimeError, "no memory or descriptor for a worker");
        return -1;
    }
    if (agx_py_codec_init(&w->codec) < 0 || bind_glue(&w->glue, glue) < 0 ||
        find_types(w, module) < 0 || take_attribute(glue, "generator_type", &w->generator_type) < 0)
        return -1;
    if (prepare_lane(&w->lanes[AGX_LANE_LOOP], fds[0]) < 0)
        return -1;
    return prepare_lane(&w->lanes[AGX_LANE_THREAD], fds[1]);
}

/* The process has one worker for its whole life: threads refer to it, so it is never freed. */
static PyObject *new_worker(PyObject *module, PyObject *args)
{
    struct worker *w;
    PyTypeObject *type;
    _cleanup_py_ PyObject *found = PyObject_GetAttrString(module, "Worker");
    PyObject *glue; /* borrowed */
    int fds[2];
    const char *path; /* borrowed */
    unsigned max_threads;

    if (!found ||
        !PyArg_ParseTuple(args, "iiOIs:start", &fds[0], &fds[1], &glue, &max_threads, &path))
        return NULL;
    type = (PyTypeObject *)found;
    w = (struct worker *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!w)
        return NULL;
    w->pool.max = max_threads > 0 ? max_threads : AGX_WORKER_THREADS_MAX;
    if (init_worker(w, module, fds, glue) < 0)
        return NULL;
    pyworker_cfn_init(w, path);
    return (PyObject *)w;
}

static PyObject *queue_hello(struct worker *w, struct agx_mp_writer *m)
{
    struct agx_error *err = NULL;

    if (agx_frame_end(m, AGX_MESSAGE_MAX, &err) < 0)
        return agx_py_raise(&err);
    pyworker_flush(w);
    Py_RETURN_NONE;
}

static PyObject *worker_start(PyObject *self, PyObject *name)
{
    struct worker *w = (struct worker *)self;
    struct agx_mp_writer m;
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(name, &len);

    if (!text || pyworker_pool_start(w) < 0)
        return NULL;
    agx_frame_begin(&m, &w->out.urgent);
    agx_mp_write_map(&m, 3);
    agx_mp_write_str(&m, AGX_STR("type"));
    agx_mp_write_str(&m, AGX_STR("ready"));
    agx_mp_write_str(&m, AGX_STR("proto"));
    agx_mp_write_uint(&m, 1);
    agx_mp_write_str(&m, AGX_STR("name"));
    agx_mp_write_str(&m, agx_str_bytes(text, (size_t)len));
    return queue_hello(w, &m);
}

static PyObject *worker_wait(PyObject *self, PyObject *unused)
{
    int r = pyworker_wait((struct worker *)self);

    (void)unused;
    return r < 0 ? NULL : PyBool_FromLong(r);
}

static int add_reader(struct worker *w, PyObject *loop, int fd, PyObject *callback)
{
    _cleanup_py_ PyObject *r = PyObject_CallMethod(loop, "add_reader", "iO", fd, callback);

    (void)w;
    return r ? 0 : -1;
}

static int bind_loop(struct worker *w, PyObject *loop)
{
    struct loop *a = &w->aio;

    if (take_attribute(loop, "call_soon", &a->call_soon) < 0 ||
        take_attribute(loop, "add_writer", &a->add_writer) < 0 ||
        take_attribute(loop, "remove_writer", &a->remove_writer) < 0 ||
        take_attribute(loop, "create_future", &a->create_future) < 0 ||
        take_attribute((PyObject *)w, "on_readable", &a->on_readable) < 0 ||
        take_attribute((PyObject *)w, "on_writable", &a->on_writable) < 0 ||
        take_attribute((PyObject *)w, "flush", &a->flush) < 0)
        return -1;
    return 0;
}

PyDoc_STRVAR(attach_doc, "attach(loop, task_type, eager, ready_pop, cancelled_error)\n\n"
                         "From now on this loop handles the frames; it must not run yet.\n"
                         "ready_pop takes the last handle off its ready queue, or is None.");

static PyObject *worker_attach(PyObject *self, PyObject *args)
{
    struct worker *w = (struct worker *)self;
    struct loop *a = &w->aio;
    PyObject *loop, *task_type, *ready_pop, *cancelled_error; /* borrowed */
    _cleanup_py_ PyObject *on_wake = NULL, *r = NULL;
    int eager;

    if (!PyArg_ParseTuple(args, "OOpOO:attach", &loop, &task_type, &eager, &ready_pop,
                          &cancelled_error))
        return NULL;
    a->task_kwargs = eager ? Py_BuildValue("{sOsO}", "loop", loop, "eager_start", Py_True)
                           : Py_BuildValue("{sO}", "loop", loop);
    if (!a->task_kwargs || bind_loop(w, loop) < 0)
        return NULL;
    a->eager = eager;
    a->task_type = Py_NewRef(task_type);
    a->cancelled_error = Py_NewRef(cancelled_error);
    a->ready_pop = ready_pop == Py_None ? NULL : Py_NewRef(ready_pop);
    on_wake = PyObject_GetAttrString(self, "on_wake");
    if (!on_wake || add_reader(w, loop, w->wake_fd, on_wake) < 0 ||
        add_reader(w, loop, w->lanes[AGX_LANE_LOOP].fd, a->on_readable) < 0)
        return NULL;
    a->loop = Py_NewRef(loop);
    /* Frames may wait in the worker's own buffer, where no selector sees them. */
    r = PyObject_CallFunctionObjArgs(a->call_soon, a->on_readable, NULL);
    return r ? Py_NewRef(Py_None) : NULL;
}

static PyObject *worker_on_readable(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (pyworker_turn((struct worker *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *worker_on_wake(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (pyworker_notes((struct worker *)self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *worker_on_writable(PyObject *self, PyObject *unused)
{
    (void)unused;
    pyworker_flush((struct worker *)self);
    Py_RETURN_NONE;
}

static PyObject *worker_flush(PyObject *self, PyObject *unused)
{
    struct worker *w = (struct worker *)self;

    (void)unused;
    w->flush_scheduled = false;
    pyworker_flush(w);
    Py_RETURN_NONE;
}

/* Collects the ids of the calls first, because cancelling changes the table. */
static PyObject *worker_cancel_all(PyObject *self, PyObject *unused)
{
    struct worker *w = (struct worker *)self;
    size_t at = 0, n = 0;
    struct call *c;
    uint64_t *ids;

    (void)unused;
    ids = calloc(w->calls.len + 1, sizeof(*ids));
    if (!ids)
        return PyErr_NoMemory();
    while ((c = agx_call_table_next(&w->calls, &at)))
        ids[n++] = c->id;
    for (size_t i = 0; i < n; i++)
        pyworker_cancel(w, ids[i]);
    free(ids);
    agx_cworker_stop(w->cfn);
    Py_RETURN_NONE;
}

/* Waits until all output is written, the server is gone, or the time is over. */
static PyObject *worker_drain(PyObject *self, PyObject *args)
{
    struct worker *w = (struct worker *)self;
    double seconds;
    uint64_t until;

    if (!PyArg_ParseTuple(args, "d:drain", &seconds))
        return NULL;
    until = agx_clock_ms() + (uint64_t)(seconds * 1000);
    pyworker_pool_flush_until(w, until);
    pyworker_flush(w);
    while (agx_outq_waiting(&w->out) > 0 && agx_clock_ms() < until) {
        struct pollfd p = { .fd = w->lanes[AGX_LANE_LOOP].fd, .events = POLLOUT };

        Py_BEGIN_ALLOW_THREADS;
        (void)poll(&p, 1, 50);
        Py_END_ALLOW_THREADS;
        pyworker_flush(w);
    }
    while ((w->thread_out.writing || w->thread_out.waiting.len > 0) && !w->thread_out.broken &&
           agx_clock_ms() < until) {
        Py_BEGIN_ALLOW_THREADS;
        (void)poll(NULL, 0, 1);
        Py_END_ALLOW_THREADS;
    }
    Py_RETURN_NONE;
}

static PyObject *get_active(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(pyworker_active((struct worker *)self));
}

static PyMethodDef worker_methods[] = {
    { "start", worker_start, METH_O, "start(name)\n\nStarts the pool and sends ready." },
    { "wait", worker_wait, METH_NOARGS,
      "wait() -> bool\n\nServes without a loop until one is "
      "needed (True) or the server has closed (False)." },
    { "attach", worker_attach, METH_VARARGS, attach_doc },
    { "on_readable", worker_on_readable, METH_NOARGS, "The loop lane has something to read." },
    { "on_writable", worker_on_writable, METH_NOARGS, "The loop lane has room again." },
    { "on_wake", worker_on_wake, METH_NOARGS, "Another thread has queued work." },
    { "flush", worker_flush, METH_NOARGS, "Writes the output of this turn of the loop." },
    { "cancel_all", worker_cancel_all, METH_NOARGS, "Cancels every call." },
    { "drain", worker_drain, METH_VARARGS, "drain(seconds)\n\nWaits until all output is written." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef worker_getset[] = {
    { "active", get_active, NULL, "calls in flight", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyTypeObject *worker_type_new(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_methods, worker_methods },
        { Py_tp_getset, worker_getset },
        { Py_tp_doc, "The worker: two lanes, a table of calls, a pool of threads." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "agentix._worker.Worker",
        .basicsize = sizeof(struct worker),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

static int add_type(PyObject *module, const char *name, PyTypeObject *take_type)
{
    int r = take_type ? PyModule_AddObjectRef(module, name, (PyObject *)take_type) : -1;

    Py_XDECREF((PyObject *)take_type);
    return r;
}

static int py_worker_execute(PyObject *module)
{
    if (intern_names() < 0 || add_type(module, "Plan", pyworker_plan_type_new(module)) < 0 ||
        add_type(module, "Call", pyworker_call_type_new(module)) < 0 ||
        add_type(module, "Worker", worker_type_new(module)) < 0)
        return -1;
    return 0;
}

/* Ends the process like an interpreter with an uncaught KeyboardInterrupt; from any thread. */
static PyObject *die_of_interrupt(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    (void)signal(SIGINT, SIG_DFL);
    (void)kill(getpid(), SIGINT);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    { "die_of_interrupt", die_of_interrupt, METH_NOARGS, "Ends the process by SIGINT." },
    { "new_worker", new_worker, METH_VARARGS,
      "new_worker(loop_fd, thread_fd, glue, max_threads, path) -> Worker" },
    { NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *)py_worker_execute },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "agentix._worker",
    .m_doc = "The worker's frames, calls and threads.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__worker(void);

PyMODINIT_FUNC PyInit__worker(void)
{
    return PyModuleDef_Init(&definition);
}

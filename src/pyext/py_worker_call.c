/*
 * py_worker_call.c: one call: its object, and the frames that answer it.
 *
 * Answers of the main thread go to the loop lane's queue, those of pool threads to the thread lane.
 * A frame is packed completely before other threads can see it: packing runs user code, which may
 * let them run.
 */
#include "pyext/py_worker.h"

#include "pyext/py_error.h"

#include "base/limits.h"
#include "codec/frame.h"

#include "base/banned.h"

/* The queue of a frame. */
enum out { OUT_URGENT, OUT_BULK, OUT_THREAD };

static enum out out_of(const struct call *c, bool on_thread)
{
    if (on_thread)
        return OUT_THREAD;
    /* The end of a stream must not overtake its items. */
    return c->kind == AGX_REMOTE_UNARY ? OUT_URGENT : OUT_BULK;
}

/* A frame for the thread lane is written into `scratch`, one for the loop lane into the queue. */
static struct agx_buf *out_buffer(struct worker *w, enum out out, struct agx_buf *scratch)
{
    return out == OUT_THREAD ? scratch : out == OUT_BULK ? &w->out.bulk : &w->out.urgent;
}

static void out_commit(struct worker *w, enum out out, const struct agx_buf *scratch)
{
    if (out == OUT_THREAD)
        pyworker_pool_send(w, agx_buf_peek(scratch));
    else
        pyworker_flush_soon(w);
}

static void py_worker_call_begin(struct agx_mp_writer *m, struct agx_buf *to, struct agx_str type,
                                 uint64_t id, size_t more)
{
    agx_frame_begin(m, to);
    agx_mp_write_map(m, 2 + more);
    agx_mp_write_str(m, AGX_STR("type"));
    agx_mp_write_str(m, type);
    agx_mp_write_str(m, AGX_STR("id"));
    agx_mp_write_uint(m, id);
}

static void write_text(struct agx_mp_writer *m, struct agx_str key, PyObject *text)
{
    Py_ssize_t len;
    const char *s = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;

    agx_mp_write_str(m, key);
    if (s)
        agx_mp_write_str(m, agx_str_bytes(s, (size_t)len));
    else
        agx_mp_write_nil(m);
    PyErr_Clear();
}

/* `type` and `message` are text; a `traceback` that is not text is sent as nil. */
static void send_error(struct call *c, PyObject *type, PyObject *message, PyObject *traceback,
                       bool cancelled, bool on_thread)
{
    _cleanup_buf_ struct agx_buf scratch = AGX_BUF_INIT(AGX_MESSAGE_MAX);
    enum out out = out_of(c, on_thread);
    struct agx_mp_writer m;

    if (c->over)
        return;
    py_worker_call_begin(&m, out_buffer(c->w, out, &scratch), AGX_STR("error"), c->id, 1);
    agx_mp_write_str(&m, AGX_STR("error"));
    agx_mp_write_map(&m, 4);
    write_text(&m, AGX_STR("type"), type);
    write_text(&m, AGX_STR("message"), message);
    write_text(&m, AGX_STR("traceback"), traceback);
    agx_mp_write_str(&m, AGX_STR("cancelled"));
    agx_mp_write_bool(&m, cancelled);
    if (agx_frame_end(&m, AGX_MESSAGE_MAX, NULL) < 0) {
        /* A message of 256 MiB, or no memory: the call must end even so. */
        pyworker_call_fail_text(c, "MessageTooLarge", "the error's text is too large", false,
                                on_thread);
        return;
    }
    c->over = true;
    out_commit(c->w, out, &scratch);
    pyworker_call_forget(c);
}

void pyworker_call_fail_text(struct call *c, const char *type, const char *message, bool cancelled,
                             bool on_thread)
{
    _cleanup_py_ PyObject *t = PyUnicode_FromString(type);
    /* It may contain a name from the client, cut in the middle of a character. */
    _cleanup_py_ PyObject *m =
        PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");

    send_error(c, t, m, NULL, cancelled, on_thread);
}

void pyworker_call_cancelled(struct call *c, bool on_thread)
{
    pyworker_call_fail_text(c, "Cancelled", "remote call cancelled", true, on_thread);
}

static bool ends_process(PyObject *exc)
{
    return PyErr_GivenExceptionMatches(exc, PyExc_SystemExit) ||
           PyErr_GivenExceptionMatches(exc, PyExc_KeyboardInterrupt);
}

void pyworker_call_fail(struct call *c, enum phase phase, bool on_thread)
{
    struct worker *w = c->w;
    _cleanup_py_ PyObject *exc = agx_py_take_exception(), *told = NULL;
    PyObject *type = NULL, *message = NULL, *traceback = NULL; /* borrowed */

    if (c->over || !exc)
        return;
    if (ends_process(exc)) {
        agx_py_ignore(PyObject_CallFunctionObjArgs(w->glue.leave, exc, NULL)); /* no return */
        return;
    }
    if (c->cancelled && w->aio.cancelled_error &&
        PyErr_GivenExceptionMatches(exc, w->aio.cancelled_error)) {
        pyworker_call_cancelled(c, on_thread);
        return;
    }
    told = PyObject_CallFunction(w->glue.describe, "Oi", exc, (int)phase);
    if (told && PyArg_ParseTuple(told, "UUO", &type, &message, &traceback)) {
        send_error(c, type, message, traceback, false, on_thread);
        return;
    }
    PyErr_Clear();
    pyworker_call_fail_text(c, "Exception", "an exception that cannot be described", false,
                            on_thread);
}

/* Leaves are converted for old receivers, and if an annotation converts them back. */
static struct agx_py_pack_options pack_options(const struct call *c)
{
    struct agx_py_pack_options o = {
        .int_keys = c->flags & AGX_RECV_INT_KEYS,
        .byte_dtypes = c->flags & AGX_RECV_BYTE_DTYPES,
    };

    o.fallback = !o.int_keys || (c->plan && c->plan->annotated) ? c->w->glue.replace
                                                                : c->w->glue.replace_plain;
    return o;
}

/*
 * Queues one frame with a value: a result or an item. *ret_size is the size of the value. Returns
 * 0, or -1 with an exception and nothing queued.
 */
static int send_value(struct call *c, struct agx_str type, PyObject *value, enum out out,
                      size_t *ret_size)
{
    _cleanup_buf_ struct agx_buf scratch = AGX_BUF_INIT(AGX_MESSAGE_MAX + AGX_FRAME_EXTRA);
    _cleanup_py_ PyObject *dumped = NULL;
    struct agx_py_pack_options options = pack_options(c);
    struct agx_buf *to = out_buffer(c->w, out, &scratch);
    struct agx_error *err = NULL;
    struct agx_mp_writer m;
    size_t start;

    if (c->plan->dump != Py_None) {
        dumped = PyObject_CallFunctionObjArgs(c->plan->dump, value, NULL);
        if (!dumped)
            return -1;
        value = dumped;
    }
    py_worker_call_begin(&m, to, type, c->id, 1);
    agx_mp_write_str(&m, AGX_STR("value"));
    start = to->len;
    if (agx_py_pack(&c->w->codec, &m, value, &options) < 0) {
        to->len = m.start;
        return -1;
    }
    *ret_size = to->len - start;
    if (agx_frame_end(&m, AGX_MESSAGE_MAX, &err) < 0) {
        (void)agx_py_raise(&err);
        return -1;
    }
    if (c->max > 0 && *ret_size > c->max) {
        to->len = m.start;
        return 1;
    }
    out_commit(c->w, out, &scratch);
    return 0;
}

static void too_large(struct call *c, size_t size, bool on_thread)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "a value of %zu bytes, the receiver takes at most %llu",
                   size, (unsigned long long)c->max);
    pyworker_call_fail_text(c, "MessageTooLarge", text, false, on_thread);
}

void pyworker_call_finish(struct call *c, PyObject *value, bool on_thread)
{
    size_t size = 0;
    int r;

    if (c->over)
        return;
    r = send_value(c, AGX_STR("result"), value, out_of(c, on_thread), &size);
    if (r < 0) {
        pyworker_call_fail(c, PHASE_RESULT, on_thread);
        return;
    }
    if (r > 0) {
        too_large(c, size, on_thread);
        return;
    }
    c->over = true;
    pyworker_call_forget(c);
}

static void call_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    struct call *c = (struct call *)self;

    Py_XDECREF((PyObject *)c->plan);
    Py_XDECREF(c->task);
    Py_XDECREF(c->waiter);
    Py_XDECREF(c->inbox);
    free(c->frame);
    release(self);
    Py_DECREF((PyObject *)type);
}

struct call *pyworker_call_new(struct worker *w, const struct agx_worker_frame *f)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(w->call_type, Py_tp_alloc);
    struct call *c = (struct call *)alloc(w->call_type, 0);

    if (!c)
        return NULL;
    c->w = w;
    c->id = f->id;
    c->kind = f->kind;
    c->flags = f->flags;
    c->max = f->max;
    c->granted = (struct agx_credit)AGX_CREDIT_INIT;
    if (agx_call_table_get(&w->calls, f->id) || agx_call_table_add(&w->calls, f->id, c) < 0) {
        Py_DECREF((PyObject *)c);
        PyErr_SetString(PyExc_RuntimeError, "the id of a call is in use, or there is no memory");
        return NULL;
    }
    return (struct call *)Py_NewRef((PyObject *)c); /* one for the table, one for the caller */
}

void pyworker_call_forget(struct call *c)
{
    /* asyncio holds the task while it runs; another reference here would be a cycle. */
    Py_CLEAR(c->task);
    if (agx_call_table_get(&c->w->calls, c->id) == c) {
        (void)agx_call_table_remove(&c->w->calls, c->id);
        Py_DECREF((PyObject *)c);
    }
}

PyObject *pyworker_call_args(struct worker *w, const struct agx_worker_frame *f)
{
    return f->args.len > 0 ? agx_py_unpack_raw(&w->codec, f->args) : PyList_New(0);
}

PyObject *pyworker_call_kwargs(struct worker *w, const struct agx_worker_frame *f)
{
    return f->kwargs.len > 0 ? agx_py_unpack_raw(&w->codec, f->kwargs) : PyDict_New();
}

int pyworker_call_keep_frame(struct call *c, struct agx_str frame)
{
    c->frame = malloc(frame.len);
    if (!c->frame) {
        (void)PyErr_NoMemory();
        return -1;
    }
    memcpy(c->frame, frame.ptr, frame.len);
    c->frame_len = frame.len;
    return 0;
}

/* New: a future, or None if the producer may continue. */
static PyObject *may_go_on(struct call *c)
{
    struct worker *w = c->w;

    if (!agx_credit_left(&c->granted, &c->sent)) {
        PyObject *waiter = PyObject_CallNoArgs(w->aio.create_future);

        agx_py_set(&c->waiter, Py_XNewRef(waiter));
        c->turn = 0;
        return waiter;
    }
    if (agx_outq_waiting(&w->out) > AGX_OUT_HIGH) {
        PyObject *waiter = PyObject_CallNoArgs(w->aio.create_future);

        if (waiter && PyList_Append(w->drained, waiter) < 0)
            Py_CLEAR(waiter);
        c->turn = 0;
        return waiter;
    }
    if (++c->turn >= AGX_WORKER_ITEMS_TURN) {
        c->turn = 0;
        Py_RETURN_TRUE;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(emit_doc, "emit(value)\n\nSends an item. None: continue; True: run the loop first; "
                       "otherwise a future to wait for.");

static PyObject *call_emit(PyObject *self, PyObject *value)
{
    struct call *c = (struct call *)self;
    size_t size = 0;
    int r;

    if (c->over)
        Py_RETURN_TRUE;
    r = send_value(c, AGX_STR("stream_item"), value, OUT_BULK, &size);
    if (r != 0) {
        if (r < 0)
            pyworker_call_fail(c, PHASE_ITEM, false);
        else
            too_large(c, size, false);
        Py_RETURN_TRUE;
    }
    agx_credit_count(&c->sent, size);
    return may_go_on(c);
}

static PyObject *call_end(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;
    struct agx_mp_writer m;

    (void)unused;
    if (c->over)
        Py_RETURN_NONE;
    py_worker_call_begin(&m, &c->w->out.bulk, AGX_STR("stream_end"), c->id, 0);
    if (agx_frame_end(&m, AGX_MESSAGE_MAX, NULL) < 0)
        return PyErr_NoMemory();
    c->over = true;
    pyworker_flush_soon(c->w);
    pyworker_call_forget(c);
    Py_RETURN_NONE;
}

static PyObject *call_fail(PyObject *self, PyObject *args)
{
    PyObject *exc;
    int phase;

    if (!PyArg_ParseTuple(args, "Oi:fail", &exc, &phase))
        return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(exc), exc);
    pyworker_call_fail((struct call *)self, (enum phase)phase, false);
    Py_RETURN_NONE;
}

static PyObject *call_grant(PyObject *self, PyObject *args)
{
    struct call *c = (struct call *)self;
    unsigned long long n, bytes;
    struct agx_mp_writer m;

    if (!PyArg_ParseTuple(args, "KK:grant", &n, &bytes))
        return NULL;
    if (c->over)
        Py_RETURN_NONE;
    py_worker_call_begin(&m, &c->w->out.urgent, AGX_STR("credit"), c->id, 2);
    agx_mp_write_str(&m, AGX_STR("n"));
    agx_mp_write_uint(&m, n);
    agx_mp_write_str(&m, AGX_STR("bytes"));
    agx_mp_write_uint(&m, bytes);
    if (agx_frame_end(&m, AGX_MESSAGE_MAX, NULL) < 0)
        return PyErr_NoMemory();
    pyworker_flush_soon(c->w);
    Py_RETURN_NONE;
}

static PyObject *get_over(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((struct call *)self)->over);
}

static PyMethodDef call_methods[] = {
    { "emit", call_emit, METH_O, emit_doc },
    { "end", call_end, METH_NOARGS, "Ends a stream." },
    { "fail", call_fail, METH_VARARGS, "fail(exception, phase)\n\nEnds the call with an error." },
    { "grant", call_grant, METH_VARARGS, "grant(n, bytes)\n\nRaises the credit for input." },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef call_getset[] = {
    { "over", get_over, NULL, "the call has its terminal frame", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyTypeObject *pyworker_call_type_new(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_dealloc, (void *)call_dealloc },
        { Py_tp_methods, call_methods },
        { Py_tp_getset, call_getset },
        { Py_tp_doc, "One call." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "agentix._worker.Call",
        .basicsize = sizeof(struct call),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };

    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

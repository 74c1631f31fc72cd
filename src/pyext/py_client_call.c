/*
 * py_client_call.c: the type Call: one remote call.
 *
 *   NEW --first await--> WAITING --connected--> SENT --terminal event--> ENDED
 *    |                      |                    |                         ^
 *    |                      +-- cancel, deadline, close, no one holds it --+
 *    +-- connected: straight to SENT
 *
 * Whoever awaits a call gets the call itself from its iterator, as asyncio futures do it: the task
 * sees
 * `_asyncio_future_blocking`, adds its wake-up as a callback and sleeps. The wake-up is run by the
 * session after the bytes that came were read, without another turn of the loop.
 */
#include "pyext/py_client.h"

#include "base/banned.h"

struct call *call_new(struct session *s, struct plan *p, PyObject *args, PyObject *kwargs,
                      double timeout_s)
{
    struct call *c = (struct call *)PyType_GenericAlloc((PyTypeObject *)s->module->call_type, 0);

    if (!c)
        return NULL;
    c->module = s->module;
    c->session = (struct session *)Py_NewRef((PyObject *)s);
    c->plan = (struct plan *)Py_NewRef((PyObject *)p);
    c->args = Py_NewRef(args);
    c->kwargs = Py_NewRef(kwargs);
    c->timeout_s = timeout_s;
    c->request.max = AGX_MESSAGE_MAX;
    c->granted_n = c->credit_n = AGX_CREDIT_ITEMS;
    c->granted_bytes = c->credit_bytes = AGX_CREDIT_BYTES;
    c->input_first = 1;
    return c;
}

/* ---- outcome ---- */

static void stop_timer(struct call *c)
{
    PyObject *r;

    if (!c->timer)
        return;
    r = PyObject_CallMethod(c->timer, "cancel", NULL);
    if (!r)
        PyErr_Clear();
    Py_XDECREF(r);
    Py_CLEAR(c->timer);
}

void call_end(struct call *c, PyObject *result, PyObject *exception)
{
    if (c->state == CALL_ENDED) {
        Py_XDECREF(result);
        Py_XDECREF(exception);
        return;
    }
    if (c->state == CALL_WAITING || c->state == CALL_SENT)
        session_remove(c->session, c);
    c->state = CALL_ENDED;
    c->result = result;
    c->exception = exception;
    agx_buf_done(&c->request);
    call_input_done(c);
    if (c->timer)
        stop_timer(c);
    session_wake(c->session, c);
}

void call_fail(struct call *c, const char *type, const char *message)
{
    PyObject *error = Py_BuildValue("{ssss}", "type", type, "message", message);
    PyObject *exception = error ? session_error(c->session, c->plan->name, error) : NULL;

    Py_XDECREF(error);
    if (exception)
        call_end(c, NULL, exception);
    else
        call_fail_set(c);
}

void call_fail_set(struct call *c)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        (void)PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    call_end(c, NULL, value);
}

/* Drops the call on our side, and tells the server if it may have it. */
static void abandon(struct call *c, PyObject *exception)
{
    if (c->state == CALL_ENDED) {
        Py_XDECREF(exception);
        return;
    }
    if (c->state == CALL_SENT && request_cancel(c) < 0)
        PyErr_WriteUnraisable(NULL);
    c->cancelled = true;
    call_end(c, NULL, exception);
}

/* Sets the exception of an ended call. */
static void raise_exception(struct call *c)
{
    PyErr_SetObject((PyObject *)Py_TYPE(c->exception), c->exception);
}

/* ---- items ---- */

void call_add_item(struct call *c, PyObject *value, size_t bytes)
{
    if (c->items_head + c->items_len == c->items_cap) {
        if (c->items_head > 0) {
            memmove(c->items, c->items + c->items_head, c->items_len * sizeof(*c->items));
            c->items_head = 0;
        } else {
            size_t cap = c->items_cap ? c->items_cap * 2 : 16;
            struct call_item *grown = realloc(c->items, cap * sizeof(*grown));

            if (!grown) {
                Py_DECREF(value);
                PyErr_NoMemory();
                call_fail_set(c);
                return;
            }
            c->items = grown;
            c->items_cap = cap;
        }
    }
    c->items[c->items_head + c->items_len++] = (struct call_item){ value, bytes };
    session_wake(c->session, c);
}

static void drop_items(struct call *c)
{
    while (c->items_len > 0) {
        c->items_len--;
        Py_DECREF(c->items[c->items_head++].value);
    }
    free(c->items);
    c->items = NULL;
    c->items_cap = c->items_head = 0;
}

/* Grants more as the user takes items: at the latest when half of the window is used up. */
static int grant(struct call *c)
{
    uint64_t n = c->took_n + AGX_CREDIT_ITEMS;
    uint64_t bytes = c->took_bytes + AGX_CREDIT_BYTES;

    if (c->state != CALL_SENT || c->session->proto == 0)
        return 0;
    if (n - c->granted_n < AGX_CREDIT_ITEMS / 2 && bytes - c->granted_bytes < AGX_CREDIT_BYTES / 2)
        return 0;
    c->granted_n = n;
    c->granted_bytes = bytes;
    return request_credit(c);
}

static PyObject *take_item(struct call *c)
{
    struct call_item item = c->items[c->items_head++];
    PyObject *value;

    if (--c->items_len == 0)
        c->items_head = 0;
    c->took_n++;
    c->took_bytes += item.bytes;
    if (grant(c) < 0) {
        Py_DECREF(item.value);
        return NULL;
    }
    value = plan_accept(c->plan, item.value);
    if (!value) {
        PyObject *type, *exc, *traceback;

        PyErr_Fetch(&type, &exc, &traceback);
        drop_items(c);
        abandon(c, NULL); /* an item that is refused ends the iteration, as in a generator */
        PyErr_Restore(type, exc, traceback);
    }
    return value;
}

/* ---- awaiting ---- */

static PySendResult wait_for_more(struct call *c, PyObject **ret)
{
    if (c->callback) {
        PyErr_SetString(PyExc_RuntimeError, "another task waits for this call already");
        return PYGEN_ERROR;
    }
    c->blocking = true;
    *ret = Py_NewRef((PyObject *)c);
    return PYGEN_NEXT;
}

static PySendResult unary_outcome(struct call *c, PyObject **ret)
{
    if (c->taken) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited remote call");
        return PYGEN_ERROR;
    }
    c->taken = true;
    if (c->exception) {
        raise_exception(c);
        return PYGEN_ERROR;
    }
    *ret = c->result ? plan_accept(c->plan, AGX_TAKE_PTR(c->result)) : Py_NewRef(Py_None);
    return *ret ? PYGEN_RETURN : PYGEN_ERROR;
}

static PySendResult items_outcome(struct call *c, PyObject **ret)
{
    if (c->items_len > 0) {
        *ret = take_item(c);
        return *ret ? PYGEN_RETURN : PYGEN_ERROR;
    }
    if (c->state != CALL_ENDED)
        return wait_for_more(c, ret);
    if (c->exception && !c->taken) {
        c->taken = true;
        raise_exception(c);
    } else {
        PyErr_SetNone(PyExc_StopAsyncIteration);
    }
    return PYGEN_ERROR;
}

PySendResult call_send(PyObject *self, PyObject *value, PyObject **ret)
{
    struct call *c = (struct call *)self;

    (void)value;
    *ret = NULL;
    if (c->state == CALL_NEW && call_start(c) < 0)
        return PYGEN_ERROR;
    if (c->plan->kind != AGX_RPC_UNARY)
        return items_outcome(c, ret);
    return c->state == CALL_ENDED ? unary_outcome(c, ret) : wait_for_more(c, ret);
}

/* For callers that step through the iterator by hand; tasks use call_send(). */
PyObject *call_iternext(PyObject *self)
{
    PyObject *ret = NULL, *stop;

    switch (call_send(self, Py_None, &ret)) {
    case PYGEN_NEXT:
        return ret;
    case PYGEN_RETURN:
        /* An instance: a bare tuple would be taken for the arguments. */
        stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, ret, NULL);
        Py_DECREF(ret);
        if (stop)
            PyErr_SetObject(PyExc_StopIteration, stop);
        Py_XDECREF(stop);
        return NULL;
    case PYGEN_ERROR:
        break;
    }
    return NULL;
}

static PyObject *call_await(PyObject *self)
{
    struct call *c = (struct call *)self;

    if (c->plan->kind == AGX_RPC_UNARY && (c->state != CALL_NEW || c->awaited)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited remote call");
        return NULL;
    }
    c->awaited = true;
    return Py_NewRef(self);
}

/*
 * What anext() gives: an awaitable for one item. Not the call itself, which asyncio would take for
 * a future that needs no task to drive it.
 */
static PyObject *call_anext(PyObject *self)
{
    return step_new(((struct call *)self)->module, (struct call *)self);
}

/* For bidi: input may only follow the request. */
static PyObject *call_start_method(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    if (c->state == CALL_NEW && call_start(c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Called when a coroutine that waits for us is closed, and by aclose(). */
PyObject *call_close(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    drop_items(c);
    abandon(c, NULL);
    Py_RETURN_NONE;
}

static PyObject *call_aclose(PyObject *self, PyObject *unused)
{
    PyObject *r = call_close(self, unused);

    Py_XDECREF(r);
    return r ? step_new(((struct call *)self)->module, NULL) : NULL;
}

/* ---- asyncio's future protocol ---- */

static PyObject *call_add_done_callback(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "", "context", NULL };
    struct call *c = (struct call *)self;
    PyObject *fn, *context = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:add_done_callback", names, &fn, &context))
        return NULL;
    if (c->callback)
        return PyErr_Format(PyExc_RuntimeError, "another task waits for this call already");
    c->callback = Py_NewRef(fn);
    c->context = Py_NewRef(context);
    if (c->state == CALL_ENDED || c->items_len > 0)
        session_wake(c->session, c);
    Py_RETURN_NONE;
}

static PyObject *call_remove_done_callback(PyObject *self, PyObject *fn)
{
    struct call *c = (struct call *)self;
    int same = c->callback ? PyObject_RichCompareBool(c->callback, fn, Py_EQ) : 0;

    if (same < 0)
        return NULL;
    if (same) {
        Py_CLEAR(c->callback);
        Py_CLEAR(c->context);
    }
    return PyLong_FromLong(same);
}

/* True: the task that waits will see a CancelledError, and the server has been told. */
static PyObject *call_cancel(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "msg", NULL };
    struct call *c = (struct call *)self;
    PyObject *msg = Py_None, *exception;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:cancel", names, &msg))
        return NULL;
    if (c->state == CALL_ENDED || c->items_len > 0)
        Py_RETURN_FALSE;
    exception =
        PyObject_CallFunctionObjArgs(c->module->cancelled_error, msg == Py_None ? NULL : msg, NULL);
    if (!exception)
        return NULL;
    abandon(c, exception);
    Py_RETURN_TRUE;
}

static PyObject *call_cancelled(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct call *)self)->cancelled);
}

static bool is_ready(const struct call *c)
{
    return c->state == CALL_ENDED || c->items_len > 0;
}

static PyObject *call_done(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_ready((struct call *)self));
}

/* What a woken task asks first: it only matters whether we were cancelled. */
static PyObject *call_result(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    if (!is_ready(c)) {
        PyErr_SetString(c->module->invalid_state, "the call goes on");
        return NULL;
    }
    if (c->cancelled && c->exception) {
        c->taken = true;
        raise_exception(c);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *call_get_loop(PyObject *self, PyObject *unused)
{
    PyObject *loop = ((struct call *)self)->session->loop;

    (void)unused;
    return Py_NewRef(loop ? loop : Py_None);
}

int call_run_callbacks(struct call *c)
{
    PyObject *fn = AGX_TAKE_PTR(c->callback), *context = AGX_TAKE_PTR(c->context), *r;

    if (!fn)
        return 0;
    if (context == Py_None)
        r = PyObject_CallFunctionObjArgs(fn, (PyObject *)c, NULL);
    else
        r = PyObject_CallMethodObjArgs(context, c->module->name_run, fn, (PyObject *)c, NULL);
    Py_DECREF(fn);
    Py_DECREF(context);
    if (r) {
        Py_DECREF(r);
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit))
        return -1;
    PyErr_WriteUnraisable((PyObject *)c);
    return 0;
}

/* ---- the type ---- */

static PyObject *get_blocking(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct call *)self)->blocking);
}

static int set_blocking(PyObject *self, PyObject *value, void *unused)
{
    int on = value ? PyObject_IsTrue(value) : 0;

    (void)unused;
    if (on < 0)
        return -1;
    ((struct call *)self)->blocking = on;
    return 0;
}

static PyObject *get_loop(PyObject *self, void *unused)
{
    (void)unused;
    return call_get_loop(self, NULL);
}

static PyObject *get_id(PyObject *self, void *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    if (!c->id)
        Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(c->id, (Py_ssize_t)c->id_len);
}

static PyObject *get_plan(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((struct call *)self)->plan);
}

/* Ends the call with an exception of our side (bidi input that cannot be encoded). */
static PyObject *call_fail_method(PyObject *self, PyObject *exception)
{
    struct call *c = (struct call *)self;

    if (c->state == CALL_SENT && request_cancel(c) < 0)
        return NULL;
    call_end(c, NULL, Py_NewRef(exception));
    Py_RETURN_NONE;
}

/* Nobody can take the outcome any more. */
static void call_finalize(PyObject *self)
{
    struct call *c = (struct call *)self;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (c->state == CALL_NEW && c->plan && c->plan->kind == AGX_RPC_UNARY && !c->awaited &&
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "remote call of %U was never awaited",
                         c->plan->name) < 0)
        PyErr_WriteUnraisable(NULL);
    if (c->state != CALL_ENDED && c->session) {
        Py_CLEAR(c->callback);
        abandon(c, NULL);
    }
    PyErr_Restore(type, value, traceback);
}

static int call_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct call *c = (struct call *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)c->session);
    Py_VISIT((PyObject *)c->plan);
    Py_VISIT(c->args);
    Py_VISIT(c->kwargs);
    Py_VISIT(c->timer);
    Py_VISIT(c->result);
    Py_VISIT(c->exception);
    Py_VISIT(c->callback);
    Py_VISIT(c->context);
    Py_VISIT(c->credit_waiter);
    for (size_t i = 0; i < c->items_len; i++)
        Py_VISIT(c->items[c->items_head + i].value);
    return 0;
}

static int call_clear(PyObject *self)
{
    struct call *c = (struct call *)self;

    drop_items(c);
    Py_CLEAR(c->args);
    Py_CLEAR(c->kwargs);
    Py_CLEAR(c->timer);
    Py_CLEAR(c->result);
    Py_CLEAR(c->exception);
    Py_CLEAR(c->callback);
    Py_CLEAR(c->context);
    Py_CLEAR(c->credit_waiter);
    return 0;
}

static void call_dealloc(PyObject *self)
{
    struct call *c = (struct call *)self;
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    if (c->state != CALL_ENDED)
        call_finalize(self);
    (void)call_clear(self);
    if (c->session)
        ack_forget(c);
    agx_buf_done(&c->request);
    call_input_done(c);
    free(c->id);
    Py_CLEAR(c->session);
    Py_CLEAR(c->plan);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef call_methods[] = {
    { "add_done_callback", (PyCFunction)(void (*)(void))call_add_done_callback,
      METH_VARARGS | METH_KEYWORDS, NULL },
    { "remove_done_callback", call_remove_done_callback, METH_O, NULL },
    { "cancel", (PyCFunction)(void (*)(void))call_cancel, METH_VARARGS | METH_KEYWORDS, NULL },
    { "cancelled", call_cancelled, METH_NOARGS, NULL },
    { "done", call_done, METH_NOARGS, NULL },
    { "result", call_result, METH_NOARGS, NULL },
    { "get_loop", call_get_loop, METH_NOARGS, NULL },
    { "start", call_start_method, METH_NOARGS, "Sends the request, as the first await would." },
    { "close", call_close, METH_NOARGS, "Ends the call here and cancels it at the server." },
    { "aclose", call_aclose, METH_NOARGS, "The same, as a generator has it." },
    { "fail", call_fail_method, METH_O, "Ends the call with this exception." },
    { "push", call_push, METH_O,
      "Sends one item of bidi input. False: wait for credit() before the next." },
    { "end_input", call_end_input, METH_NOARGS, "No more bidi input follows." },
    { "credit", call_credit, METH_NOARGS, "A future: the next item may be pushed." },
    { 0 },
};

static PyGetSetDef call_getset[] = {
    { "_asyncio_future_blocking", get_blocking, set_blocking, NULL, NULL },
    { "_loop", get_loop, NULL, NULL, NULL },
    { "call_id", get_id, NULL, "The id, once the call was sent.", NULL },
    { "plan", get_plan, NULL, NULL, NULL },
    { 0 },
};

PyObject *call_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, "One remote call: an awaitable, or an async iterator." },
        { Py_tp_dealloc, call_dealloc },
        { Py_tp_finalize, call_finalize },
        { Py_tp_traverse, call_traverse },
        { Py_tp_clear, call_clear },
        { Py_tp_iter, PyObject_SelfIter },
        { Py_tp_iternext, call_iternext },
        { Py_am_await, call_await },
        { Py_am_aiter, PyObject_SelfIter },
        { Py_am_anext, call_anext },
        { Py_am_send, call_send },
        { Py_tp_methods, call_methods },
        { Py_tp_getset, call_getset },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "agentix._client.Call",
                         .basicsize = sizeof(struct call),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

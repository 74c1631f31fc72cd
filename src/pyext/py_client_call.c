/*
 * py_client_call.c: the type Call: one remote call.
 *
 *   NEW --first await--> WAITING --connected--> SENT --terminal event--> ENDED
 *    |                      |                    |                         ^
 *    |                      +-- cancel, deadline, close, no one holds it --+
 *    +-- connected: straight to SENT
 *
 * The iterator of an awaited call yields the call itself, as with asyncio's futures: the task sees
 * `_asyncio_future_blocking`, adds its wake-up as a callback and sleeps. The session runs the
 * wake-up after it has parsed the received bytes, without another turn of the loop.
 */
#include "pyext/py_client_fn.h"
#include "pyext/py_error.h"

#include "base/banned.h"

struct call *pyclient_call_new(struct session *s, struct plan *p, PyObject *args, PyObject *kwargs,
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
    agx_remote_flow_init(&c->flow, p->kind);
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

void pyclient_call_end(struct call *c, PyObject *result, PyObject *exception)
{
    if (c->state == CALL_ENDED) {
        Py_XDECREF(result);
        Py_XDECREF(exception);
        return;
    }
    if (c->state == CALL_WAITING || c->state == CALL_SENT)
        pyclient_session_remove(c->session, c);
    c->state = CALL_ENDED;
    c->result = result;
    c->exception = exception;
    pyclient_session_give_room(c->session, &c->request);
    pyclient_call_input_done(c);
    if (c->timer)
        stop_timer(c);
    pyclient_session_wake(c->session, c);
}

void pyclient_call_fail(struct call *c, const char *type, const char *message)
{
    PyObject *error = Py_BuildValue("{ssss}", "type", type, "message", message);
    PyObject *exception = error ? pyclient_session_error(c->session, c->plan->name, error) : NULL;

    Py_XDECREF(error);
    if (exception)
        pyclient_call_end(c, NULL, exception);
    else
        pyclient_call_fail_set(c);
}

void pyclient_call_fail_set(struct call *c)
{
    pyclient_call_end(c, NULL, agx_py_take_exception());
}

void pyclient_call_abandon(struct call *c, PyObject *exception)
{
    if (c->state == CALL_ENDED) {
        Py_XDECREF(exception);
        return;
    }
    if (c->state == CALL_SENT && pyclient_request_cancel(c) < 0)
        PyErr_Clear(); /* if sending fails, the connection is lost, and the call with it */
    c->cancelled = true;
    pyclient_call_end(c, NULL, exception);
}

void pyclient_call_raise(struct call *c)
{
    PyErr_SetObject((PyObject *)Py_TYPE(c->exception), c->exception);
}

/* ---- awaiting ---- */

static PySendResult wait_for_more(struct call *c, PyObject **ret)
{
    if (c->callback) {
        PyErr_SetString(PyExc_RuntimeError, "another task is already waiting for this call");
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
        pyclient_call_raise(c);
        return PYGEN_ERROR;
    }
    *ret = c->result ? pyclient_plan_accept(c->plan, AGX_TAKE_PTR(c->result)) : Py_NewRef(Py_None);
    return *ret ? PYGEN_RETURN : PYGEN_ERROR;
}

static PySendResult items_outcome(struct call *c, PyObject **ret)
{
    if (c->items_len > 0) {
        *ret = pyclient_call_take_item(c);
        return *ret ? PYGEN_RETURN : PYGEN_ERROR;
    }
    if (c->state != CALL_ENDED)
        return wait_for_more(c, ret);
    if (c->exception && !c->taken) {
        c->taken = true;
        pyclient_call_raise(c);
    } else {
        PyErr_SetNone(PyExc_StopAsyncIteration);
    }
    return PYGEN_ERROR;
}

PySendResult pyclient_call_send(PyObject *self, PyObject *value, PyObject **ret)
{
    struct call *c = (struct call *)self;

    (void)value;
    *ret = NULL;
    if (c->state == CALL_NEW && pyclient_call_start(c) < 0)
        return PYGEN_ERROR;
    if (c->plan->kind != AGX_REMOTE_UNARY)
        return items_outcome(c, ret);
    return c->state == CALL_ENDED ? unary_outcome(c, ret) : wait_for_more(c, ret);
}

/* For code that calls next() on the iterator; tasks use pyclient_call_send(). */
PyObject *pyclient_call_iternext(PyObject *self)
{
    PyObject *ret = NULL, *stop;

    switch (pyclient_call_send(self, Py_None, &ret)) {
    case PYGEN_NEXT:
        return ret;
    case PYGEN_RETURN:
        /* Sets an instance: Python would take a bare tuple for the arguments of the exception. */
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

    if (c->plan->kind == AGX_REMOTE_UNARY && (c->state != CALL_NEW || c->awaited)) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited remote call");
        return NULL;
    }
    c->awaited = true;
    return Py_NewRef(self);
}

/*
 * Returns what anext() needs: an awaitable for one item. It is not the call itself, which asyncio
 * would take for a future that needs no task to drive it.
 */
static PyObject *call_anext(PyObject *self)
{
    return pyclient_step_new(((struct call *)self)->module, (struct call *)self);
}

/* For bidi: input may only follow the request. */
static PyObject *call_start_method(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    if (c->state == CALL_NEW && pyclient_call_start(c) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Called when a coroutine that waits for us is closed, and by aclose(). */
PyObject *pyclient_call_close(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    pyclient_call_drop_items(c);
    pyclient_call_abandon(c, NULL);
    Py_RETURN_NONE;
}

static PyObject *call_aclose(PyObject *self, PyObject *unused)
{
    PyObject *r = pyclient_call_close(self, unused);

    Py_XDECREF(r);
    return r ? pyclient_step_new(((struct call *)self)->module, NULL) : NULL;
}

/* ---- the type ---- */

static PyObject *get_loop(PyObject *self, void *unused)
{
    (void)unused;
    return pyclient_call_get_loop(self, NULL);
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

/* Ends the call with an exception of this side (bidi input that cannot be encoded). */
static PyObject *call_fail_method(PyObject *self, PyObject *exception)
{
    struct call *c = (struct call *)self;

    if (c->state == CALL_SENT && pyclient_request_cancel(c) < 0)
        return NULL;
    pyclient_call_end(c, NULL, Py_NewRef(exception));
    Py_RETURN_NONE;
}

/* No reference is left, so the outcome cannot be taken any more. */
static void call_finalize(PyObject *self)
{
    struct call *c = (struct call *)self;
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (c->state == CALL_NEW && c->plan && c->plan->kind == AGX_REMOTE_UNARY && !c->awaited &&
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "remote call of %U was never awaited",
                         c->plan->name) < 0)
        PyErr_WriteUnraisable(NULL);
    if (c->state != CALL_ENDED && c->session) {
        Py_CLEAR(c->callback);
        pyclient_call_abandon(c, NULL);
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

    pyclient_call_drop_items(c);
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
        pyclient_ack_forget(c);
    agx_buf_done(&c->request);
    pyclient_call_input_done(c);
    free(c->id);
    Py_CLEAR(c->session);
    Py_CLEAR(c->plan);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef call_methods[] = {
    { "add_done_callback", (PyCFunction)(void (*)(void))pyclient_call_add_done_callback,
      METH_VARARGS | METH_KEYWORDS, NULL },
    { "remove_done_callback", pyclient_call_remove_done_callback, METH_O, NULL },
    { "cancel", (PyCFunction)(void (*)(void))pyclient_call_cancel, METH_VARARGS | METH_KEYWORDS,
      NULL },
    { "cancelled", pyclient_call_cancelled, METH_NOARGS, NULL },
    { "done", pyclient_call_done, METH_NOARGS, NULL },
    { "result", pyclient_call_result, METH_NOARGS, NULL },
    { "get_loop", pyclient_call_get_loop, METH_NOARGS, NULL },
    { "start", call_start_method, METH_NOARGS, "Sends the request, as the first await does." },
    { "close", pyclient_call_close, METH_NOARGS,
      "Ends the call here and cancels it at the server." },
    { "aclose", call_aclose, METH_NOARGS, "An awaitable that does the same as close()." },
    { "fail", call_fail_method, METH_O, "Ends the call with this exception." },
    { "push", pyclient_call_push, METH_O,
      "Sends one item of bidi input. False: wait for credit() before the next." },
    { "end_input", pyclient_call_end_input, METH_NOARGS, "No more bidi input follows." },
    { "credit", pyclient_call_credit, METH_NOARGS, "A future: the next item may be pushed." },
    { 0 },
};

static PyGetSetDef call_getset[] = {
    { "_asyncio_future_blocking", pyclient_call_get_blocking, pyclient_call_set_blocking, NULL,
      NULL },
    { "_loop", get_loop, NULL, NULL, NULL },
    { "call_id", get_id, NULL, "The id, once the call was sent.", NULL },
    { "plan", get_plan, NULL, NULL, NULL },
    { 0 },
};

PyObject *pyclient_call_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, "One remote call: an awaitable, or an async iterator." },
        { Py_tp_dealloc, call_dealloc },
        { Py_tp_finalize, call_finalize },
        { Py_tp_traverse, call_traverse },
        { Py_tp_clear, call_clear },
        { Py_tp_iter, PyObject_SelfIter },
        { Py_tp_iternext, pyclient_call_iternext },
        { Py_am_await, call_await },
        { Py_am_aiter, PyObject_SelfIter },
        { Py_am_anext, call_anext },
        { Py_am_send, pyclient_call_send },
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

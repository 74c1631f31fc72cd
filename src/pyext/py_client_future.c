/*
 * py_client_future.c: the methods that asyncio's tasks use on a call that they wait for. A call is
 * not an asyncio.Future: no turn of the loop lies between its outcome and the task's wake-up.
 */
#include "pyext/py_client_fn.h"

#include "base/banned.h"

PyObject *pyclient_call_get_blocking(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct call *)self)->blocking);
}

int pyclient_call_set_blocking(PyObject *self, PyObject *value, void *unused)
{
    int on = value ? PyObject_IsTrue(value) : 0;

    (void)unused;
    if (on < 0)
        return -1;
    ((struct call *)self)->blocking = on;
    return 0;
}

PyObject *pyclient_call_add_done_callback(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "", "context", NULL };
    struct call *c = (struct call *)self;
    PyObject *fn, *context = Py_None;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:add_done_callback", names, &fn, &context))
        return NULL;
    if (c->callback)
        return PyErr_Format(PyExc_RuntimeError, "another task is already waiting for this call");
    c->callback = Py_NewRef(fn);
    c->context = Py_NewRef(context);
    if (pyclient_call_is_ready(c))
        pyclient_session_wake(c->session, c);
    Py_RETURN_NONE;
}

PyObject *pyclient_call_remove_done_callback(PyObject *self, PyObject *fn)
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
PyObject *pyclient_call_cancel(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "msg", NULL };
    struct call *c = (struct call *)self;
    PyObject *msg = Py_None, *exception;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:cancel", names, &msg))
        return NULL;
    if (pyclient_call_is_ready(c))
        Py_RETURN_FALSE;
    exception =
        PyObject_CallFunctionObjArgs(c->module->cancelled_error, msg == Py_None ? NULL : msg, NULL);
    if (!exception)
        return NULL;
    pyclient_call_abandon(c, exception);
    Py_RETURN_TRUE;
}

PyObject *pyclient_call_cancelled(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((struct call *)self)->cancelled);
}

PyObject *pyclient_call_done(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(pyclient_call_is_ready((struct call *)self));
}

/* A woken task calls this first; only a cancellation matters then. */
PyObject *pyclient_call_result(PyObject *self, PyObject *unused)
{
    struct call *c = (struct call *)self;

    (void)unused;
    if (!pyclient_call_is_ready(c)) {
        PyErr_SetString(c->module->invalid_state, "the call has not ended");
        return NULL;
    }
    if (c->cancelled && c->exception) {
        c->taken = true;
        pyclient_call_raise(c);
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *pyclient_call_get_loop(PyObject *self, PyObject *unused)
{
    PyObject *loop = ((struct call *)self)->session->loop;

    (void)unused;
    return Py_NewRef(loop ? loop : Py_None);
}

int pyclient_call_run_callbacks(struct call *c)
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

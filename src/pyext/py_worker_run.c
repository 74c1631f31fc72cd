/* py_worker_run.c: a plain function, in the thread that calls it. */
#include "pyext/py_worker.h"

#include "base/banned.h"

static bool is_builtin_value(PyObject *v)
{
    PyTypeObject *t = Py_TYPE(v);

    return v == Py_None || t == &PyLong_Type || t == &PyUnicode_Type || t == &PyDict_Type ||
           t == &PyList_Type || t == &PyFloat_Type || t == &PyBool_Type || t == &PyBytes_Type ||
           t == &PyTuple_Type;
}

/*
 * Calls the function in its own context. While `tid` is set, a cancel raises CancelledError in this
 * thread. Afterwards an exception that was not raised yet is withdrawn, so that it cannot hit the
 * next work of this thread. Both happen under the GIL, as does the cancel. New.
 */
static PyObject *call_interruptibly(struct call *c, PyObject *args, PyObject *kwargs)
{
    struct worker *w = c->w;
    _cleanup_py_ PyObject *context = PyObject_CallNoArgs(w->context_type), *run = NULL;
    PyObject *value = NULL;

    run = context ? PyObject_GetAttr(context, pyworker_names.run) : NULL;
    if (!run)
        return NULL;
    if (c->cancelled) { /* while its arguments were validated */
        PyErr_SetNone(w->aio.cancelled_error);
        return NULL;
    }
    c->tid = PyThread_get_thread_ident();
    value = PyObject_Call(run, args, kwargs);
    if (value && (PyObject *)Py_TYPE(value) == w->generator_type)
        agx_py_set(&value, PyObject_CallFunctionObjArgs(w->glue.collect, value, NULL));
    if (c->exc_sent)
        (void)PyThreadState_SetAsyncExc(c->tid, NULL);
    c->tid = 0;
    return value;
}

static void py_worker_run_answer(struct call *c, PyObject *value)
{
    if (!value)
        pyworker_call_fail(c, PHASE_RUN, true);
    else if (!is_builtin_value(value) &&
             PyObject_HasAttr((PyObject *)Py_TYPE(value), pyworker_names.await_))
        pyworker_note(c->w, (struct call *)Py_NewRef((PyObject *)c), Py_NewRef(value),
                      (struct agx_str){ 0 });
    else
        pyworker_call_finish(c, value, true);
}

void pyworker_call_run(struct call *c, PyObject *args, PyObject *kwargs)
{
    _cleanup_py_ PyObject *bound = NULL, *bound_kwargs = NULL, *value = NULL;

    if (c->cancelled) {
        pyworker_call_cancelled(c, true);
        return;
    }
    if (pyworker_plan_bind(c->plan, args, kwargs, 1, &bound, &bound_kwargs) < 0) {
        pyworker_call_fail(c, PHASE_BIND, true);
        return;
    }
    PyTuple_SetItem(bound, 0, Py_NewRef(c->plan->fn));
    value = call_interruptibly(c, bound, bound_kwargs);
    py_worker_run_answer(c, value);
}

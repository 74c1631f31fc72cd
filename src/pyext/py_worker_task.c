/*
 * py_worker_task.c: coroutines and async generators on the loop.
 *
 * A task runs its first step at once: most coroutines end in it, and their answer then leaves in
 * the same turn of the loop. From 3.12 on asyncio does that itself (eager_start). For older
 * versions, the worker takes the step that the new task has just put at the end of the loop's ready
 * queue, and runs it. Sending into the coroutine directly would be faster but wrong: current_task()
 * would be None, timeouts would fail, and context variables would leak.
 */
#include "pyext/py_worker.h"

#include "base/banned.h"

static bool ends_process(void)
{
    return PyErr_ExceptionMatches(PyExc_SystemExit) ||
           PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
}

/* The task is done: its result or exception is the answer. -1 with SystemExit set. */
static int py_worker_task_settle(struct call *c, PyObject *task)
{
    _cleanup_py_ PyObject *value = NULL;

    value = PyObject_CallMethodObjArgs(task, pyworker_names.result, NULL);
    if (value && c->kind == AGX_REMOTE_UNARY) {
        pyworker_call_finish(c, value, false);
        return 0;
    }
    if (!value && ends_process())
        return -1;
    if (!value)
        pyworker_call_fail(c, PHASE_RUN, false);
    /* The driver of a stream normally has ended it; otherwise it must be ended here. */
    if (!c->over)
        pyworker_call_fail_text(c, "RuntimeError", "the stream was left without an end", false,
                                false);
    pyworker_call_forget(c);
    return 0;
}

static PyObject *on_task_done(PyObject *self, PyObject *task)
{
    if (py_worker_task_settle((struct call *)self, task) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef task_done_def = { "on_task_done", on_task_done, METH_O, NULL };

static int is_done(PyObject *task)
{
    _cleanup_py_ PyObject *done = PyObject_CallMethodObjArgs(task, pyworker_names.done, NULL);

    return done ? done == Py_True : -1;
}

/* Before 3.12: runs the step that the new task has scheduled last. */
static int first_step(struct worker *w)
{
    _cleanup_py_ PyObject *handle = NULL, *ran = NULL;

    if (w->aio.eager || !w->aio.ready_pop)
        return 0;
    handle = PyObject_CallNoArgs(w->aio.ready_pop);
    ran = handle ? PyObject_CallMethodObjArgs(handle, pyworker_names._run, NULL) : NULL;
    return ran ? 0 : -1;
}

int pyworker_start_task(struct call *c, PyObject *coroutine)
{
    struct worker *w = c->w;
    _cleanup_py_ PyObject *args = PyTuple_Pack(1, coroutine), *task = NULL, *done = NULL, *r = NULL;
    int is;

    task = args ? PyObject_Call(w->aio.task_type, args, w->aio.task_kwargs) : NULL;
    if (!task)
        goto failed;
    agx_py_set(&c->task, Py_NewRef(task));
    if (first_step(w) < 0)
        goto failed;
    is = is_done(task);
    if (is > 0)
        return py_worker_task_settle(c, task);
    done = is == 0 ? PyCFunction_New(&task_done_def, (PyObject *)c) : NULL;
    r = done ? PyObject_CallMethodObjArgs(task, pyworker_names.add_done_callback, done, NULL)
             : NULL;
    if (r)
        return 0;
failed:
    if (ends_process())
        return -1;
    pyworker_call_fail(c, PHASE_RUN, false);
    return 0;
}

static int start_coroutine(struct call *c, PyObject *args, PyObject *kwargs)
{
    _cleanup_py_ PyObject *coroutine = PyObject_Call(c->plan->fn, args, kwargs);

    if (!coroutine) {
        if (ends_process())
            return -1;
        pyworker_call_fail(c, PHASE_RUN, false);
        return 0;
    }
    return pyworker_start_task(c, coroutine);
}

static int start_generator(struct call *c, PyObject *args, PyObject *kwargs)
{
    bool bidi = c->plan->mode == PLAN_BIDI;
    PyObject *how = bidi ? c->w->glue.bidi : c->w->glue.stream;
    _cleanup_py_ PyObject *driver = PyObject_CallFunctionObjArgs(
        how, (PyObject *)c, (PyObject *)c->plan, args, kwargs ? kwargs : Py_None, NULL);
    PyObject *coroutine = driver;

    if (driver && bidi) {
        coroutine = PyTuple_GetItem(driver, 0);
        c->inbox = Py_XNewRef(PyTuple_GetItem(driver, 1));
    }
    if (driver && coroutine)
        return pyworker_start_task(c, coroutine);
    pyworker_call_fail(c, PHASE_RUN, false);
    return 0;
}

int pyworker_start(struct call *c, const struct agx_worker_frame *f)
{
    _cleanup_py_ PyObject *args = pyworker_call_args(c->w, f), *kwargs = NULL;
    _cleanup_py_ PyObject *bound_args = NULL, *bound_kwargs = NULL;

    kwargs = args ? pyworker_call_kwargs(c->w, f) : NULL;
    if (!kwargs || pyworker_plan_bind(c->plan, args, kwargs, 0, &bound_args, &bound_kwargs) < 0) {
        pyworker_call_fail(c, PHASE_BIND, false);
        return 0;
    }
    if (c->plan->mode == PLAN_COROUTINE)
        return start_coroutine(c, bound_args, bound_kwargs);
    return start_generator(c, bound_args, bound_kwargs);
}

/*
 * py_client_step.c: the type Step: the awaitable that anext() of a stream returns. Without a call
 * it is the awaitable of aclose(), and done at once.
 */
#include "pyext/py_client_fn.h"

#include "base/banned.h"

PyObject *pyclient_step_new(struct client_module *m, struct call *c)
{
    struct step *step = (struct step *)PyType_GenericAlloc((PyTypeObject *)m->step_type, 0);

    if (step)
        step->call = (struct call *)Py_XNewRef((PyObject *)c);
    return (PyObject *)step;
}

static PySendResult step_send(PyObject *self, PyObject *value, PyObject **ret)
{
    if (!((struct step *)self)->call) {
        *ret = Py_NewRef(Py_None);
        return PYGEN_RETURN;
    }
    return pyclient_call_send((PyObject *)((struct step *)self)->call, value, ret);
}

static PyObject *step_iternext(PyObject *self)
{
    if (!((struct step *)self)->call)
        return NULL; /* the end of an iterator, with the value None */
    return pyclient_call_iternext((PyObject *)((struct step *)self)->call);
}

/* If the waiting coroutine is closed, the stream is closed too, as a generator would be. */
static PyObject *step_close(PyObject *self, PyObject *unused)
{
    struct call *c = ((struct step *)self)->call;

    if (!c)
        Py_RETURN_NONE;
    return pyclient_call_close((PyObject *)c, unused);
}

static int step_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)((struct step *)self)->call);
    return 0;
}

static int step_clear(PyObject *self)
{
    Py_CLEAR(((struct step *)self)->call);
    return 0;
}

static void step_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    (void)step_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMethodDef step_methods[] = {
    { "close", step_close, METH_NOARGS, NULL },
    { 0 },
};

PyObject *pyclient_step_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        { Py_tp_dealloc, step_dealloc },
        { Py_tp_traverse, step_traverse },
        { Py_tp_clear, step_clear },
        { Py_tp_iter, PyObject_SelfIter },
        { Py_tp_iternext, step_iternext },
        { Py_am_await, PyObject_SelfIter },
        { Py_am_send, step_send },
        { Py_tp_methods, step_methods },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "agentix._client.Step",
                         .basicsize = sizeof(struct step),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                  Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

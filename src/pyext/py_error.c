/* py_error.c: see py_error.h. */
#include "pyext/py_error.h"

#include "base/banned.h"

static PyObject *exception_of(const struct agx_error *e)
{
    switch (e->code) {
    case AGX_INVALID_ARGUMENT:
    case AGX_DATA_LOSS:
    case AGX_RESOURCE_EXHAUSTED: /* past a limit: the value's fault */
        return PyExc_ValueError;
    case AGX_OUT_OF_RANGE:
        return PyExc_OverflowError;
    default:
        return PyExc_RuntimeError;
    }
}

PyObject *agx_py_raise(struct agx_error **err)
{
    char text[512];

    if (!*err)
        return PyErr_NoMemory();
    (void)agx_error_format(*err, text, sizeof(text));
    if ((*err)->sys_errno != 0) {
        PyObject *args = Py_BuildValue("(is)", (*err)->sys_errno, text);

        if (args)
            PyErr_SetObject(PyExc_OSError, args);
        Py_XDECREF(args);
    } else {
        PyErr_SetString(exception_of(*err), text);
    }
    *err = agx_error_free(*err);
    return NULL;
}

PyObject *agx_py_take_exception(void)
{
    PyObject *type = NULL, *value = NULL, *traceback = NULL;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        (void)PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/*
 * py.h: the only door to CPython.
 *
 * Extension modules keep to the limited API of 3.11, so that one build serves every later version.
 * A comment beside each `PyObject *` that leaves a function says whether the reference is new (the
 * caller's) or borrowed.
 *
 * What the files share begins with agx_py_, what those of one module share with pyclient_ or
 * pyworker_.
 */
#ifndef AGX_PYEXT_PY_H
#define AGX_PYEXT_PY_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include "base/macros.h"

static inline void agx_py_decrefp(PyObject **o)
{
    Py_XDECREF(*o);
}

/* A reference that is given back when the variable goes out of scope. */
#define _cleanup_py_ _cleanup_(agx_py_decrefp)

/* For calls whose outcome changes nothing: drops the result, or the exception. */
static inline void agx_py_ignore(PyObject *result)
{
    Py_XDECREF(result);
    PyErr_Clear();
}

/* Takes `value` into *slot and gives back what was there. */
static inline void agx_py_set(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = value;
    Py_XDECREF(old);
}

#endif

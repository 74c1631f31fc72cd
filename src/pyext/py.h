/*
 * py.h: the only file that includes CPython's header.
 *
 * Extension modules use the limited API of 3.11 only, so one build works for every later version.
 * A comment beside each `PyObject *` that leaves a function says whether the reference is new (the
 * caller's) or borrowed.
 *
 * Functions shared by all files have the prefix agx_py_, those shared within one module pyclient_
 * or pyworker_.
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

/* A reference that is released when the variable goes out of scope. */
#define _cleanup_py_ _cleanup_(agx_py_decrefp)

/* For calls whose outcome does not matter: drops the result, or the exception. */
static inline void agx_py_ignore(PyObject *result)
{
    Py_XDECREF(result);
    PyErr_Clear();
}

/* Stores the reference `value` in *slot and releases the old one. */
static inline void agx_py_set(PyObject **slot, PyObject *value)
{
    PyObject *old = *slot;

    *slot = value;
    Py_XDECREF(old);
}

#endif

/* py_error.h: struct agx_error as Python exceptions, and exceptions as objects. */
#ifndef AGX_PYEXT_PY_ERROR_H
#define AGX_PYEXT_PY_ERROR_H

#include "pyext/py.h"

#include "base/error.h"

/*
 * Raises *err, which it frees, as the exception for its code: ValueError,
 * MemoryError, OverflowError, OSError (where it has an errno) or RuntimeError. Returns NULL, so
 * that callers write `return agx_py_raise(&err)`.
 */
PyObject *agx_py_raise(struct agx_error **err);

/* The exception that is set, with its traceback; none is set afterwards. New, or NULL. */
PyObject *agx_py_take_exception(void);

#endif

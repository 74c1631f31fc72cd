/* py_worker_plan.h: a callable that is ready to be called. _prepare.py makes plans. */
#ifndef AGX_PYEXT_PY_WORKER_PLAN_H
#define AGX_PYEXT_PY_WORKER_PLAN_H

#include "pyext/py.h"

#include <stdbool.h>
#include <stdint.h>

/* How a callable is run. The numbers are those of _prepare.py. */
enum plan_mode {
    PLAN_THREAD,    /* any callable that simply returns */
    PLAN_COROUTINE, /* async def: on the loop */
    PLAN_STREAM,    /* async generator */
    PLAN_BIDI,      /* async generator with a Channel parameter */
};

/* A callable that is ready to be called. */
struct plan {
    PyObject_HEAD PyObject *fn;
    enum plan_mode mode;
    bool simple;        /* no *args or **kwargs, at most 64 parameters: bound in C */
    bool annotated;     /* the receiver can convert text back to the type of its result */
    bool hinted;        /* the server knows the lane */
    unsigned n_posonly; /* of `names` */
    unsigned n_pos;     /* positional ones, positional-only included */
    uint64_t required;  /* a bit for each of `names` */
    uint64_t fills;     /* omitted ones whose default must be validated */
    PyObject *names;    /* tuple of str */
    PyObject *checks;   /* tuple, one for each of `names`: None, a type, or a tuple of types */
    PyObject *validate; /* validate(index, value) -> value, if the check fails */
    PyObject *bind;     /* bind(args, kwargs) -> (args, kwargs), if not simple */
    PyObject *dump;     /* dump(value) -> value, or None: the value is packed as it is */
};

PyTypeObject *pyworker_plan_type_new(PyObject *module);
/*
 * Validates received arguments. *ret_args is a new tuple whose first `lead` elements are left
 * empty for the caller; *ret_kwargs is new or NULL. -1 with an exception.
 */
int pyworker_plan_bind(struct plan *p, PyObject *args, PyObject *kwargs, unsigned lead,
                       PyObject **ret_args, PyObject **ret_kwargs) AGX_MUST_CHECK;

#endif

/*
 * py_worker_plan.c: a callable that is ready to be called, and the binding of its arguments.
 *
 * Python's _prepare.py makes plans; this file does the work of each call. A parameter first has a
 * cheap check (the value is exactly of the annotated builtin type). If it fails, Python validates
 * the value completely. Arguments that do not bind are left to Python too, because people know its
 * errors.
 */
#include "pyext/py_worker.h"

#include "base/limits.h"

#include "base/banned.h"

enum { MAX_SIMPLE = 64 };

static int index_of(const struct plan *p, PyObject *name)
{
    Py_ssize_t n = PyTuple_Size(p->names);

    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *other = PyTuple_GetItem(p->names, i);

        if (other == name || PyUnicode_Compare(other, name) == 0)
            return (int)i;
    }
    PyErr_Clear();
    return -1;
}

/* 1: every parameter is given, exactly once; 0: leave it to Python. */
static int fits(const struct plan *p, PyObject *args, PyObject *kwargs)
{
    size_t n = (size_t)PyList_Size(args);
    PyObject *key, *value; /* borrowed */
    Py_ssize_t at = 0;
    uint64_t seen;

    if (!p->simple || n > p->n_pos)
        return 0;
    seen = n == MAX_SIMPLE ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    while (PyDict_Next(kwargs, &at, &key, &value)) {
        int i = PyUnicode_Check(key) ? index_of(p, key) : -1;

        if (i < 0 || (unsigned)i < p->n_posonly || (seen >> i & 1))
            return 0;
        seen |= UINT64_C(1) << i;
    }
    return !(p->required & ~seen) && !(p->fills & ~seen);
}

/* Does the value pass without conversion? */
static bool passes(PyObject *check, PyObject *value)
{
    PyObject *type = (PyObject *)Py_TYPE(value);

    if (check == Py_None || check == type)
        return true;
    if (!PyTuple_Check(check))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(check); i++) {
        if (PyTuple_GetItem(check, i) == type)
            return true;
    }
    return false;
}

/* New. */
static PyObject *checked(struct plan *p, unsigned i, PyObject *value)
{
    PyObject *check = PyTuple_GetItem(p->checks, (Py_ssize_t)i);

    if (passes(check, value))
        return Py_NewRef(value);
    if (check == (PyObject *)&PyFloat_Type && Py_TYPE(value) == &PyLong_Type)
        return PyNumber_Float(value);
    return PyObject_CallFunction(p->validate, "IO", i, value);
}

static PyObject *check_args(struct plan *p, PyObject *args, unsigned lead)
{
    Py_ssize_t n = PyList_Size(args);
    _cleanup_py_ PyObject *tuple = PyTuple_New(n + (Py_ssize_t)lead);

    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        PyObject *v = checked(p, (unsigned)i, PyList_GetItem(args, i));

        if (!v)
            return NULL;
        PyTuple_SetItem(tuple, i + (Py_ssize_t)lead, v);
    }
    return AGX_TAKE_PTR(tuple);
}

/* Changes the dict in place: no other code has it. */
static int check_kwargs(struct plan *p, PyObject *kwargs)
{
    PyObject *key, *value; /* borrowed */
    Py_ssize_t at = 0;

    while (PyDict_Next(kwargs, &at, &key, &value)) {
        PyObject *v = checked(p, (unsigned)index_of(p, key), value);
        int r = !v ? -1 : v == value ? 0 : PyDict_SetItem(kwargs, key, v);

        Py_XDECREF(v);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* The tuple with `lead` empty elements in front. New. */
static PyObject *shifted(PyObject *tuple, unsigned lead)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    PyObject *out = PyTuple_New(n + (Py_ssize_t)lead);

    for (Py_ssize_t i = 0; out && i < n; i++)
        PyTuple_SetItem(out, i + (Py_ssize_t)lead, Py_NewRef(PyTuple_GetItem(tuple, i)));
    return out;
}

static int bind_in_python(struct plan *p, PyObject *args, PyObject *kwargs, unsigned lead,
                          PyObject **ret_args, PyObject **ret_kwargs)
{
    _cleanup_py_ PyObject *bound = PyObject_CallFunctionObjArgs(p->bind, args, kwargs, NULL);
    PyObject *a, *k; /* borrowed */

    if (!bound)
        return -1;
    if (!PyArg_ParseTuple(bound, "O!O!", &PyTuple_Type, &a, &PyDict_Type, &k))
        return -1;
    *ret_args = shifted(a, lead);
    if (!*ret_args)
        return -1;
    *ret_kwargs = PyDict_Size(k) > 0 ? Py_NewRef(k) : NULL;
    return 0;
}

int pyworker_plan_bind(struct plan *p, PyObject *args, PyObject *kwargs, unsigned lead,
                       PyObject **ret_args, PyObject **ret_kwargs)
{
    if (!fits(p, args, kwargs))
        return bind_in_python(p, args, kwargs, lead, ret_args, ret_kwargs);
    if (PyDict_Size(kwargs) > 0 && check_kwargs(p, kwargs) < 0)
        return -1;
    *ret_args = check_args(p, args, lead);
    if (!*ret_args)
        return -1;
    *ret_kwargs = PyDict_Size(kwargs) > 0 ? Py_NewRef(kwargs) : NULL;
    return 0;
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *words[] = { "fn",       "mode",     "simple", "annotated", "n_posonly",
                             "n_pos",    "required", "fills",  "names",     "checks",
                             "validate", "bind",     "dump",   NULL };
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct plan v = { 0 }, *p;
    unsigned long long required, fills;
    int mode, simple, annotated;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OippIIKKO!O!OOO:Plan", words, &v.fn, &mode,
                                     &simple, &annotated, &v.n_posonly, &v.n_pos, &required, &fills,
                                     &PyTuple_Type, &v.names, &PyTuple_Type, &v.checks, &v.validate,
                                     &v.bind, &v.dump))
        return NULL;
    p = (struct plan *)alloc(type, 0);
    if (!p)
        return NULL;
    p->fn = Py_NewRef(v.fn);
    p->mode = (enum plan_mode)mode;
    p->simple = simple && PyTuple_Size(v.names) <= MAX_SIMPLE;
    p->annotated = annotated;
    p->n_posonly = v.n_posonly;
    p->n_pos = v.n_pos;
    p->required = required;
    p->fills = fills;
    p->names = Py_NewRef(v.names);
    p->checks = Py_NewRef(v.checks);
    p->validate = Py_NewRef(v.validate);
    p->bind = Py_NewRef(v.bind);
    p->dump = Py_NewRef(v.dump);
    return (PyObject *)p;
}

static void plan_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    struct plan *p = (struct plan *)self;

    Py_XDECREF(p->fn);
    Py_XDECREF(p->names);
    Py_XDECREF(p->checks);
    Py_XDECREF(p->validate);
    Py_XDECREF(p->bind);
    Py_XDECREF(p->dump);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *get_fn(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((struct plan *)self)->fn);
}

static PyObject *get_mode(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong((long)((struct plan *)self)->mode);
}

static PyObject *get_bind(PyObject *self, void *closure)
{
    (void)closure;
    return Py_NewRef(((struct plan *)self)->bind);
}

static PyGetSetDef plan_getset[] = {
    { "fn", get_fn, NULL, "the callable", NULL },
    { "mode", get_mode, NULL, "how it is run", NULL },
    { "bind", get_bind, NULL, "binds and validates arguments in Python", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

PyTypeObject *pyworker_plan_type_new(PyObject *module)
{
    static PyType_Slot slots[] = {
        { Py_tp_new, (void *)plan_new },
        { Py_tp_dealloc, (void *)plan_dealloc },
        { Py_tp_getset, plan_getset },
        { Py_tp_doc, "A callable that is ready to be called." },
        { 0, NULL },
    };
    static PyType_Spec spec = {
        .name = "agentix._worker.Plan",
        .basicsize = sizeof(struct plan),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };

    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

PyObject *pyworker_plan_key(const struct agx_worker_frame *f)
{
    if (f->by_target)
        return PyUnicode_DecodeUTF8(f->callable.ptr, (Py_ssize_t)f->callable.len, "strict");
    return PyBytes_FromStringAndSize(f->callable.ptr, (Py_ssize_t)f->callable.len);
}

struct plan *pyworker_find_plan(struct worker *w, PyObject *key, bool *ret_known)
{
    PyObject *found = PyDict_GetItemWithError(w->plans, key);

    *ret_known = found != NULL;
    return found && found != Py_None ? (struct plan *)found : NULL;
}

struct plan *pyworker_load_plan(struct worker *w, PyObject *key, bool by_target)
{
    _cleanup_py_ PyObject *pair =
        PyObject_CallFunctionObjArgs(w->glue.prepare, key, by_target ? Py_True : Py_False, NULL);
    PyObject *plan; /* borrowed */
    int may_cache;

    if (!pair || !PyArg_ParseTuple(pair, "O!p", w->plan_type, &plan, &may_cache))
        return NULL;
    /* Partials and instances have unlimited names: the cache must have a limit. */
    if (PyDict_Size(w->plans) >= AGX_WORKER_PLANS_MAX)
        PyDict_Clear(w->plans);
    if (PyDict_SetItem(w->plans, key, may_cache ? plan : Py_None) < 0)
        return NULL;
    return (struct plan *)Py_NewRef(plan);
}

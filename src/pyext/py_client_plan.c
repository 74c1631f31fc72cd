/* py_client_plan.c: the type Plan: the facts about a remote function that all its calls share. */
#include "pyext/py_client_fn.h"

#include "base/banned.h"

PyObject *pyclient_plan_accept(struct plan *p, PyObject *value)
{
    PyObject *ret;

    if (!p->validate || (PyObject *)Py_TYPE(value) == p->type)
        return value;
    ret = PyObject_CallFunctionObjArgs(p->validate, value, NULL);
    Py_DECREF(value);
    return ret;
}

/* None means that there is no such object. */
static void set_optional(PyObject **field, PyObject *value)
{
    *field = value == Py_None ? NULL : Py_NewRef(value);
}

static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "kind",     "name", "prefix",   "failure", "dump",
                             "fallback", "type", "validate", NULL };
    PyObject *name, *prefix, *failure, *dump, *fallback, *exact, *validate;
    const char *kind;
    enum agx_remote_kind found;
    struct plan *p;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "sUOOOOOO:Plan", names, &kind, &name, &prefix,
                                     &failure, &dump, &fallback, &exact, &validate))
        return NULL;
    if (!agx_remote_kind_find(agx_str_from(kind), &found))
        return PyErr_Format(PyExc_ValueError, "unknown kind of call: '%s'", kind);
    if (failure == Py_None && !PyBytes_Check(prefix))
        return PyErr_Format(PyExc_TypeError, "prefix must be bytes");
    p = (struct plan *)PyType_GenericAlloc(type, 0);
    if (!p)
        return NULL;
    p->kind = found;
    p->name = Py_NewRef(name);
    set_optional(&p->prefix, prefix);
    set_optional(&p->failure, failure);
    set_optional(&p->dump, dump);
    set_optional(&p->fallback, fallback);
    set_optional(&p->type, exact);
    set_optional(&p->validate, validate);
    return (PyObject *)p;
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct plan *p = (struct plan *)self;

    Py_VISIT(Py_TYPE(self));
    Py_VISIT(p->failure);
    Py_VISIT(p->dump);
    Py_VISIT(p->fallback);
    Py_VISIT(p->type);
    Py_VISIT(p->validate);
    return 0;
}

static int plan_clear(PyObject *self)
{
    struct plan *p = (struct plan *)self;

    Py_CLEAR(p->name);
    Py_CLEAR(p->prefix);
    Py_CLEAR(p->failure);
    Py_CLEAR(p->dump);
    Py_CLEAR(p->fallback);
    Py_CLEAR(p->type);
    Py_CLEAR(p->validate);
    return 0;
}

static void plan_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_GC_UnTrack(self);
    (void)plan_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *plan_get_kind(PyObject *self, void *unused)
{
    struct agx_str kind = agx_remote_kind_name(((struct plan *)self)->kind);

    (void)unused;
    return PyUnicode_FromStringAndSize(kind.ptr, (Py_ssize_t)kind.len);
}

static PyObject *plan_get_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((struct plan *)self)->name);
}

static PyGetSetDef plan_getset[] = {
    { "kind", plan_get_kind, NULL, "'unary', 'stream' or 'bidi'", NULL },
    { "name", plan_get_name, NULL, "module::qualname", NULL },
    { 0 },
};

PyObject *pyclient_plan_type_new(PyObject *module)
{
    PyType_Slot slots[] = {
        { Py_tp_doc, "The facts about a remote function that all its calls share." },
        { Py_tp_new, plan_new },
        { Py_tp_dealloc, plan_dealloc },
        { Py_tp_traverse, plan_traverse },
        { Py_tp_clear, plan_clear },
        { Py_tp_getset, plan_getset },
        { 0, NULL },
    };
    PyType_Spec spec = { .name = "agentix._client.Plan",
                         .basicsize = sizeof(struct plan),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         .slots = slots };

    return PyType_FromModuleAndSpec(module, &spec, NULL);
}

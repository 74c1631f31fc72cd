/* py_codec.c: the module agentix._codec: pack and unpack for Python code. */
#include "pyext/py_error.h"
#include "pyext/py_msgpack.h"

#include "base/limits.h"

#include "base/banned.h"

static PyObject *pack(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "value", "fallback", "int_keys", "byte_dtypes", NULL };
    struct agx_py_pack_options options = { .int_keys = true, .byte_dtypes = true };
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(AGX_MESSAGE_MAX);
    PyObject *value, *fallback = Py_None;
    int int_keys = 1, byte_dtypes = 1;
    struct agx_mp_writer w;
    struct agx_error *err = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$Opp:pack", names, &value, &fallback,
                                     &int_keys, &byte_dtypes))
        return NULL;
    options.fallback = fallback == Py_None ? NULL : fallback;
    options.int_keys = int_keys != 0;
    options.byte_dtypes = byte_dtypes != 0;
    agx_mp_writer_init(&w, &out);
    if (agx_py_pack(PyModule_GetState(module), &w, value, &options) < 0)
        return NULL;
    if (agx_mp_writer_end(&w, &err) < 0)
        return agx_py_raise(&err);
    return PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.len);
}

static PyObject *unpack(PyObject *module, PyObject *bytes)
{
    Py_buffer view;
    PyObject *value;

    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    value = agx_py_unpack_raw(PyModule_GetState(module), agx_str_bytes(view.buf, (size_t)view.len));
    PyBuffer_Release(&view);
    return value;
}

static int py_codec_execute(PyObject *module)
{
    struct agx_py_codec *c = PyModule_GetState(module);

    if (agx_py_codec_init(c) < 0)
        return -1;
    return PyModule_AddObjectRef(module, "ExtType", c->ext_type);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    return agx_py_codec_visit(PyModule_GetState(module), visit, arg);
}

static void module_free(void *module)
{
    agx_py_codec_done(PyModule_GetState(module));
}

PyDoc_STRVAR(pack_doc, "pack(value, *, fallback=None, int_keys=True, byte_dtypes=True) -> bytes\n\n"
                       "The msgpack form of a value. `fallback` replaces objects without one.");
PyDoc_STRVAR(unpack_doc, "unpack(data) -> object\n\nThe value that msgpack bytes stand for.");

static PyMethodDef methods[] = {
    { "pack", (PyCFunction)(void (*)(void))pack, METH_VARARGS | METH_KEYWORDS, pack_doc },
    { "unpack", unpack, METH_O, unpack_doc },
    { NULL, NULL, 0, NULL },
};

static PyModuleDef_Slot slots[] = {
    { Py_mod_exec, (void *)py_codec_execute },
    { 0, NULL },
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "agentix._codec",
    .m_doc = "msgpack for remote calls.",
    .m_size = sizeof(struct agx_py_codec),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__codec(void);

PyMODINIT_FUNC PyInit__codec(void)
{
    return PyModuleDef_Init(&definition);
}

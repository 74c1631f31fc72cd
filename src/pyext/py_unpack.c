/* py_unpack.c: msgpack to Python objects; see py_msgpack.h. */
#include "pyext/py_msgpack.h"

#include "pyext/py_error.h"

#include "base/limits.h"
#include "codec/mp_ext.h"

#include "base/banned.h"

/* Text and depth are checked here: by Python's own decoder, and as we go down. */
static const struct agx_mp_limits limits = AGX_MP_LIMITS_INIT;

static PyObject *unpack_array(struct agx_py_codec *c, struct agx_mp_reader *r, uint32_t n)
{
    _cleanup_py_ PyObject *list = NULL;
    struct agx_error *err = NULL;

    if (agx_mp_enter(r, &err) < 0)
        return agx_py_raise(&err);
    list = PyList_New((Py_ssize_t)n);
    for (uint32_t i = 0; list && i < n; i++) {
        PyObject *item = agx_py_unpack(c, r);

        if (!item)
            return NULL;
        PyList_SetItem(list, (Py_ssize_t)i, item);
    }
    agx_mp_leave(r);
    return AGX_TAKE_PTR(list);
}

static PyObject *unpack_key(struct agx_py_codec *c, struct agx_mp_reader *r)
{
    struct agx_mp_reader ahead = *r;
    struct agx_mp_token t;
    struct agx_error *err = NULL;

    if (agx_mp_next(&ahead, &t, &err) < 0)
        return agx_py_raise(&err);
    if (t.type == AGX_MP_ARRAY || t.type == AGX_MP_MAP || t.type == AGX_MP_EXT) {
        PyErr_Format(PyExc_ValueError, "msgpack: a map key is of type %s",
                     agx_mp_type_name(t.type));
        return NULL;
    }
    return agx_py_unpack(c, r);
}

static PyObject *unpack_map(struct agx_py_codec *c, struct agx_mp_reader *r, uint32_t n)
{
    _cleanup_py_ PyObject *dict = NULL;
    struct agx_error *err = NULL;

    if (agx_mp_enter(r, &err) < 0)
        return agx_py_raise(&err);
    dict = PyDict_New();
    for (uint32_t i = 0; dict && i < n; i++) {
        _cleanup_py_ PyObject *key = unpack_key(c, r), *value = NULL;

        value = key ? agx_py_unpack(c, r) : NULL;
        if (!value || PyDict_SetItem(dict, key, value) < 0)
            return NULL;
    }
    agx_mp_leave(r);
    return AGX_TAKE_PTR(dict);
}

static PyObject *ext_pair(struct agx_py_codec *c, int8_t code, struct agx_str data)
{
    _cleanup_py_ PyObject *pair =
        Py_BuildValue("((iy#))", (int)code, data.ptr, (Py_ssize_t)data.len);

    return pair ? PyObject_Call(c->ext_type, pair, NULL) : NULL;
}

/* Is numpy available? Never raises. */
static bool find_numpy(struct agx_py_codec *c)
{
    _cleanup_py_ PyObject *numpy = NULL;

    if (c->no_numpy || (c->ndarray && c->dtype))
        return !c->no_numpy;
    numpy = PyImport_ImportModule("numpy");
    if (numpy && !c->ndarray)
        c->ndarray = PyObject_GetAttrString(numpy, "ndarray");
    if (numpy)
        c->dtype = PyObject_GetAttrString(numpy, "dtype");
    PyErr_Clear();
    c->no_numpy = !c->ndarray || !c->dtype;
    return !c->no_numpy;
}

/* numpy.ndarray(shape, dtype, data): over bytes, so that it is read-only. */
static PyObject *unpack_ndarray(struct agx_py_codec *c, struct agx_str payload)
{
    _cleanup_py_ PyObject *shape = NULL, *dtype = NULL, *data = NULL;
    struct agx_mp_ndarray a;
    struct agx_error *err = NULL;

    if (agx_mp_ndarray_parse(payload, &a, &err) < 0)
        return agx_py_raise(&err);
    if (!find_numpy(c))
        return ext_pair(c, AGX_MP_EXT_NDARRAY, payload);
    shape = PyTuple_New((Py_ssize_t)a.ndim);
    for (unsigned i = 0; shape && i < a.ndim; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(a.shape[i]);

        if (!n)
            return NULL;
        PyTuple_SetItem(shape, (Py_ssize_t)i, n);
    }
    dtype = PyObject_CallFunction(c->dtype, "s#", a.dtype.ptr, (Py_ssize_t)a.dtype.len);
    data = PyBytes_FromStringAndSize(a.data.ptr, (Py_ssize_t)a.data.len);
    if (!shape || !dtype || !data)
        return NULL;
    return PyObject_CallFunctionObjArgs(c->ndarray, shape, dtype, data, NULL);
}

static PyObject *unpack_model(struct agx_py_codec *c, const struct agx_mp_reader *outer,
                              struct agx_str payload)
{
    struct agx_mp_reader inner;
    struct agx_error *err = NULL;

    if (agx_mp_open_model(outer, payload, &inner, &err) < 0)
        return agx_py_raise(&err);
    return agx_py_unpack(c, &inner);
}

static PyObject *unpack_ext(struct agx_py_codec *c, const struct agx_mp_reader *r,
                            const struct agx_mp_token *t)
{
    if (t->ext_type == AGX_MP_EXT_NDARRAY)
        return unpack_ndarray(c, t->bytes);
    if (t->ext_type == AGX_MP_EXT_MODEL)
        return unpack_model(c, r, t->bytes);
    return ext_pair(c, t->ext_type, t->bytes);
}

PyObject *agx_py_unpack(struct agx_py_codec *c, struct agx_mp_reader *r)
{
    struct agx_mp_token t;
    struct agx_error *err = NULL;

    if (agx_mp_next(r, &t, &err) < 0)
        return agx_py_raise(&err);
    switch (t.type) {
    case AGX_MP_NIL:
        Py_RETURN_NONE;
    case AGX_MP_BOOL:
        return PyBool_FromLong(t.boolean);
    case AGX_MP_UINT:
        return PyLong_FromUnsignedLongLong(t.u);
    case AGX_MP_INT:
        return PyLong_FromLongLong(t.i);
    case AGX_MP_FLOAT:
        return PyFloat_FromDouble(t.f);
    case AGX_MP_STR:
        return PyUnicode_DecodeUTF8(t.bytes.ptr, (Py_ssize_t)t.bytes.len, "strict");
    case AGX_MP_BIN:
        return PyBytes_FromStringAndSize(t.bytes.ptr, (Py_ssize_t)t.bytes.len);
    case AGX_MP_ARRAY:
        return unpack_array(c, r, t.count);
    case AGX_MP_MAP:
        return unpack_map(c, r, t.count);
    case AGX_MP_EXT:
        return unpack_ext(c, r, &t);
    }
    Py_UNREACHABLE();
}

PyObject *agx_py_unpack_raw(struct agx_py_codec *c, struct agx_str raw)
{
    struct agx_mp_reader r;
    struct agx_error *err = NULL;
    PyObject *value;

    if (agx_mp_reader_init(&r, raw, &limits, &err) < 0)
        return agx_py_raise(&err);
    value = agx_py_unpack(c, &r);
    if (value && agx_mp_expect_end(&r, &err) < 0) {
        Py_DECREF(value);
        return agx_py_raise(&err);
    }
    return value;
}

int agx_py_codec_init(struct agx_py_codec *c)
{
    static PyStructSequence_Field fields[] = {
        { "code", "the extension's type" },
        { "data", "its bytes" },
        { NULL, NULL },
    };
    static PyStructSequence_Desc description = {
        "agentix.ExtType",
        "a msgpack extension of a type that has no meaning here",
        fields,
        2,
    };

    *c = (struct agx_py_codec){ .ext_type = (PyObject *)PyStructSequence_NewType(&description) };
    return c->ext_type ? 0 : -1;
}

void agx_py_codec_done(struct agx_py_codec *c)
{
    Py_CLEAR(c->ext_type);
    Py_CLEAR(c->ndarray);
    Py_CLEAR(c->dtype);
    Py_CLEAR(c->base_model);
}

int agx_py_codec_visit(struct agx_py_codec *c, visitproc visit, void *arg)
{
    Py_VISIT(c->ext_type);
    Py_VISIT(c->ndarray);
    Py_VISIT(c->dtype);
    Py_VISIT(c->base_model);
    return 0;
}

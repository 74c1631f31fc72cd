/*
 * py_pack.c: Python objects to msgpack; see py_msgpack.h.
 *
 * User code can run during packing (fallback, a subclass's methods), and can change the container
 * that is being packed. The packer therefore holds a reference to each element, and fails if the
 * size of a container no longer matches its header.
 */
#include "pyext/py_msgpack.h"

#include "pyext/py_error.h"

#include "base/limits.h"
#include "codec/mp_ext.h"

#include "base/banned.h"

struct packer {
    struct agx_py_codec *codec;
    struct agx_mp_writer *w;
    const struct agx_py_pack_options *options;
    unsigned depth;
};

static int pack_value(struct packer *p, PyObject *v);

static int pack_int(struct packer *p, PyObject *v)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(v, &overflow);
    unsigned long long u;

    if (i == -1 && overflow == 0 && PyErr_Occurred())
        return -1;
    if (overflow == 0) {
        agx_mp_write_int(p->w, i);
        return 0;
    }
    if (overflow > 0) {
        u = PyLong_AsUnsignedLongLong(v);
        if (u != (unsigned long long)-1 || !PyErr_Occurred()) {
            agx_mp_write_uint(p->w, u);
            return 0;
        }
        PyErr_Clear();
    }
    if (!p->options->fallback)
        PyErr_SetString(PyExc_OverflowError, "integer does not fit into 64 bits");
    return p->options->fallback ? 1 : -1;
}

static int pack_float(struct packer *p, PyObject *v)
{
    double f = PyFloat_AsDouble(v);

    if (f == -1.0 && PyErr_Occurred())
        return -1;
    agx_mp_write_float(p->w, f);
    return 0;
}

static int pack_text(struct packer *p, PyObject *v)
{
    Py_ssize_t len;
    const char *s = PyUnicode_AsUTF8AndSize(v, &len);

    if (!s)
        return -1;
    agx_mp_write_str(p->w, agx_str_bytes(s, (size_t)len));
    return 0;
}

static int pack_buffer(struct packer *p, PyObject *v)
{
    Py_buffer view;

    if (PyObject_GetBuffer(v, &view, PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    agx_mp_write_bin(p->w, agx_str_bytes(view.buf, (size_t)view.len));
    PyBuffer_Release(&view);
    return 0;
}

static int py_pack_enter(struct packer *p)
{
    if (p->depth < AGX_DEPTH_MAX) {
        p->depth++;
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "nested deeper than the limit of %d", AGX_DEPTH_MAX);
    return -1;
}

/* One element, held while it is packed. */
static int pack_held(struct packer *p, PyObject *v)
{
    int r;

    Py_INCREF(v);
    r = pack_value(p, v);
    Py_DECREF(v);
    return r;
}

static int size_changed(void)
{
    PyErr_SetString(PyExc_RuntimeError, "container changed size while it was packed");
    return -1;
}

static int pack_list(struct packer *p, PyObject *v)
{
    Py_ssize_t n = PyList_Size(v);

    if (py_pack_enter(p) < 0)
        return -1;
    agx_mp_write_array(p->w, (size_t)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyList_Size(v) != n)
            return size_changed();
        if (pack_held(p, PyList_GetItem(v, i)) < 0)
            return -1;
    }
    p->depth--;
    return 0;
}

static int pack_tuple(struct packer *p, PyObject *v)
{
    Py_ssize_t n = PyTuple_Size(v);

    if (py_pack_enter(p) < 0)
        return -1;
    agx_mp_write_array(p->w, (size_t)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (pack_held(p, PyTuple_GetItem(v, i)) < 0)
            return -1;
    }
    p->depth--;
    return 0;
}

static bool is_number_or_none(PyObject *v)
{
    return v == Py_None || PyLong_Check(v) || PyFloat_Check(v); /* a bool is an int */
}

/* A key that is not plain text: bytes are unchanged, numbers become text for old receivers. */
static int pack_odd_key(struct packer *p, PyObject *key)
{
    _cleanup_py_ PyObject *other = NULL;

    if (PyUnicode_Check(key) || PyBytes_Check(key))
        return pack_value(p, key);
    if (is_number_or_none(key)) {
        if (p->options->int_keys)
            return pack_value(p, key);
        other = PyObject_Str(key);
        return other ? pack_text(p, other) : -1;
    }
    if (!p->options->fallback) {
        PyErr_Format(PyExc_TypeError, "cannot encode %R as a map key", Py_TYPE(key));
        return -1;
    }
    other = PyObject_CallFunctionObjArgs(p->options->fallback, key, NULL);
    if (!other)
        return -1;
    if (PyUnicode_Check(other) || PyBytes_Check(other))
        return pack_value(p, other);
    if (is_number_or_none(other))
        return pack_odd_key(p, other);
    PyErr_Format(PyExc_TypeError, "cannot encode %R as a map key", Py_TYPE(key));
    return -1;
}

static int pack_pair(struct packer *p, PyObject *key, PyObject *value)
{
    int r;

    Py_INCREF(key);
    Py_INCREF(value);
    r = PyUnicode_CheckExact(key) ? pack_text(p, key) : pack_odd_key(p, key);
    if (r == 0)
        r = pack_value(p, value);
    Py_DECREF(value);
    Py_DECREF(key);
    return r;
}

static int pack_dict(struct packer *p, PyObject *v)
{
    PyObject *key, *value; /* borrowed */
    Py_ssize_t n = PyDict_Size(v), at = 0, done = 0;

    if (py_pack_enter(p) < 0)
        return -1;
    agx_mp_write_map(p->w, (size_t)n);
    while (PyDict_Next(v, &at, &key, &value)) {
        if (pack_pair(p, key, value) < 0)
            return -1;
        done++;
        if (PyDict_Size(v) != n)
            return size_changed();
    }
    p->depth--;
    return done == n ? 0 : size_changed();
}

/* 1: not an array at all; 0 or -1: packed or failed. */
static int pack_parsed_array(struct packer *p, struct agx_mp_ndarray *a)
{
    struct agx_error *err = NULL;

    if (a->dtype.len > 0 && a->dtype.ptr[0] == '|' && !p->options->byte_dtypes) {
        PyErr_SetString(PyExc_TypeError,
                        "cannot encode an array of a one-byte dtype for this receiver");
        return -1;
    }
    if (agx_mp_write_ndarray(p->w, a, &err) < 0) {
        (void)agx_py_raise(&err);
        return -1;
    }
    return 0;
}

static int read_shape(PyObject *array, struct agx_mp_ndarray *a)
{
    _cleanup_py_ PyObject *shape = PyObject_GetAttrString(array, "shape");
    Py_ssize_t n = shape && PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;

    if (n < 0 || n > AGX_MP_NDIM_MAX) {
        if (shape)
            PyErr_SetString(PyExc_TypeError, "cannot encode an array of this shape");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        a->shape[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred())
            return -1;
    }
    a->ndim = (unsigned)n;
    return 0;
}

static int pack_array(struct packer *p, PyObject *v)
{
    _cleanup_py_ PyObject *dtype = PyObject_GetAttrString(v, "dtype"), *name = NULL, *copy = NULL;
    struct agx_mp_ndarray a = { 0 };
    Py_buffer view = { 0 };
    Py_ssize_t len;
    int r;

    name = dtype ? PyObject_GetAttrString(dtype, "str") : NULL;
    a.dtype.ptr = name ? PyUnicode_AsUTF8AndSize(name, &len) : NULL;
    if (!a.dtype.ptr || read_shape(v, &a) < 0)
        return -1;
    a.dtype.len = (size_t)len;
    /* Dates have no buffer, and slices no contiguous one: those are copied first. */
    if (PyObject_GetBuffer(v, &view, PyBUF_C_CONTIGUOUS) < 0) {
        PyErr_Clear();
        copy = PyObject_CallMethod(v, "tobytes", NULL);
        if (!copy || PyObject_GetBuffer(copy, &view, PyBUF_SIMPLE) < 0)
            return -1;
    }
    a.data = agx_str_bytes(view.buf, (size_t)view.len);
    r = pack_parsed_array(p, &a);
    PyBuffer_Release(&view);
    return r;
}

/* The attribute of a module if that is already imported, kept in *slot; otherwise NULL. Borrowed;
 * never raises. */
static PyObject *type_if_imported(PyObject **slot, const char *module, const char *name)
{
    _cleanup_py_ PyObject *key = NULL, *found = NULL;

    if (*slot)
        return *slot;
    key = PyUnicode_FromString(module);
    found = key ? PyImport_GetModule(key) : NULL;
    if (found)
        *slot = PyObject_GetAttrString(found, name);
    PyErr_Clear();
    return *slot;
}

static bool is_instance(PyObject *v, PyObject *type)
{
    return type && PyType_IsSubtype(Py_TYPE(v), (PyTypeObject *)type);
}

static int pack_model(struct packer *p, PyObject *v)
{
    _cleanup_py_ PyObject *fields = PyObject_CallMethod(v, "model_dump", NULL);
    _cleanup_buf_ struct agx_buf body = AGX_BUF_INIT(AGX_MESSAGE_MAX);
    struct agx_mp_writer inner, *outer = p->w;
    struct agx_error *err = NULL;
    int r;

    if (!fields || py_pack_enter(p) < 0)
        return -1;
    agx_mp_writer_init(&inner, &body);
    p->w = &inner;
    r = pack_value(p, fields);
    p->w = outer;
    p->depth--;
    if (agx_mp_writer_end(&inner, &err) < 0 && r == 0) {
        (void)agx_py_raise(&err);
        r = -1;
    }
    err = agx_error_free(err);
    if (r == 0)
        agx_mp_write_model(p->w, agx_buf_peek(&body));
    return r;
}

static int pack_other(struct packer *p, PyObject *v)
{
    _cleanup_py_ PyObject *other = NULL;
    int r;

    if (is_instance(v, type_if_imported(&p->codec->ndarray, "numpy", "ndarray")))
        return pack_array(p, v);
    if (p->options->fallback) {
        other = PyObject_CallFunctionObjArgs(p->options->fallback, v, NULL);
        /* Each replacement counts as a level, which stops a fallback that returns its argument. */
        if (!other || py_pack_enter(p) < 0)
            return -1;
        r = pack_value(p, other);
        p->depth--;
        return r;
    }
    if (is_instance(v, type_if_imported(&p->codec->base_model, "pydantic", "BaseModel")))
        return pack_model(p, v);
    PyErr_Format(PyExc_TypeError, "agentix.codec: cannot encode %R", Py_TYPE(v));
    return -1;
}

/* A timestamp extension is packed unchanged; other pairs are packed as arrays, like any tuple. */
static int pack_pair_or_timestamp(struct packer *p, PyObject *v)
{
    long code;
    PyObject *data; /* borrowed */

    if ((PyObject *)Py_TYPE(v) != p->codec->ext_type)
        return pack_tuple(p, v);
    code = PyLong_AsLong(PyTuple_GetItem(v, 0));
    PyErr_Clear();
    data = PyTuple_GetItem(v, 1);
    if (code != -1 || !PyBytes_Check(data))
        return pack_tuple(p, v);
    agx_mp_write_ext(p->w, -1, agx_str_bytes(PyBytes_AsString(data), (size_t)PyBytes_Size(data)));
    return 0;
}

/* Objects that are not exactly of a builtin type are packed as the type that they derive from. */
static int pack_derived(struct packer *p, PyObject *v)
{
    if (PyUnicode_Check(v))
        return pack_text(p, v);
    if (PyLong_Check(v))
        return pack_int(p, v);
    if (PyFloat_Check(v))
        return pack_float(p, v);
    if (PyBytes_Check(v) || PyByteArray_Check(v) || PyMemoryView_Check(v))
        return pack_buffer(p, v);
    if (PyDict_Check(v))
        return pack_dict(p, v);
    if (PyList_Check(v))
        return pack_list(p, v);
    if (PyTuple_Check(v))
        return pack_pair_or_timestamp(p, v);
    return pack_other(p, v);
}

static int pack_value(struct packer *p, PyObject *v)
{
    PyTypeObject *type = Py_TYPE(v);
    int r;

    if (type == &PyUnicode_Type)
        return pack_text(p, v);
    if (v == Py_None) {
        agx_mp_write_nil(p->w);
        return 0;
    }
    if (type == &PyBool_Type) {
        agx_mp_write_bool(p->w, v == Py_True);
        return 0;
    }
    if (type == &PyDict_Type)
        return pack_dict(p, v);
    if (type == &PyList_Type)
        return pack_list(p, v);
    if (type == &PyFloat_Type)
        return pack_float(p, v);
    r = type == &PyLong_Type ? pack_int(p, v) : pack_derived(p, v);
    return r > 0 ? pack_other(p, v) : r; /* the fallback handles integers past 64 bits */
}

int agx_py_pack(struct agx_py_codec *c, struct agx_mp_writer *w, PyObject *value,
                const struct agx_py_pack_options *options)
{
    struct packer p = { .codec = c, .w = w, .options = options };

    return pack_value(&p, value);
}

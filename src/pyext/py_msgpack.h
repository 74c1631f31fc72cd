/*
 * py_msgpack.h: Python objects as msgpack and back.
 *
 * To msgpack: None, bool, int (smallest form), float (float64), str, bytes, bytearray, memoryview
 * (bin), list, tuple, dict, and subclasses of these as their base type; numpy arrays as extension
 * 1. Packing never imports numpy: code that has an array has imported it.
 *
 * From msgpack: the same types (bin is bytes, arrays are lists). Text must be UTF-8, map keys are
 * scalars. Extension 1 is a read-only numpy array, 2 a dict, any other an ExtType pair (code,
 * data); without numpy, 1 is such a pair too.
 */
#ifndef AGX_PYEXT_PY_MSGPACK_H
#define AGX_PYEXT_PY_MSGPACK_H

#include "pyext/py.h"

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

/* Types that both directions have looked up so far; one for each module. Owns all references. */
struct agx_py_codec {
    PyObject *ext_type;   /* the type of pairs (code, data) */
    PyObject *ndarray;    /* numpy.ndarray, once numpy was found */
    PyObject *dtype;      /* numpy.dtype */
    PyObject *base_model; /* pydantic.BaseModel, once pydantic was found */
    bool no_numpy;        /* an import failed: do not try for every array */
};

/* 0, or -1 with an exception; _done() in both cases. */
int agx_py_codec_init(struct agx_py_codec *c) AGX_MUST_CHECK;
void agx_py_codec_done(struct agx_py_codec *c);
/* For tp_traverse of the object that holds it. */
int agx_py_codec_visit(struct agx_py_codec *c, visitproc visit, void *arg);

struct agx_py_pack_options {
    bool int_keys;    /* the receiver accepts map keys other than text; else they become text */
    bool byte_dtypes; /* it accepts arrays of one-byte types; else they are a TypeError */
    /*
     * Borrowed; NULL: models are packed as extension 2 and other types are a TypeError. Called
     * with an object of a type that msgpack does not have; its result is packed instead.
     */
    PyObject *fallback;
};

/*
 * Writes one value. 0, or -1 with an exception (TypeError, ValueError, OverflowError,
 * UnicodeEncodeError, or what `fallback` raised); the writer's own failure is left for
 * agx_mp_writer_end(). A part of the value may have been written: drop it.
 */
int agx_py_pack(struct agx_py_codec *c, struct agx_mp_writer *w, PyObject *value,
                const struct agx_py_pack_options *options) AGX_MUST_CHECK;

/* The next value of `r`: new, or NULL with an exception (ValueError and its kinds). */
PyObject *agx_py_unpack(struct agx_py_codec *c, struct agx_mp_reader *r) AGX_MUST_CHECK;

/* `raw` is one value and nothing else. New, or NULL with an exception. */
PyObject *agx_py_unpack_raw(struct agx_py_codec *c, struct agx_str raw) AGX_MUST_CHECK;

#endif

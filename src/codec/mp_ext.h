/*
 * mp_ext.h: the two msgpack extension types of remote calls.
 *
 * 1, an array (numpy's): dtype, '|', the shape in decimals with commas between them, a NUL, the
 * elements in C order. dtype is numpy's own short form ("<f8"); one-byte types begin with '|'
 * themselves ("|u1"), so the shape follows the last '|'. Only dtypes whose bytes mean the same to
 * every reader are accepted: no objects (they are pointers), no structures or void.
 *
 * 2, a model: one msgpack map, which may hold extensions again.
 */
#ifndef AGX_CODEC_MP_EXT_H
#define AGX_CODEC_MP_EXT_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

enum { AGX_MP_EXT_NDARRAY = 1, AGX_MP_EXT_MODEL = 2 };

struct agx_mp_ndarray {
    struct agx_str dtype; /* "<i4", "|b1", "<M8[ns]" */
    unsigned ndim;        /* 0: a single element */
    uint64_t shape[AGX_MP_NDIM_MAX];
    struct agx_str data; /* exactly the elements that dtype and shape require */
};

/* Reads the payload of an extension 1; the views are borrowed from it. */
int agx_mp_ndarray_parse(struct agx_str payload, struct agx_mp_ndarray *ret,
                         struct agx_error **err) AGX_MUST_CHECK;

/* Writes an array. -AGX_INVALID_ARGUMENT, without writing, for one that could not be read back. */
int agx_mp_write_ndarray(struct agx_mp_writer *w, const struct agx_mp_ndarray *a,
                         struct agx_error **err) AGX_MUST_CHECK;

/*
 * A reader for the map inside a model: `payload` is that of an extension 2 which `outer` has just
 * read. The payload is one map with nothing after it, and is checked as agx_mp_skip() does. Models
 * can contain models, so each counts as one level of depth: limits->depth bounds a reader that
 * recurses. Offsets in error texts are those of `outer`.
 */
int agx_mp_open_model(const struct agx_mp_reader *outer, struct agx_str payload,
                      struct agx_mp_reader *ret, struct agx_error **err) AGX_MUST_CHECK;

/* `map` is the model's fields: one whole msgpack map. */
static inline void agx_mp_write_model(struct agx_mp_writer *w, struct agx_str map)
{
    agx_mp_write_ext(w, AGX_MP_EXT_MODEL, map);
}

#endif

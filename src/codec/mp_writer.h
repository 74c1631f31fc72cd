/*
 * mp_writer.h: writes msgpack into a buffer, on msgpack-c's packer.
 *
 *     struct agx_mp_writer w;
 *
 *     agx_mp_writer_init(&w, buf);
 *     agx_mp_write_map(&w, 2);
 *     agx_mp_write_str(&w, AGX_STR("call_id"));
 *     agx_mp_write_str(&w, id);
 *     agx_mp_write_str(&w, AGX_STR("value"));
 *     agx_mp_write_raw(&w, value);
 *     return agx_mp_writer_end(&w, err);
 *
 * A failure is sticky: later calls have no effect and agx_mp_writer_end() reports it, so a message
 * is written as a list of calls with one check. Integers take their smallest form, floats are
 * always float64, text is str and bytes are bin, the same as from the peer's own packer.
 */
#ifndef AGX_CODEC_MP_WRITER_H
#define AGX_CODEC_MP_WRITER_H

#include "base/buf.h"

struct agx_mp_writer {
    struct agx_buf *out; /* borrowed */
    size_t start;        /* offset of our first byte in it */
    size_t refused;      /* bytes of the write that did not fit */
    int status;          /* 0, or the first failure */
};

/* Appends to `out`, which must live until agx_mp_writer_end(). */
void agx_mp_writer_init(struct agx_mp_writer *w, struct agx_buf *out);

/*
 * 0 if everything was written. Otherwise the first failure, and `out` is as it was at init:
 * -AGX_RESOURCE_EXHAUSTED (the buffer's maximum, or no memory), -AGX_OUT_OF_RANGE (a length that
 * msgpack cannot express).
 */
int agx_mp_writer_end(struct agx_mp_writer *w, struct agx_error **err) AGX_MUST_CHECK;

void agx_mp_write_nil(struct agx_mp_writer *w);
void agx_mp_write_bool(struct agx_mp_writer *w, bool v);
void agx_mp_write_int(struct agx_mp_writer *w, int64_t v);
void agx_mp_write_uint(struct agx_mp_writer *w, uint64_t v);
void agx_mp_write_float(struct agx_mp_writer *w, double v);
/* The caller must pass UTF-8; it is not checked. */
void agx_mp_write_str(struct agx_mp_writer *w, struct agx_str text);
void agx_mp_write_bin(struct agx_mp_writer *w, struct agx_str bytes);
/* `count` values must follow. */
void agx_mp_write_array(struct agx_mp_writer *w, size_t count);
/* `count` pairs of key and value must follow. */
void agx_mp_write_map(struct agx_mp_writer *w, size_t count);
void agx_mp_write_ext(struct agx_mp_writer *w, int8_t type, struct agx_str payload);
/* Only the header of an extension value; `len` bytes must follow, in one or more raw writes. */
void agx_mp_write_ext_header(struct agx_mp_writer *w, int8_t type, size_t len);
/* Bytes that are already msgpack. */
void agx_mp_write_raw(struct agx_mp_writer *w, struct agx_str bytes);

#endif

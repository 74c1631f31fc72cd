/*
 * mp.h: for the msgpack tests: copies a value token by token, and compares a value with the result
 * of msgpack-c's own unpacker.
 */
#ifndef AGX_TESTS_MP_H
#define AGX_TESTS_MP_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

#include <msgpack.h>

/* Reads one value with agx_mp_next() and writes it again in the smallest form. */
int agx_test_mp_copy(struct agx_mp_reader *r, struct agx_mp_writer *w, struct agx_error **err);

/* Asserts that one value read with agx_mp_next() equals `o`. */
bool agx_test_mp_same(struct agx_mp_reader *r, const msgpack_object *o);

#endif

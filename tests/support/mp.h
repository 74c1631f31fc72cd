/*
 * mp.h: for the msgpack tests: a value copied token by token, and a value compared with what
 * msgpack-c's own unpacker makes of it.
 */
#ifndef AGX_TESTS_MP_H
#define AGX_TESTS_MP_H

#include "codec/mp_reader.h"
#include "codec/mp_writer.h"

#include <msgpack.h>

/* Reads one value with agx_mp_next() and writes it again, in smallest forms. */
int agx_test_mp_copy(struct agx_mp_reader *r, struct agx_mp_writer *w, struct agx_error **err);

/* One value read with agx_mp_next() says the same as `o`. */
bool agx_test_mp_same(struct agx_mp_reader *r, const msgpack_object *o);

#endif

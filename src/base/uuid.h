/* uuid.h: random bytes and random ids. */
#ifndef AGX_BASE_UUID_H
#define AGX_BASE_UUID_H

#include "base/error.h"

/* Room for "9a5f0c3e-4b1d-4e7a-8c2f-0123456789ab" and its NUL. */
#define AGX_UUID_TEXT_SIZE 37

/* Fills `out` from the kernel's generator: good for keys, tokens and seeds. */
int agx_random_bytes(void *out, size_t n, struct agx_error **err) AGX_MUST_CHECK;

/* A new version 4 UUID in lower case. */
int agx_uuid_new(char out[AGX_UUID_TEXT_SIZE], struct agx_error **err) AGX_MUST_CHECK;

#endif

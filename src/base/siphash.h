/*
 * siphash.h: SipHash-1-3, a keyed hash. A peer that does not know the key cannot make keys collide,
 * so names that a peer chooses are safe in a hash table. Not for secrets or signatures.
 */
#ifndef AGX_BASE_SIPHASH_H
#define AGX_BASE_SIPHASH_H

#include "base/str.h"

struct agx_siphash_key {
    uint64_t k0, k1;
};

uint64_t agx_siphash(struct agx_siphash_key key, struct agx_str s);

#endif

/* sha_internal.h: shared by SHA-1 and SHA-256: words, blocks, and the padding of the last ones. */
#ifndef AGX_CODEC_SHA_INTERNAL_H
#define AGX_CODEC_SHA_INTERNAL_H

#include "base/str.h"

#include <stdint.h>
#include <string.h>

enum { AGX_SHA_BLOCK = 64, AGX_SHA_LENGTH_FIELD = 8 };

static inline uint32_t agx_sha_load(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void agx_sha_store(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Mixes all blocks into `h`: the bytes, then one bit and the length in bits. */
static inline void agx_sha_feed(uint32_t *h, struct agx_str bytes,
                                void (*mix)(uint32_t *h, const uint8_t *block))
{
    uint8_t last[2 * AGX_SHA_BLOCK] = { 0 };
    size_t whole = bytes.len / AGX_SHA_BLOCK * AGX_SHA_BLOCK, rest = bytes.len - whole;
    size_t end =
        rest + 1 + AGX_SHA_LENGTH_FIELD <= AGX_SHA_BLOCK ? AGX_SHA_BLOCK : 2 * AGX_SHA_BLOCK;

    for (size_t i = 0; i < whole; i += AGX_SHA_BLOCK)
        mix(h, (const uint8_t *)bytes.ptr + i);
    if (rest > 0)
        memcpy(last, bytes.ptr + whole, rest);
    last[rest] = 0x80;
    agx_sha_store(last + end - 8, (uint32_t)((uint64_t)bytes.len >> 29));
    agx_sha_store(last + end - 4, (uint32_t)((uint64_t)bytes.len << 3));
    for (size_t i = 0; i < end; i += AGX_SHA_BLOCK)
        mix(h, last + i);
}

#endif

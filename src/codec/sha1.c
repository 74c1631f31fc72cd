/* sha1.c: SHA-1 over one piece of memory. */
#include "codec/sha1.h"

#include "base/banned.h"

enum { BLOCK = 64, LENGTH_FIELD = 8 };

static uint32_t rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void mix(uint32_t h[5], const uint8_t block[BLOCK])
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned i = 0; i < 16; i++)
        w[i] = load_be32(block + 4 * i);
    for (unsigned i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (unsigned i = 0; i < 80; i++) {
        uint32_t f, k, t;

        if (i < 20)
            f = (b & c) | (~b & d), k = 0x5a827999;
        else if (i < 40)
            f = b ^ c ^ d, k = 0x6ed9eba1;
        else if (i < 60)
            f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
        else
            f = b ^ c ^ d, k = 0xca62c1d6;
        t = rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void agx_sha1(struct agx_str bytes, uint8_t ret_digest[AGX_SHA1_SIZE])
{
    uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
    uint8_t last[2 * BLOCK] = { 0 };
    size_t whole = bytes.len / BLOCK * BLOCK, rest = bytes.len - whole;
    size_t end = rest + 1 + LENGTH_FIELD <= BLOCK ? BLOCK : 2 * BLOCK;

    for (size_t i = 0; i < whole; i += BLOCK)
        mix(h, (const uint8_t *)bytes.ptr + i);
    if (rest > 0)
        memcpy(last, bytes.ptr + whole, rest);
    last[rest] = 0x80;
    store_be32(last + end - 8, (uint32_t)((uint64_t)bytes.len >> 29));
    store_be32(last + end - 4, (uint32_t)((uint64_t)bytes.len << 3));
    for (size_t i = 0; i < end; i += BLOCK)
        mix(h, last + i);
    for (unsigned i = 0; i < 5; i++)
        store_be32(ret_digest + 4 * i, h[i]);
}

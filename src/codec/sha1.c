/* sha1.c: SHA-1 over one piece of memory. */
#include "codec/sha1.h"

#include "codec/sha_internal.h"

#include "base/banned.h"

static uint32_t sha1_rotate(uint32_t v, unsigned n)
{
    return v << n | v >> (32 - n);
}

static void mix(uint32_t *h, const uint8_t *block)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (unsigned i = 0; i < 16; i++)
        w[i] = agx_sha_load(block + 4 * i);
    for (unsigned i = 16; i < 80; i++)
        w[i] = sha1_rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
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
        t = sha1_rotate(a, 5) + f + e + k + w[i];
        e = d;
        d = c;
        c = sha1_rotate(b, 30);
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

    agx_sha_feed(h, bytes, mix);
    for (unsigned i = 0; i < 5; i++)
        agx_sha_store(ret_digest + 4 * i, h[i]);
}

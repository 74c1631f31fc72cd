/* sha256.c: SHA-256 over one piece of memory. */
#include "codec/sha256.h"

#include "codec/sha_internal.h"

#include "base/banned.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t sha256_rotate(uint32_t v, unsigned n)
{
    return v >> n | v << (32 - n);
}

static void schedule(uint32_t w[64], const uint8_t *block)
{
    for (unsigned i = 0; i < 16; i++)
        w[i] = agx_sha_load(block + 4 * i);
    for (unsigned i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + (sha256_rotate(a, 7) ^ sha256_rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (sha256_rotate(b, 17) ^ sha256_rotate(b, 19) ^ b >> 10);
    }
}

/* One round. The caller rotates the order of the words that it passes, so that none has to be
 * moved: only the fourth and the last of the eight change. `k` is the round's constant and word. */
static inline void sha256_turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e,
                               uint32_t f, uint32_t g, uint32_t *h, uint32_t k)
{
    uint32_t t = *h + (sha256_rotate(e, 6) ^ sha256_rotate(e, 11) ^ sha256_rotate(e, 25)) +
                 ((e & f) ^ (~e & g)) + k;

    *d += t;
    *h = t + (sha256_rotate(a, 2) ^ sha256_rotate(a, 13) ^ sha256_rotate(a, 22)) +
         ((a & b) ^ (a & c) ^ (b & c));
}

static void mix(uint32_t *sum, const uint8_t *block)
{
    uint32_t w[64];
    uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    uint32_t e = sum[4], f = sum[5], g = sum[6], h = sum[7];

    schedule(w, block);
    for (unsigned i = 0; i < 64; i += 8) {
        sha256_turn(a, b, c, &d, e, f, g, &h, round_constants[i] + w[i]);
        sha256_turn(h, a, b, &c, d, e, f, &g, round_constants[i + 1] + w[i + 1]);
        sha256_turn(g, h, a, &b, c, d, e, &f, round_constants[i + 2] + w[i + 2]);
        sha256_turn(f, g, h, &a, b, c, d, &e, round_constants[i + 3] + w[i + 3]);
        sha256_turn(e, f, g, &h, a, b, c, &d, round_constants[i + 4] + w[i + 4]);
        sha256_turn(d, e, f, &g, h, a, b, &c, round_constants[i + 5] + w[i + 5]);
        sha256_turn(c, d, e, &f, g, h, a, &b, round_constants[i + 6] + w[i + 6]);
        sha256_turn(b, c, d, &e, f, g, h, &a, round_constants[i + 7] + w[i + 7]);
    }
    sum[0] += a;
    sum[1] += b;
    sum[2] += c;
    sum[3] += d;
    sum[4] += e;
    sum[5] += f;
    sum[6] += g;
    sum[7] += h;
}

void agx_sha256(struct agx_str bytes, uint8_t ret_digest[AGX_SHA256_SIZE])
{
    uint32_t h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

    agx_sha_feed(h, bytes, mix);
    for (unsigned i = 0; i < 8; i++)
        agx_sha_store(ret_digest + 4 * i, h[i]);
}

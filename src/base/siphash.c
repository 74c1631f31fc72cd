/* siphash.c: SipHash with one round for each word and three at the end. */
#include "base/siphash.h"

#include "base/banned.h"

#include <endian.h>

static uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

uint64_t agx_siphash(struct agx_siphash_key key, struct agx_str s)
{
    /* The constants spell "somepseudorandomlygeneratedbytes", as the algorithm has them. */
    uint64_t v[4] = { key.k0 ^ UINT64_C(0x736f6d6570736575), key.k1 ^ UINT64_C(0x646f72616e646f6d),
                      key.k0 ^ UINT64_C(0x6c7967656e657261),
                      key.k1 ^ UINT64_C(0x7465646279746573) };
    uint64_t last = (uint64_t)s.len << 56, word;

    for (; s.len >= 8; s = agx_str_skip(s, 8)) {
        memcpy(&word, s.ptr, 8);
        absorb(v, le64toh(word));
    }
    for (size_t i = 0; i < s.len; i++)
        last |= (uint64_t)(unsigned char)s.ptr[i] << (8 * i);
    absorb(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/*
 * initproto_frame.c: a head is 4 constant bytes, a u32 with the length and two flags, and a
 * checksum of the rest of the frame. Little endian.
 */
#include "codec/initproto_frame.h"

#include <endian.h>

#include "base/banned.h"

enum { FIRST = 1 << 30, LAST = 1 << 29, LENGTH = LAST - 1 };

static const char mark[4] = { '\xa7', 'a', 'x', '\xf3' };

/* The checksum covers the second word of the head, the side that wrote it, and the data. */
static uint64_t sum_of(const struct agx_siphash_key *key, enum agx_init_side side, uint32_t word,
                       struct agx_str data)
{
    const uint32_t head[2] = { htole32((uint32_t)side), htole32(word) };
    struct agx_siphash_key k = *key;

    k.k0 ^= agx_siphash(k, agx_str_bytes(head, sizeof(head)));
    return agx_siphash(k, data);
}

void agx_init_frame_seal(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str packet, size_t *at, uint8_t head[AGX_INIT_FRAME_HEAD],
                         struct agx_str *ret_data)
{
    struct agx_str rest = agx_str_skip(packet, *at);
    size_t n = AGX_MIN(rest.len, AGX_INIT_FRAME_DATA);
    uint32_t word = (uint32_t)n, le;
    uint64_t sum;

    *ret_data = agx_str_bytes(rest.ptr, n);
    if (*at == 0)
        word |= FIRST;
    if (n == rest.len)
        word |= LAST;
    le = htole32(word);
    sum = htole64(sum_of(key, side, word, *ret_data));
    memcpy(head, mark, sizeof(mark));
    memcpy(head + 4, &le, sizeof(le));
    memcpy(head + 8, &sum, sizeof(sum));
    *at += n;
}

/* Offset of the next mark, or of a beginning of it at the end of `in`. */
static size_t find_mark(struct agx_str in)
{
    size_t at = 0;

    while (at < in.len) {
        size_t n;

        at += agx_str_find(agx_str_skip(in, at), mark[0]);
        n = AGX_MIN(in.len - at, sizeof(mark));
        if (memcmp(in.ptr + at, mark, n) == 0)
            break;
        at++;
    }
    return at;
}

bool agx_init_frame_next(const struct agx_siphash_key *key, enum agx_init_side side,
                         struct agx_str in, struct agx_init_frame *ret, size_t *ret_used)
{
    size_t at = find_mark(in);

    while (in.len - at >= AGX_INIT_FRAME_HEAD) {
        const char *head = in.ptr + at;
        uint32_t le, word;
        uint64_t sum;

        memcpy(&le, head + 4, sizeof(le));
        memcpy(&sum, head + 8, sizeof(sum));
        word = le32toh(le);
        if ((word & LENGTH) <= AGX_INIT_FRAME_DATA && !(word & ~(FIRST | LAST | LENGTH))) {
            struct agx_str data = { head + AGX_INIT_FRAME_HEAD, word & LENGTH };

            if (in.len - at - AGX_INIT_FRAME_HEAD < data.len)
                break; /* the rest has not come yet */
            if (le64toh(sum) == sum_of(key, side, word, data)) {
                *ret = (struct agx_init_frame){ .first = word & FIRST,
                                                .last = word & LAST,
                                                .data = data };
                *ret_used = at + AGX_INIT_FRAME_HEAD + data.len;
                return true;
            }
        }
        at++;
        at += find_mark(agx_str_skip(in, at));
    }
    *ret_used = at;
    return false;
}

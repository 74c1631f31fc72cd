/*
 * subnets.c: the pure part: numbered pieces of a pool.
 *
 * Taken ranges are sorted and each covers a run of pieces, so a search skips to the piece behind a
 * run instead of comparing every piece with every range.
 */
#include "backend/net/subnets.h"

#include "base/limits_backend.h"

#include <stdlib.h>

#include "base/banned.h"

enum { BITS_MAX = 32, SMALLEST_IPV4 = 29, SMALLEST_IPV6 = 124 };

int agx_subnet_list_add(struct agx_subnet_list *list, const struct agx_subnet *s,
                        struct agx_error **err)
{
    if (list->len == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 64;
        struct agx_subnet *more = NULL;

        if (list->len < AGX_SUBNETS_TAKEN_MAX)
            more = realloc(list->items, cap * sizeof(*more));
        if (!more)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                                 "list the address ranges that are taken: there are more "
                                 "than %zu",
                                 list->len);
        list->items = more;
        list->cap = cap;
    }
    list->items[list->len++] = *s;
    return 0;
}

void agx_subnet_list_done(struct agx_subnet_list *list)
{
    if (!list)
        return;
    free(list->items);
    *list = (struct agx_subnet_list){ 0 };
}

int agx_subnets_init(struct agx_subnets *s, const struct agx_subnet *pool, unsigned prefix,
                     uint64_t start, struct agx_error **err)
{
    unsigned smallest = pool->ipv6 ? SMALLEST_IPV6 : SMALLEST_IPV4;
    char text[AGX_SUBNET_TEXT];

    if (prefix > smallest)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "a /%u is too small for a sandbox's network: /%u is the smallest",
                             prefix, smallest);
    if (prefix < pool->prefix || prefix - pool->prefix > BITS_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "the pool %s cannot be cut into /%u",
                             agx_subnet_format(pool, text), prefix);
    *s = (struct agx_subnets){ .pool = *pool, .prefix = (uint8_t)prefix };
    s->next = start & ((UINT64_C(1) << (prefix - pool->prefix)) - 1);
    return 0;
}

/* The bits between the pool's prefix and the piece's, as a number. */
static uint64_t piece_of(const struct agx_subnets *s, const uint8_t *address)
{
    uint64_t n = 0;

    for (unsigned bit = s->pool.prefix; bit < s->prefix; bit++)
        n = n << 1 | (address[bit / 8] >> (7 - bit % 8) & 1);
    return n;
}

static void make_piece(const struct agx_subnets *s, uint64_t n, struct agx_subnet *ret)
{
    *ret = s->pool;
    ret->prefix = s->prefix;
    for (unsigned bit = s->prefix; bit > s->pool.prefix; bit--, n >>= 1) {
        if (n & 1)
            ret->address[(bit - 1) / 8] |= (uint8_t)(0x80u >> ((bit - 1) % 8));
    }
}

/* The pieces that a range touches: [*ret_first, *ret_end). */
static bool run_of(const struct agx_subnets *s, const struct agx_subnet *taken, uint64_t *ret_first,
                   uint64_t *ret_end)
{
    uint64_t count = UINT64_C(1) << (s->prefix - s->pool.prefix);

    if (!agx_subnet_overlaps(&s->pool, taken))
        return false;
    *ret_first = 0;
    *ret_end = count;
    if (taken->prefix > s->pool.prefix) {
        *ret_first = piece_of(s, taken->address);
        *ret_end = *ret_first + 1;
        if (taken->prefix < s->prefix)
            *ret_end = *ret_first + (UINT64_C(1) << (s->prefix - taken->prefix));
    }
    return true;
}

static int subnets_compare(const void *a, const void *b)
{
    const struct agx_subnet *x = a, *y = b;
    int order = memcmp(x->address, y->address, sizeof(x->address));

    return order ? order : (int)x->prefix - (int)y->prefix;
}

/* The first free piece in [from, end), or `end`. */
static uint64_t find_free(const struct agx_subnets *s, const struct agx_subnet_list *taken,
                          uint64_t from, uint64_t end)
{
    for (size_t i = 0; i < taken->len && from < end; i++) {
        uint64_t first, past;

        if (!run_of(s, &taken->items[i], &first, &past) || past <= from)
            continue;
        if (first > from)
            return from; /* sorted: no later range begins earlier */
        from = past;
    }
    return AGX_MIN(from, end);
}

int agx_subnets_next(struct agx_subnets *s, struct agx_subnet_list *taken, struct agx_subnet *ret,
                     struct agx_error **err)
{
    uint64_t count = UINT64_C(1) << (s->prefix - s->pool.prefix), found;
    char text[AGX_SUBNET_TEXT];

    if (taken->len > 0)
        qsort(taken->items, taken->len, sizeof(taken->items[0]), subnets_compare);
    found = find_free(s, taken, s->next, count);
    if (found == count) {
        found = find_free(s, taken, 0, s->next);
        if (found == s->next)
            return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                                 "no address range is free for a sandbox's network: all %llu "
                                 "of %s are taken by networks and routes of this host",
                                 (unsigned long long)count, agx_subnet_format(&s->pool, text));
    }
    make_piece(s, found, ret);
    s->next = found + 1 == count ? 0 : found + 1;
    return 0;
}

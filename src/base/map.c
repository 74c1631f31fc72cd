/*
 * map.c: open addressing with linear probing.
 *
 * Invariants:
 *  (1) at least a quarter of the slots is free, so every probe ends.
 *  (2) between an entry's home slot (hash & (cap - 1)) and the slot it is in, no slot is free:
 *      a probe may stop at the first free one. remove() closes the gap it makes, so there are no
 *      tombstones and the table does not degrade with use.
 */
#include "base/map.h"

#include "base/banned.h"

#include <assert.h>

enum { FIRST_CAP = 8 };

void agx_map_init(struct agx_map *m, struct agx_siphash_key seed)
{
    *m = (struct agx_map){ .seed = seed };
}

/* The slot that holds the key, or the free one where it belongs. The table is not empty. */
static struct agx_map_slot *map_find(const struct agx_map *m, struct agx_str key, uint64_t hash)
{
    for (size_t i = (size_t)hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct agx_map_slot *s = &m->slots[i];

        if (!s->key)
            return s;
        if (s->hash == hash && agx_str_eq(key, agx_str_bytes(s->key, s->key_len)))
            return s;
    }
}

void *agx_map_get(const struct agx_map *m, struct agx_str key)
{
    /* A free slot's value is NULL. */
    return m->len > 0 ? map_find(m, key, agx_siphash(m->seed, key))->value : NULL;
}

static int map_grow(struct agx_map *m)
{
    size_t cap = m->cap > 0 ? m->cap * 2 : FIRST_CAP;
    struct agx_map_slot *slots = calloc(cap, sizeof(*slots));

    if (!slots)
        return -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < m->cap; i++) {
        size_t to = (size_t)m->slots[i].hash & (cap - 1);

        if (!m->slots[i].key)
            continue;
        while (slots[to].key)
            to = (to + 1) & (cap - 1);
        slots[to] = m->slots[i];
    }
    free(m->slots);
    m->slots = slots;
    m->cap = cap;
    return 0;
}

int agx_map_put(struct agx_map *m, struct agx_str key, void *value, void **ret_old)
{
    uint64_t hash = agx_siphash(m->seed, key);
    struct agx_map_slot *s = m->cap > 0 ? map_find(m, key, hash) : NULL;
    void *old = s ? s->value : NULL;

    assert(value);
    if (!old) {
        char *copy;

        if (!s || m->len >= m->cap / 4 * 3) {
            int r = map_grow(m);

            if (r < 0)
                return r;
            s = map_find(m, key, hash);
        }
        copy = agx_str_dup(key);
        if (!copy)
            return -AGX_RESOURCE_EXHAUSTED;
        assert(s); /* an empty table was grown above */
        *s = (struct agx_map_slot){ .key = copy, .key_len = key.len, .hash = hash };
        m->len++;
    }
    s->value = value;
    if (ret_old)
        *ret_old = old;
    return 0;
}

/* Moves entries back over the free slot `hole` as long as invariant (2) requires it. */
static void close_gap(struct agx_map *m, size_t hole)
{
    size_t mask = m->cap - 1;

    for (size_t i = (hole + 1) & mask; m->slots[i].key; i = (i + 1) & mask) {
        size_t home = (size_t)m->slots[i].hash & mask;

        /* The entry may move unless its home lies between the hole and i. */
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        m->slots[hole] = m->slots[i];
        m->slots[i] = (struct agx_map_slot){ 0 };
        hole = i;
    }
}

void *agx_map_remove(struct agx_map *m, struct agx_str key)
{
    struct agx_map_slot *s;
    void *value;

    if (m->len == 0)
        return NULL;
    s = map_find(m, key, agx_siphash(m->seed, key));
    if (!s->key)
        return NULL;
    value = s->value;
    free(s->key);
    *s = (struct agx_map_slot){ 0 };
    m->len--;
    close_gap(m, (size_t)(s - m->slots));
    return value;
}

bool agx_map_next(const struct agx_map *m, size_t *at, struct agx_str *ret_key, void **ret_value)
{
    while (*at < m->cap && !m->slots[*at].key)
        ++*at;
    if (*at >= m->cap)
        return false;
    if (ret_key)
        *ret_key = agx_str_bytes(m->slots[*at].key, m->slots[*at].key_len);
    if (ret_value)
        *ret_value = m->slots[*at].value;
    ++*at;
    return true;
}

void agx_map_done(struct agx_map *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->cap; i++)
        free(m->slots[i].key);
    free(m->slots);
    agx_map_init(m, m->seed);
}

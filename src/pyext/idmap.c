/*
 * idmap.c: linear probing. A removed entry's followers move back (no tombstones), so that the table
 * stays as good after a million calls as it was at first.
 */
#include "pyext/idmap.h"

#include "base/banned.h"

enum { FIRST_CAP = 64 };

static size_t home(const struct agx_idmap *m, uint64_t id)
{
    return (size_t)id & (m->cap - 1);
}

/* The slot that has the id, or the free one where it would go. */
static size_t find(const struct agx_idmap *m, uint64_t id)
{
    size_t i = home(m, id);

    while (m->slots[i].value && m->slots[i].id != id)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void *agx_idmap_get(const struct agx_idmap *m, uint64_t id)
{
    return m->len > 0 ? m->slots[find(m, id)].value : NULL;
}

static int grow(struct agx_idmap *m)
{
    struct agx_idmap bigger = { .cap = m->cap > 0 ? 2 * m->cap : FIRST_CAP, .len = m->len };

    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < m->cap; i++) {
        if (m->slots[i].value)
            bigger.slots[find(&bigger, m->slots[i].id)] = m->slots[i];
    }
    free(m->slots);
    *m = bigger;
    return 0;
}

int agx_idmap_add(struct agx_idmap *m, uint64_t id, void *value)
{
    if (m->len + 1 > m->cap / 2) {
        int r = grow(m);

        if (r < 0)
            return r;
    }
    m->slots[find(m, id)] = (struct agx_idmap_slot){ id, value };
    m->len++;
    return 0;
}

void *agx_idmap_remove(struct agx_idmap *m, uint64_t id)
{
    size_t hole, i, mask = m->cap - 1;
    void *value;

    if (m->len == 0)
        return NULL;
    hole = find(m, id);
    value = m->slots[hole].value;
    if (!value)
        return NULL;
    for (i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        /* An entry may move back to the hole unless its home lies behind the hole. */
        if (((i - home(m, m->slots[i].id)) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].value = NULL;
    m->len--;
    return value;
}

void *agx_idmap_next(const struct agx_idmap *m, size_t *at)
{
    while (*at < m->cap) {
        void *value = m->slots[(*at)++].value;

        if (value)
            return value;
    }
    return NULL;
}

void agx_idmap_done(struct agx_idmap *m)
{
    free(m->slots);
    *m = (struct agx_idmap)AGX_IDMAP_INIT;
}

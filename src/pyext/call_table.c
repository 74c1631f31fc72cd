/*
 * call_table.c: linear probing. The entries after a removed one move back (no tombstones), so that
 * a million calls do not make the table slower.
 */
#include "pyext/call_table.h"

#include "base/banned.h"

enum { FIRST_CAP = 64 };

static size_t home(const struct agx_call_table *t, uint64_t id)
{
    return (size_t)id & (t->cap - 1);
}

/* The slot of the id, or the free slot for it. */
static size_t call_table_find(const struct agx_call_table *t, uint64_t id)
{
    size_t i = home(t, id);

    while (t->slots[i].value && t->slots[i].id != id)
        i = (i + 1) & (t->cap - 1);
    return i;
}

void *agx_call_table_get(const struct agx_call_table *t, uint64_t id)
{
    return t->len > 0 ? t->slots[call_table_find(t, id)].value : NULL;
}

static int call_table_grow(struct agx_call_table *t)
{
    struct agx_call_table bigger = { .cap = t->cap > 0 ? 2 * t->cap : FIRST_CAP, .len = t->len };

    bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
    if (!bigger.slots)
        return -AGX_RESOURCE_EXHAUSTED;
    for (size_t i = 0; i < t->cap; i++) {
        if (t->slots[i].value)
            bigger.slots[call_table_find(&bigger, t->slots[i].id)] = t->slots[i];
    }
    free(t->slots);
    *t = bigger;
    return 0;
}

int agx_call_table_add(struct agx_call_table *t, uint64_t id, void *value)
{
    if (t->len + 1 > t->cap / 2) {
        int r = call_table_grow(t);

        if (r < 0)
            return r;
    }
    t->slots[call_table_find(t, id)] = (struct agx_call_table_slot){ id, value };
    t->len++;
    return 0;
}

void *agx_call_table_remove(struct agx_call_table *t, uint64_t id)
{
    size_t hole, i, mask = t->cap - 1;
    void *value;

    if (t->len == 0)
        return NULL;
    hole = call_table_find(t, id);
    value = t->slots[hole].value;
    if (!value)
        return NULL;
    for (i = (hole + 1) & mask; t->slots[i].value; i = (i + 1) & mask) {
        /* An entry may move back to the hole unless its home slot is after the hole. */
        if (((i - home(t, t->slots[i].id)) & mask) >= ((i - hole) & mask)) {
            t->slots[hole] = t->slots[i];
            hole = i;
        }
    }
    t->slots[hole].value = NULL;
    t->len--;
    return value;
}

void *agx_call_table_next(const struct agx_call_table *t, size_t *at)
{
    while (*at < t->cap) {
        void *value = t->slots[(*at)++].value;

        if (value)
            return value;
    }
    return NULL;
}

void agx_call_table_done(struct agx_call_table *t)
{
    free(t->slots);
    *t = (struct agx_call_table)AGX_CALL_TABLE_INIT;
}

/*
 * call_table.h: calls by their number. Numbers ascend, so the number itself is a good hash: calls
 * in flight mostly have adjacent numbers, and so adjacent slots.
 */
#ifndef AGX_PYEXT_CALL_TABLE_H
#define AGX_PYEXT_CALL_TABLE_H

#include "base/error.h"

#include <stdint.h>

struct agx_call_table_slot {
    uint64_t id;
    void *value; /* NULL: free */
};

struct agx_call_table {
    struct agx_call_table_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
};

#define AGX_CALL_TABLE_INIT                                                                        \
    {                                                                                              \
        0                                                                                          \
    }

/* The value, or NULL. */
void *agx_call_table_get(const struct agx_call_table *t, uint64_t id);

/* Adds an id that is not in the table; `value` is not NULL. -AGX_RESOURCE_EXHAUSTED: no memory. */
int agx_call_table_add(struct agx_call_table *t, uint64_t id, void *value) AGX_MUST_CHECK;

/* Removes the id; returns its value, or NULL. */
void *agx_call_table_remove(struct agx_call_table *t, uint64_t id);

/* The next value from *at = 0 on, in no order; NULL at the end. The table must not change
 * meanwhile. */
void *agx_call_table_next(const struct agx_call_table *t, size_t *at);

/* The caller owns the values. */
void agx_call_table_done(struct agx_call_table *t);

#endif

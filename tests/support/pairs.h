/* pairs.h: compares two small maps. */
#ifndef AGX_TESTS_PAIRS_H
#define AGX_TESTS_PAIRS_H

#include "core/pairs.h"

#include <string.h>

static inline bool test_pairs_eq(const struct agx_pairs *a, const struct agx_pairs *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (strcmp(a->items[i].key, b->items[i].key) != 0 ||
            strcmp(a->items[i].value, b->items[i].value) != 0)
            return false;
    return true;
}

#endif

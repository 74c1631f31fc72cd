/*
 * idmap.h: calls by their number. Numbers ascend, so that the number itself is a good hash: calls
 * in flight are mostly neighbours, and sit in neighbouring slots.
 */
#ifndef AGX_PYEXT_IDMAP_H
#define AGX_PYEXT_IDMAP_H

#include "base/error.h"

#include <stdint.h>

struct agx_idmap_slot {
    uint64_t id;
    void *value; /* NULL: free */
};

struct agx_idmap {
    struct agx_idmap_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
};

#define AGX_IDMAP_INIT                                                                             \
    {                                                                                              \
        0                                                                                          \
    }

/* The value, or NULL. */
void *agx_idmap_get(const struct agx_idmap *m, uint64_t id);

/* Adds an id that is not in the map; `value` is not NULL. -AGX_RESOURCE_EXHAUSTED without memory.
 */
int agx_idmap_add(struct agx_idmap *m, uint64_t id, void *value) AGX_MUST_CHECK;

/* Takes the id out; its value, or NULL. */
void *agx_idmap_remove(struct agx_idmap *m, uint64_t id);

/* The next value from *at = 0 on, in no order; NULL at the end. The map must not change meanwhile.
 */
void *agx_idmap_next(const struct agx_idmap *m, size_t *at);

/* The values are the caller's. */
void agx_idmap_done(struct agx_idmap *m);

#endif

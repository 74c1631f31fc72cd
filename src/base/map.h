/*
 * map.h: a hash map from strings to pointers.
 *
 * The map owns copies of its keys and never the values. A key is any bytes, also none; a value is
 * never NULL, so that get() needs no second answer. Not for several threads at once.
 *
 *     struct agx_map m;
 *     agx_map_init(&m, key);
 *     r = agx_map_put(&m, AGX_STR("a"), thing, NULL);
 *     for (size_t at = 0; agx_map_next(&m, &at, &name, &value);)
 *         ...
 *     agx_map_done(&m);
 */
#ifndef AGX_BASE_MAP_H
#define AGX_BASE_MAP_H

#include "base/error.h"
#include "base/siphash.h"
#include "base/str.h"

struct agx_map_slot {
    char *key; /* owned; NULL: the slot is free */
    size_t key_len;
    uint64_t hash;
    void *value;
};

struct agx_map {
    struct agx_map_slot *slots;
    size_t len, cap; /* cap is 0 or a power of two */
    struct agx_siphash_key seed;
};

/* `seed` is random wherever somebody else chooses the keys (agx_random_bytes), any constant in
 * tests. */
void agx_map_init(struct agx_map *m, struct agx_siphash_key seed);

/* The value, or NULL. */
void *agx_map_get(const struct agx_map *m, struct agx_str key);

/*
 * Adds the key, or gives it another value; what it had before (or NULL) is *ret_old, which may be
 * NULL. -AGX_RESOURCE_EXHAUSTED without memory, and the map is as before.
 */
int agx_map_put(struct agx_map *m, struct agx_str key, void *value, void **ret_old) AGX_MUST_CHECK;

/* Takes the key out; its value, or NULL. Never fails, never allocates. */
void *agx_map_remove(struct agx_map *m, struct agx_str key);

/*
 * Visits every entry once, in no order, from *at = 0 on; false at the end. Key and value are
 * borrowed until the map changes, and it must not change while a visit goes on, but for values that
 * put() replaces. Either ret_ may be NULL.
 */
bool agx_map_next(const struct agx_map *m, size_t *at, struct agx_str *ret_key, void **ret_value);

/* Frees the keys; the values are the caller's. The map is empty and usable afterwards. Accepts
 * NULL. */
void agx_map_done(struct agx_map *m);

#endif

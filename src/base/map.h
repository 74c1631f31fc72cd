/*
 * map.h: a hash map from strings to pointers.
 *
 * The map owns copies of its keys, never the values. A key is any bytes, including none; a value is
 * never NULL, so that NULL from get() means "missing". Not thread-safe.
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

/* `seed` must be random where others choose the keys (agx_random_bytes); tests use any constant. */
void agx_map_init(struct agx_map *m, struct agx_siphash_key seed);

/* The value, or NULL. */
void *agx_map_get(const struct agx_map *m, struct agx_str key);

/*
 * Adds the key or replaces its value. Stores the old value (or NULL) in *ret_old, which may be
 * NULL. Without memory: -AGX_RESOURCE_EXHAUSTED, and the map is unchanged.
 */
int agx_map_put(struct agx_map *m, struct agx_str key, void *value, void **ret_old) AGX_MUST_CHECK;

/* Removes the key and returns its value, or NULL. Never fails, never allocates. */
void *agx_map_remove(struct agx_map *m, struct agx_str key);

/*
 * Visits every entry once, in no order, starting with *at = 0; false at the end. Key and value are
 * borrowed until the map changes. During a visit the map must not change, except for values that
 * put() replaces. Either ret_ may be NULL.
 */
bool agx_map_next(const struct agx_map *m, size_t *at, struct agx_str *ret_key, void **ret_value);

/* Frees the keys; the caller owns the values. The map is empty and usable afterwards. Accepts NULL.
 */
void agx_map_done(struct agx_map *m);

#endif

/* pairs.h: a small map from strings to strings, sorted by key: labels, environments. */
#ifndef AGX_CORE_PAIRS_H
#define AGX_CORE_PAIRS_H

#include "core/text.h"

struct agx_pair {
    char *key, *value; /* owned, never NULL */
};

struct agx_pairs {
    struct agx_pair *items; /* sorted by key, without duplicates */
    size_t len;
};

/* Adds the key or replaces its value. -AGX_RESOURCE_EXHAUSTED past AGX_PAIRS_MAX. */
int agx_pairs_set(struct agx_pairs *p, struct agx_str key, struct agx_str value,
                  struct agx_error **err) AGX_MUST_CHECK;
/* Borrowed until the pairs change; NULL without the key. */
const char *agx_pairs_get(const struct agx_pairs *p, const char *key);
/* Sets every pair of `over` in `p`; for keys in both, `over` wins. */
int agx_pairs_merge(struct agx_pairs *p, const struct agx_pairs *over,
                    struct agx_error **err) AGX_MUST_CHECK;
/* Empties it. Accepts NULL. */
void agx_pairs_done(struct agx_pairs *p);

#endif

/* lane_hints.c: a direct-mapped cache: one callable for each of 1,024 hash values. */
#include "runtime/lane_hints.h"

#include "base/banned.h"
#include "base/mem.h"

enum {
    SLOTS = 1024,
    CALLABLE_MAX =
        1024, /* references are short; a pickle that carries state is not worth a memory */
};

struct slot {
    char *bytes; /* owned; NULL: free */
    size_t len;
    enum agx_remote_lane lane;
};

struct agx_lane_hints {
    struct agx_siphash_key seed;
    struct slot slots[SLOTS];
};

struct agx_lane_hints *agx_lane_hints_new(struct agx_siphash_key seed)
{
    struct agx_lane_hints *h = agx_new(struct agx_lane_hints);

    h->seed = seed;
    return h;
}

struct agx_lane_hints *agx_lane_hints_free(struct agx_lane_hints *h)
{
    if (!h)
        return NULL;
    for (size_t i = 0; i < SLOTS; i++)
        free(h->slots[i].bytes);
    free(h);
    return NULL;
}

static size_t slot_of(const struct agx_lane_hints *h, struct agx_str callable)
{
    return agx_siphash(h->seed, callable) % SLOTS;
}

enum agx_remote_lane agx_lane_hints_get(const struct agx_lane_hints *h, struct agx_str callable)
{
    const struct slot *s;

    if (callable.len > CALLABLE_MAX)
        return AGX_LANE_LOOP;
    s = &h->slots[slot_of(h, callable)];
    if (s->bytes && agx_str_eq(callable, agx_str_bytes(s->bytes, s->len)))
        return s->lane;
    return AGX_LANE_LOOP;
}

void agx_lane_hints_learn(struct agx_lane_hints *h, struct agx_str callable,
                          enum agx_remote_lane lane)
{
    struct slot *s;
    char *bytes;

    if (callable.len > CALLABLE_MAX)
        return;
    bytes = agx_str_dup(callable);
    if (!bytes)
        return;
    s = &h->slots[slot_of(h, callable)];
    free(s->bytes);
    *s = (struct slot){ bytes, callable.len, lane };
}

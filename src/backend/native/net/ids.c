/* ids.c: one bit for each range. */
#include "backend/native/net/ids.h"

#include "base/limits_native.h"
#include "base/mem.h"

#include "base/banned.h"

enum { BITS = 64 };

int agx_ids_init(struct agx_ids *s, uint32_t base, uint32_t n, struct agx_error **err)
{
    if (base == 0 || base % AGX_NSSET_IDS != 0 || n == 0 || n > (UINT32_MAX - base) / AGX_NSSET_IDS)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "%u ranges of %u ids from %u on: they begin at a multiple of %u above "
                             "0 and end below 2^32",
                             n, AGX_NSSET_IDS, base, AGX_NSSET_IDS);
    *s = (struct agx_ids){ .base = base, .n = n };
    s->taken = agx_alloc((n + BITS - 1) / BITS * sizeof(s->taken[0]));
    return 0;
}

void agx_ids_share(struct agx_ids *s, uint32_t base)
{
    *s = (struct agx_ids){ .base = base, .n = 1 };
}

void agx_ids_done(struct agx_ids *s)
{
    free(s->taken);
    *s = (struct agx_ids){ 0 };
}

/* False: it is not one of our ranges. */
static bool number_of(const struct agx_ids *s, uint32_t base, uint32_t *ret)
{
    if (base < s->base || (base - s->base) % AGX_NSSET_IDS != 0)
        return false;
    *ret = (base - s->base) / AGX_NSSET_IDS;
    return *ret < s->n;
}

static bool is_taken(const struct agx_ids *s, uint32_t i)
{
    return s->taken && s->taken[i / BITS] >> i % BITS & 1;
}

static void ids_take(struct agx_ids *s, uint32_t i)
{
    if (s->taken)
        s->taken[i / BITS] |= UINT64_C(1) << i % BITS;
}

int agx_ids_take(struct agx_ids *s, uint32_t *ret_base, struct agx_error **err)
{
    for (uint32_t tried = 0; tried < s->n; tried++) {
        uint32_t i = s->next;

        s->next = i + 1 == s->n ? 0 : i + 1;
        if (is_taken(s, i))
            continue;
        ids_take(s, i);
        *ret_base = s->base + i * AGX_NSSET_IDS;
        return 0;
    }
    return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                         "all %u ranges of user ids belong to running or stopped sandboxes", s->n);
}

int agx_ids_reserve(struct agx_ids *s, uint32_t base, struct agx_error **err)
{
    uint32_t i;

    if (!number_of(s, base, &i))
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "%u does not begin one of the %u ranges of user ids from %u on", base,
                             s->n, s->base);
    if (is_taken(s, i))
        return agx_error_set(err, AGX_ALREADY_EXISTS,
                             "the range of user ids from %u on is taken already", base);
    ids_take(s, i);
    return 0;
}

bool agx_ids_has(const struct agx_ids *s, uint32_t base)
{
    uint32_t i;

    return number_of(s, base, &i) && (!s->taken || is_taken(s, i));
}

void agx_ids_release(struct agx_ids *s, uint32_t base)
{
    uint32_t i;

    if (number_of(s, base, &i) && s->taken)
        s->taken[i / BITS] &= ~(UINT64_C(1) << i % BITS);
}

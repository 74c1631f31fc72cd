/*
 * ids.h: which ranges of user and group ids are taken. A range is AGX_NEST_IDS ids.
 *
 * Each that is asked for goes on behind the last one, so that a range comes back as late as can be:
 * should a file of its last owner have been forgotten somewhere, it is long before another sandbox
 * has the same ids.
 */
#ifndef AGX_BACKEND_NATIVE_IDS_H
#define AGX_BACKEND_NATIVE_IDS_H

#include "base/error.h"

#include <stdint.h>

struct agx_ids {
    uint32_t base, n; /* first id; ranges */
    uint32_t next;    /* range to begin with */
    uint64_t *taken;  /* a bit for each; NULL: all share the one range */
};

/* -AGX_INVALID_ARGUMENT when they do not fit below 2^32, or begin at an id that is no multiple of
 * AGX_NEST_IDS, or at 0. */
int agx_ids_init(struct agx_ids *s, uint32_t base, uint32_t n,
                 struct agx_error **err) AGX_MUST_CHECK;
/* One range, from `base` on, which everybody gets. */
void agx_ids_share(struct agx_ids *s, uint32_t base);
void agx_ids_done(struct agx_ids *s);

/* Any that is free. -AGX_RESOURCE_EXHAUSTED when none is. */
int agx_ids_take(struct agx_ids *s, uint32_t *ret_base, struct agx_error **err) AGX_MUST_CHECK;

/* This one. -AGX_ALREADY_EXISTS, or -AGX_INVALID_ARGUMENT when it is none of them. */
int agx_ids_reserve(struct agx_ids *s, uint32_t base, struct agx_error **err) AGX_MUST_CHECK;

bool agx_ids_has(const struct agx_ids *s, uint32_t base);
void agx_ids_release(struct agx_ids *s, uint32_t base);

#endif

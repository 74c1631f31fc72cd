/*
 * ids.h: allocates ranges of user and group ids. A range has AGX_NSSET_IDS ids.
 *
 * Each allocation continues behind the last one, so that a range is reused as late as possible: if
 * a file of its last owner was left somewhere, it takes long until another sandbox has the same
 * ids.
 */
#ifndef AGX_BACKEND_NATIVE_NET_IDS_H
#define AGX_BACKEND_NATIVE_NET_IDS_H

#include "base/error.h"

#include <stdint.h>

struct agx_ids {
    uint32_t base, n; /* first id; number of ranges */
    uint32_t next;    /* where the search begins */
    uint64_t *taken;  /* one bit per range; NULL: all share the one range */
};

/* -AGX_INVALID_ARGUMENT when the ranges do not fit below 2^32, or do not begin at a positive
 * multiple of AGX_NSSET_IDS. */
int agx_ids_init(struct agx_ids *s, uint32_t base, uint32_t n,
                 struct agx_error **err) AGX_MUST_CHECK;
/* One range from `base` on, shared by all sandboxes. */
void agx_ids_share(struct agx_ids *s, uint32_t base);
void agx_ids_done(struct agx_ids *s);

/* A free one. -AGX_RESOURCE_EXHAUSTED when there is none. */
int agx_ids_take(struct agx_ids *s, uint32_t *ret_base, struct agx_error **err) AGX_MUST_CHECK;

/* This one. -AGX_ALREADY_EXISTS, or -AGX_INVALID_ARGUMENT when it is not one of the ranges. */
int agx_ids_reserve(struct agx_ids *s, uint32_t base, struct agx_error **err) AGX_MUST_CHECK;

bool agx_ids_has(const struct agx_ids *s, uint32_t base);
void agx_ids_release(struct agx_ids *s, uint32_t base);

#endif

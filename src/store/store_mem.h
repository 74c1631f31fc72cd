/*
 * store_mem.h: a store in memory, for tests: fast, not durable, and with faults on demand.
 *
 * It calls `done` in a later turn of the loop, and a read sees a batch just before its `done`,
 * never earlier: code that relies on more than store.h promises fails here.
 */
#ifndef AGX_STORE_STORE_MEM_H
#define AGX_STORE_STORE_MEM_H

#include "store/store.h"

int agx_store_mem_open(struct agx_loop *l, const struct agx_store_layout *layout,
                       struct agx_store **ret_store, struct agx_error **err) AGX_MUST_CHECK;

/* The next `n` batches are not stored and fail with that code. */
void agx_store_mem_fail(struct agx_store *st, enum agx_code code, size_t n);

/* Simulates a disk that hangs: until it is released, no batch is stored and no `done` called. */
void agx_store_mem_hold(struct agx_store *st, bool on);

#endif

/* store_internal.h: shared by the implementations of a store. */
#ifndef AGX_STORE_STORE_INTERNAL_H
#define AGX_STORE_STORE_INTERNAL_H

#include "store/store.h"
#include "store/store_batch.h"

/* Ends a batch: reports the result to its owner and frees it. The owner may commit again, or close
 * the store. */
void agx_store_finish(struct agx_store *st, struct agx_store_batch *b);

#endif

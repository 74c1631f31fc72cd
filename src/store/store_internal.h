/* store_internal.h: what implementations of a store share. */
#ifndef AGX_STORE_STORE_INTERNAL_H
#define AGX_STORE_STORE_INTERNAL_H

#include "store/store.h"
#include "store/store_batch.h"

/* The last of a batch: tells its owner how it went and frees it. The owner may commit again, or
 * close the store. */
void agx_store_finish(struct agx_store *st, struct agx_store_batch *b);

#endif

/* store.h: the functions that each kind of store provides to the conformance suite. */
#ifndef AGX_TESTS_CONFORMANCE_STORE_H
#define AGX_TESTS_CONFORMANCE_STORE_H

#include "tests/support/store.h"

/* An empty store with test_store_layout. */
struct agx_store *conformance_store_open(struct agx_loop *l);

/* Removes what the closed store left behind. */
void conformance_store_remove(void);

#endif

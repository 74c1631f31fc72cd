/* The store in memory passes the suite of all stores. */
#include "store/store_mem.h"
#include "tests/conformance/store.h"

struct agx_store *conformance_store_open(struct agx_loop *l)
{
    struct agx_store *st = NULL;

    ASSERT_OK(agx_store_mem_open(l, &test_store_layout, &st, NULL));
    return st;
}

void conformance_store_remove(void)
{
}

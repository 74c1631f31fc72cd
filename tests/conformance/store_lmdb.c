/* Runs the suite of all stores on the store on disk. */
#include "tests/conformance/store.h"
#include "tests/support/store_dir.h"

static struct test_dir dir;

struct agx_store *conformance_store_open(struct agx_loop *l)
{
    struct agx_store_lmdb_config c;
    struct agx_store *st = NULL;

    dir = test_dir_make();
    c = test_dir_config(&dir);
    ASSERT_OK(agx_store_lmdb_open(l, &c, &test_store_layout, &st, NULL));
    return st;
}

void conformance_store_remove(void)
{
    test_dir_remove(&dir);
}

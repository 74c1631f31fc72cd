/* store_dir.h: stores on disk in tests: a new directory, and helpers to open a store in it. */
#ifndef AGX_TESTS_STORE_DIR_H
#define AGX_TESTS_STORE_DIR_H

#include "base/path.h"
#include "store/store_lmdb.h"
#include "tests/support/store.h"

#include <fcntl.h>

struct test_dir {
    char path[64];  /* a new directory */
    char store[80]; /* the path of the store */
    char data[96];  /* its file */
};

static inline struct test_dir test_dir_make(void)
{
    struct test_dir d = { .path = "/tmp/agx-store-XXXXXX" };

    ASSERT_NOT_NULL(mkdtemp(d.path));
    snprintf(d.store, sizeof(d.store), "%s/store", d.path);
    snprintf(d.data, sizeof(d.data), "%s/data.mdb", d.store);
    return d;
}

static inline void test_dir_remove(const struct test_dir *d)
{
    int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ASSERT_OK(agx_path_remove_tree(tmp, d->path + strlen("/tmp/"), NULL));
    close(tmp);
}

static inline struct agx_store_lmdb_config test_dir_config(const struct test_dir *d)
{
    struct agx_store_lmdb_config c = AGX_STORE_LMDB_CONFIG_INIT;

    c.dir = d->store;
    return c;
}

static inline struct agx_store *test_dir_open(const struct test_dir *d)
{
    const struct agx_store_lmdb_config c = test_dir_config(d);
    struct agx_loop *l = test_loop_open();
    struct agx_error *err = NULL;
    struct agx_store *st = NULL;
    char text[512];

    if (agx_store_lmdb_open(l, &c, &test_store_layout, &st, &err) < 0)
        FAIL("%s", agx_error_format(err, text, sizeof(text)));
    return st;
}

static inline void test_dir_close(struct agx_store *st)
{
    struct agx_loop *l = st->loop;

    test_store_close(st);
    test_loop_close(l);
}

/* Asserts that opening fails with this code and a message that contains these words. */
static inline void test_dir_refuses(const struct test_dir *d, const struct agx_store_layout *layout,
                                    enum agx_code code, const char *words)
{
    const struct agx_store_lmdb_config c = test_dir_config(d);
    struct agx_loop *l = test_loop_open();
    struct agx_error *err = NULL;
    struct agx_store *st = NULL;

    ASSERT_CODE(code, agx_store_lmdb_open(l, &c, layout, &st, &err));
    ASSERT_NULL(st);
    ASSERT_MESSAGE(err, words);
    agx_error_free(err);
    test_loop_close(l);
}

#endif

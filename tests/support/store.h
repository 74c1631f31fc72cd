/*
 * store.h: stores in tests: their tables, and commits that wait for the result.
 */
#ifndef AGX_TESTS_STORE_H
#define AGX_TESTS_STORE_H

#include "base/limits.h"
#include "store/store.h"
#include "store/store_batch.h"
#include "tests/support/loop.h"

enum { TEST_SANDBOXES, TEST_EVENTS };

static const char *const test_store_tables[] = { "sandboxes", "events" };
static const struct agx_store_layout test_store_layout = { .tables = test_store_tables,
                                                           .n_tables = 2,
                                                           .version = 1 };

/* The result of one commit, backup or close. */
struct test_result {
    unsigned n;     /* number of reports */
    unsigned order; /* its place in the order of ends */
    enum agx_code code;
    char text[512];
};

static unsigned test_result_order;

static inline void test_on_done(void *user, struct agx_error *error)
{
    struct test_result *r = user;

    r->n++;
    r->order = ++test_result_order;
    r->code = error ? error->code : AGX_OK;
    if (error)
        (void)agx_error_format(error, r->text, sizeof(r->text));
    agx_error_free(error);
}

/* Takes the batch. */
static inline void test_store_submit(struct agx_store *st, struct agx_store_batch *b,
                                     struct test_result *ret)
{
    *ret = (struct test_result){ 0 };
    ASSERT_OK(agx_store_commit(st, &b, test_on_done, ret, NULL));
    ASSERT_NULL(b);
    ASSERT_UINT(0, ret->n);
}

/* Takes the batch, waits for its commit and returns the code. */
static inline enum agx_code test_store_commit(struct agx_store *st, struct agx_store_batch *b)
{
    struct test_result r;

    test_store_submit(st, b, &r);
    test_loop_run(st->loop);
    ASSERT_UINT(1, r.n);
    return r.code;
}

static inline void test_store_put(struct agx_store *st, unsigned table, const char *key,
                                  const char *value)
{
    struct agx_store_batch *b = agx_store_batch_new();

    agx_store_batch_put(b, table, agx_str_from(key), agx_str_from(value));
    ASSERT_INT(AGX_OK, test_store_commit(st, b));
}

static inline int test_store_count_one(void *user, struct agx_str key, struct agx_str value,
                                       struct agx_error **err)
{
    (void)key;
    (void)value;
    (void)err;
    ++*(uint64_t *)user;
    return 0;
}

/* The number of records in the range. */
static inline uint64_t test_store_count(struct agx_store *st, const struct agx_store_range *range)
{
    uint64_t n = 0;

    ASSERT_OK(agx_store_scan(st, range, test_store_count_one, &n, NULL));
    return n;
}

/* Asserts that the key has this value; NULL: that it does not exist. */
static inline void test_store_has(struct agx_store *st, unsigned table, const char *key,
                                  const char *value)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(AGX_STORE_BATCH_MAX);
    int r = agx_store_get(st, table, agx_str_from(key), &got, NULL);

    ASSERT_INT(value ? 1 : 0, r);
    if (value)
        ASSERT_STR(agx_str_from(value), agx_buf_peek(&got));
}

static inline void test_store_close(struct agx_store *st)
{
    struct agx_loop *l = st->loop;
    struct test_result r = { 0 };

    agx_store_close(st, test_on_done, &r);
    ASSERT_UINT(0, r.n);
    test_loop_run(l);
    ASSERT_UINT(1, r.n);
    if (r.code != AGX_OK)
        FAIL("close store: %s", r.text);
}

#endif

/* test_manager_usage_query.c: queries of resource usage through the manager. */
#include "daemon/manager/usage_query.h"

#include "tests/support/manager.h"

struct heard {
    unsigned n_uses, n_done;
    enum agx_code code;
};

static void on_use(void *user, size_t part, const struct agx_resource_usage *use)
{
    struct heard *h = user;

    ASSERT_UINT(0, part);
    ASSERT_TRUE(agx_resource_usage_has(use, AGX_USAGE_DISK));
    h->n_uses++;
}

static void on_done(void *user, struct agx_error *error)
{
    struct heard *h = user;

    h->code = error ? error->code : AGX_OK;
    h->n_done++;
    agx_error_free(error);
}

TEST(use_is_asked_of_the_backend)
{
    struct heard h = { 0 };
    struct agx_usage_query *u;
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    ASSERT_OK(agx_usage_query_start(f.manager, "box1", on_use, on_done, &h, &u, NULL));
    ASSERT_UINT(0, h.n_done);
    UNTIL(&f, h.n_done == 1);
    ASSERT_INT(AGX_OK, h.code);
    ASSERT_UINT(1, h.n_uses);
    fixture_close(&f);
}

TEST(nobody_is_asked_for_what_is_not_there)
{
    struct agx_usage_query *u;
    struct fixture f;

    fixture_open(&f);
    ASSERT_CODE(AGX_NOT_FOUND,
                agx_usage_query_start(f.manager, "none", on_use, on_done, NULL, &u, NULL));
    fixture_close(&f);
}

TEST(a_backend_that_hangs_is_not_waited_for)
{
    struct heard h = { 0 };
    struct agx_usage_query *u;
    struct fixture f;

    fixture_prepare(&f);
    f.config.usage_ms = 5;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    f.world->hold_uses = true;
    ASSERT_OK(agx_usage_query_start(f.manager, "box1", on_use, on_done, &h, &u, NULL));
    UNTIL(&f, h.n_done == 1);
    ASSERT_INT(AGX_DEADLINE_EXCEEDED, h.code);
    ASSERT_UINT(0, h.n_uses);
    fixture_close(&f);
}

TEST(who_goes_is_not_told)
{
    struct heard h = { 0 };
    struct agx_usage_query *u;
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    for (int hang = 0; hang < 2; hang++) {
        f.world->hold_uses = hang;
        ASSERT_OK(agx_usage_query_start(f.manager, "box1", on_use, on_done, &h, &u, NULL));
        ASSERT_NULL(agx_usage_query_stop(u));
    }
    fixture_settle(&f);
    ASSERT_UINT(0, h.n_uses + h.n_done);
    ASSERT_NULL(agx_usage_query_stop(NULL));
    fixture_close(&f);
}

/* Records of purged sandboxes are removed from the store page by page, with any other work
 * between. */
#include "base/limits.h"
#include "tests/support/manager.h"
#include "tests/support/store.h"

#include <stdio.h>

#define MANY (2 * AGX_PURGE_PAGE + 500)

static char old1[] = "old1", old2[] = "old2";

static void on_done(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    *(bool *)user = true;
}

static void commit(struct fixture *f, struct agx_store_batch *b)
{
    bool done = false;

    ASSERT_INT(0, agx_store_commit(f->store, &b, on_done, &done, NULL));
    UNTIL(f, done);
}

/* A history of that length, as if the sandbox had lived it. */
static void put_history(struct fixture *f, char *id, uint64_t first_position, unsigned n)
{
    const struct agx_sandbox sb = { .id = id, .number = first_position };
    struct agx_store_batch *b = agx_store_batch_new();

    for (unsigned i = 0; i < n; i++) {
        struct agx_event event = { .sequence = i + 1, .type = AGX_EVENT_EXEC_STARTED };
        struct agx_exec x = { 0 };
        char name[100];

        snprintf(name, sizeof(name), "%s-exec-%u", id, i);
        ASSERT_INT(0, agx_exec_init(&x, name, id, NULL));
        x.phase = AGX_EXEC_PHASE_ENDED;
        agx_schema_reserve_exec(b, &sb, &x);
        agx_schema_put_exec(b, &x);
        agx_schema_put_event(b, &sb, first_position + i, &event);
        agx_exec_done(&x);
    }
    commit(f, b);
}

/* The sandbox is gone, and the process ended before anything else. */
static void note_purge(struct fixture *f, uint64_t number, uint64_t position)
{
    const struct agx_sandbox sb = { .number = number };
    struct agx_store_batch *b = agx_store_batch_new();

    agx_schema_purge(b, &sb, position);
    commit(f, b);
}

static uint64_t count(struct fixture *f, enum agx_schema_table table)
{
    const struct agx_store_range all = { .table = table };

    return test_store_count(f->store, &all);
}

TEST(a_long_history_goes_page_by_page_and_its_neighbour_stays)
{
    struct fixture f;

    fixture_prepare(&f);
    put_history(&f, old1, 1, MANY);
    put_history(&f, old2, MANY + 1, 3);
    note_purge(&f, 1, MANY + 3);
    fixture_open_manager(&f);
    UNTIL(&f, count(&f, AGX_TABLE_PURGES) == 0);
    ASSERT_UINT(3, count(&f, AGX_TABLE_EVENTS));
    ASSERT_UINT(3, count(&f, AGX_TABLE_POSITIONS));
    ASSERT_UINT(3, count(&f, AGX_TABLE_EXECS));
    ASSERT_UINT(3, count(&f, AGX_TABLE_SANDBOX_EXECS));
    ASSERT_UINT(MANY + 3, count(&f, AGX_TABLE_EXEC_IDS)); /* reserved for ever */
    fixture_close(&f);
}

TEST(a_purge_goes_on_after_a_restart_in_its_middle)
{
    struct fixture f;
    struct agx_store_batch *b = agx_store_batch_new();

    fixture_prepare(&f);
    put_history(&f, old1, 1, MANY);
    note_purge(&f, 1, MANY);
    ASSERT_INT(1, agx_schema_purge_page(f.store, b, AGX_PURGE_PAGE, NULL));
    commit(&f, b);
    ASSERT_UINT(MANY - AGX_PURGE_PAGE, count(&f, AGX_TABLE_EVENTS));
    ASSERT_UINT(1, count(&f, AGX_TABLE_PURGES));
    fixture_open_manager(&f);
    UNTIL(&f, count(&f, AGX_TABLE_PURGES) == 0);
    ASSERT_UINT(0, count(&f, AGX_TABLE_EVENTS));
    ASSERT_UINT(0, count(&f, AGX_TABLE_EXECS));
    fixture_close(&f);
}

TEST(a_purge_that_cannot_be_stored_is_tried_again)
{
    struct fixture f;

    fixture_prepare(&f);
    put_history(&f, old1, 1, 10);
    put_history(&f, old2, 11, 10);
    note_purge(&f, 1, 20);
    note_purge(&f, 11, 20);
    fixture_open_manager(&f);
    agx_store_mem_fail(f.store, AGX_RESOURCE_EXHAUSTED, 3);
    UNTIL(&f, count(&f, AGX_TABLE_PURGES) == 0);
    ASSERT_UINT(0, count(&f, AGX_TABLE_EVENTS));
    ASSERT_UINT(0, count(&f, AGX_TABLE_POSITIONS));
    fixture_close(&f);
}

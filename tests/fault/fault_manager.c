/* fault_manager.c: records of the manager's store without memory: each is refused as a whole. */
#include "daemon/manager/schema.h"
#include "store/store_mem.h"
#include "tests/support/core.h"
#include "tests/support/fault.h"
#include "tests/support/loop.h"

/* Keeps the loop turning, and the code with which the batch ended. */
struct outcome {
    enum agx_code code;
    unsigned n;
};

static void note(void *user, struct agx_error *error)
{
    struct outcome *o = user;

    o->n++;
    o->code = error ? error->code : AGX_OK;
    agx_error_free(error);
}

static void fill(struct agx_store_batch *b, struct agx_sandbox *sb, struct agx_exec *x,
                 struct agx_event *event)
{
    agx_schema_put_sandbox(b, sb);
    agx_schema_put_life(b, sb);
    agx_schema_reserve_exec(b, sb, x);
    agx_schema_put_exec(b, x);
    agx_schema_put_event(b, sb, 1, event);
}

static int store_it(struct agx_store *st, struct agx_sandbox *sb, struct agx_exec *x,
                    struct agx_event *event)
{
    struct outcome o = { 0 };
    struct agx_store_batch *b = agx_store_batch_new();
    int r;

    fill(b, sb, x, event);
    r = agx_store_commit(st, &b, note, &o, NULL);
    agx_store_batch_free(b);
    if (r < 0)
        return r;
    test_loop_run(st->loop);
    ASSERT_UINT(1, o.n);
    return -(int)o.code;
}

TEST(a_sandbox_is_stored_as_a_whole_or_not_at_all)
{
    struct agx_loop *l = test_loop_open();
    struct agx_sandbox sb;
    struct agx_exec x;
    struct agx_event event = { .sequence = 1, .type = AGX_EVENT_SANDBOX_ACCEPTED };

    test_sandbox(&sb, "box1");
    sb.number = 1;
    test_exec(&x, "exec1", "box1");
    FAULT_EACH_ALLOCATION
    {
        struct agx_store *st = NULL;
        struct agx_exec got = { 0 };
        struct agx_event_record record = { 0 };
        int r = agx_store_mem_open(l, &agx_schema_layout, &st, NULL);

        if (r == 0)
            r = store_it(st, &sb, &x, &event);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r == 0) {
            r = agx_schema_get_exec(st, "exec1", &got, NULL);
            ASSERT_TRUE(r == 1 || r == -AGX_RESOURCE_EXHAUSTED);
            r = agx_schema_next_event(st, 0, 1, &record, NULL);
            ASSERT_TRUE(r == 1 || r == -AGX_RESOURCE_EXHAUSTED);
        } else if (st) {
            agx_fault_arm(0);
            ASSERT_INT(0, agx_schema_is_reserved(st, AGX_TABLE_SANDBOX_IDS, "box1", NULL));
            ASSERT_INT(0, agx_schema_get_exec(st, "exec1", &got, NULL));
        }
        agx_exec_done(&got);
        agx_event_record_done(&record);
        if (st) {
            agx_store_close(st, NULL, NULL);
            test_loop_run(l);
        }
    }
    agx_sandbox_done(&sb);
    agx_exec_done(&x);
    test_loop_close(l);
}

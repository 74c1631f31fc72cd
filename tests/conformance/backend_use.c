/* The suite that every backend passes: resource usage of sandboxes. */
#include "tests/conformance/backend_stage.h"

#define DISK (1U << AGX_USAGE_DISK)
#define RUNNING (1U << AGX_USAGE_CPU_NS | 1U << AGX_USAGE_MEMORY | 1U << AGX_USAGE_PIDS | DISK)

/* Of what does not run: its disk, and a limit on it if there is one. */
static void only_disk(const struct agx_resource_usage *use)
{
    ASSERT_UINT(DISK, use->known & ~(1U << AGX_USAGE_DISK_LIMIT));
}

TEST(what_runs_uses_processors_memory_and_disk_and_what_stands_its_disk_alone)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    ASSERT_INT(AGX_NOT_FOUND, test_backend_use(s.b, &s.sb).code);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    r = test_backend_use(s.b, &s.sb);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(1, r.n_uses);
    ASSERT_UINT(RUNNING, r.uses[0].known & RUNNING);
    ASSERT_TRUE(r.uses[0].figures[AGX_USAGE_CPU_NS] > 0);
    ASSERT_TRUE(r.uses[0].figures[AGX_USAGE_MEMORY] > 0);
    ASSERT_TRUE(r.uses[0].figures[AGX_USAGE_PIDS] > 0);
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    r = test_backend_use(s.b, &s.sb);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(1, r.n_uses);
    only_disk(&r.uses[0]);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    r = test_backend_use(s.b, &s.sb);
    ASSERT_INT(AGX_NOT_FOUND, r.code);
    ASSERT_UINT(0, r.n_uses);
    close_stage(&s);
}

TEST(companions_use_something_too)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    agx_sandbox_done(&s.sb);
    make_sandbox(&s.sb, "conform-2", 2);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    r = test_backend_use(s.b, &s.sb);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(3, r.n_uses);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_UINT(RUNNING, r.uses[i].known & RUNNING);
        ASSERT_TRUE(agx_resource_usage_has(&r.uses[i], AGX_USAGE_RX));
    }
    close_stage(&s);
}

TEST(use_is_known_to_a_backend_that_is_opened_anew)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    reopen(&s);
    r = test_backend_use(s.b, &s.sb);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(RUNNING, r.uses[0].known & RUNNING);
    close_stage(&s);
}

/* Whatever is left of it by then is told, or that there is none; and the answer comes. */
TEST(a_sandbox_that_goes_while_its_use_is_asked_for_leaves_an_answer)
{
    struct test_reply use[4] = { 0 }, gone;
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_backend_begin(s.b, &s.sb, AGX_DO_DELETE, &gone);
    for (size_t i = 0; i < AGX_ARRAY_LEN(use); i++)
        ASSERT_OK(agx_backend_usage(s.b, &s.sb, test_reply_use, test_reply_done, &use[i],
                                    &use[i].op, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(use); i++) {
        test_wait(s.b->loop, &use[i].n_done, 1);
        ASSERT_TRUE(use[i].code == AGX_OK || use[i].code == AGX_NOT_FOUND);
    }
    test_wait(s.b->loop, &gone.n_done, 1);
    ASSERT_CSTR("", gone.text);
    close_stage(&s);
}

TEST(a_query_for_use_can_be_cancelled_and_abandoned)
{
    struct test_reply cancelled = { 0 }, abandoned = { 0 };
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_OK(agx_backend_usage(s.b, &s.sb, test_reply_use, test_reply_done, &cancelled,
                                &cancelled.op, NULL));
    ASSERT_OK(agx_backend_usage(s.b, &s.sb, test_reply_use, test_reply_done, &abandoned,
                                &abandoned.op, NULL));
    agx_backend_cancel(cancelled.op);
    agx_backend_abandon(abandoned.op);
    test_wait(s.b->loop, &cancelled.n_done, 1);
    ASSERT_INT(AGX_CANCELLED, cancelled.code);
    ASSERT_CSTR("", test_backend_use(s.b, &s.sb).text);
    ASSERT_UINT(0, abandoned.n_done + abandoned.n_uses);
    close_stage(&s);
}

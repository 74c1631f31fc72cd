/* The suite that every backend passes: sandboxes. backend_exec.c tests execs, backend_<kind>.c
 * opens the backend. */
#include "tests/conformance/backend_stage.h"

TEST(create_begins_and_then_it_runs)
{
    struct stage s;
    struct test_reply r;

    open_stage(&s);
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(1, r.n_begun);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

TEST(a_sandbox_goes_through_its_life_and_each_verb_can_be_repeated)
{
    static const struct {
        enum agx_do verb;
        enum agx_seen then;
    } steps[] = {
        { AGX_DO_CREATE, AGX_SEEN_RUNNING }, { AGX_DO_REVIVE, AGX_SEEN_RUNNING },
        { AGX_DO_STOP, AGX_SEEN_EXITED },    { AGX_DO_RESUME, AGX_SEEN_RUNNING },
        { AGX_DO_HALT, AGX_SEEN_EXITED },    { AGX_DO_REVIVE, AGX_SEEN_RUNNING },
        { AGX_DO_STOP, AGX_SEEN_EXITED },    { AGX_DO_DELETE, AGX_SEEN_MISSING },
    };
    struct stage s;

    open_stage(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(steps); i++) {
        for (int again = 0; again < 3; again++) {
            test_backend_ok(s.b, &s.sb, steps[i].verb);
            ASSERT_INT(steps[i].then, test_backend_seen(s.b, s.sb.id));
        }
    }
    close_stage(&s);
}

TEST(a_running_sandbox_can_be_deleted_and_created_again)
{
    struct stage s;

    open_stage(&s);
    for (int i = 0; i < 3; i++) {
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
        test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
        ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    }
    close_stage(&s);
}

TEST(what_was_never_made_cannot_be_started_but_halted_and_deleted)
{
    struct stage s;

    open_stage(&s);
    ASSERT_INT(AGX_NOT_FOUND, test_backend_do(s.b, &s.sb, AGX_DO_RESUME).code);
    ASSERT_INT(AGX_NOT_FOUND, test_backend_do(s.b, &s.sb, AGX_DO_REVIVE).code);
    ASSERT_INT(AGX_NOT_FOUND, test_backend_do(s.b, &s.sb, AGX_DO_STOP).code);
    test_backend_ok(s.b, &s.sb, AGX_DO_HALT);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

TEST(companions_start_before_done_and_are_seen)
{
    struct stage s;
    struct test_reply r;

    open_stage(&s);
    agx_sandbox_done(&s.sb);
    make_sandbox(&s.sb, "conform-2", 2);
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_CSTR("", r.text);
    ASSERT_UINT(3, r.companions_ready);
    ASSERT_UINT(0, r.companions_failed);
    r = test_backend_look(s.b, s.sb.id);
    ASSERT_UINT(2, r.companions_len);
    ASSERT_INT(AGX_SEEN_RUNNING, r.companions[0]);
    ASSERT_INT(AGX_SEEN_RUNNING, r.companions[1]);
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    r = test_backend_look(s.b, s.sb.id);
    ASSERT_INT(AGX_SEEN_EXITED, r.companions[0]);
    r = test_backend_do(s.b, &s.sb, AGX_DO_RESUME);
    ASSERT_UINT(3, r.companions_ready);
    close_stage(&s);
}

struct inventory {
    unsigned n_done, n_ours;
    char want[3][16];
};

static void count_seen(void *user, const struct agx_backend_seen *seen)
{
    struct inventory *c = user;

    for (size_t i = 0; i < 3; i++)
        c->n_ours += strcmp(c->want[i], seen->sandbox_id) == 0;
}

static void on_inventory(void *user, struct agx_error *error)
{
    struct inventory *c = user;

    ASSERT_NULL(error);
    c->n_done++;
}

TEST(a_look_at_all_shows_each_once)
{
    struct inventory c = { .want = { "conform-a", "conform-b", "conform-c" } };
    struct agx_sandbox others[3];
    struct agx_backend_op *op;
    struct stage s;

    open_stage(&s);
    for (size_t i = 0; i < 3; i++) {
        make_sandbox(&others[i], c.want[i], 0);
        test_backend_ok(s.b, &others[i], AGX_DO_CREATE);
    }
    test_backend_ok(s.b, &others[1], AGX_DO_STOP);
    ASSERT_OK(agx_backend_look(s.b, NULL, count_seen, on_inventory, &c, &op, NULL));
    test_wait(s.b->loop, &c.n_done, 1);
    ASSERT_UINT(3, c.n_ours);
    for (size_t i = 0; i < 3; i++) {
        test_backend_ok(s.b, &others[i], AGX_DO_DELETE);
        agx_sandbox_done(&others[i]);
    }
    c.n_ours = 0;
    ASSERT_OK(agx_backend_look(s.b, NULL, count_seen, on_inventory, &c, &op, NULL));
    test_wait(s.b->loop, &c.n_done, 2);
    ASSERT_UINT(0, c.n_ours);
    close_stage(&s);
}

TEST(a_new_backend_finds_what_another_left)
{
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    reopen(&s);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    reopen(&s);
    ASSERT_INT(AGX_SEEN_EXITED, test_backend_seen(s.b, s.sb.id));
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    close_stage(&s);
}

TEST(an_operation_that_close_abandoned_can_be_carried_on)
{
    struct stage s;
    struct test_reply r;

    open_stage(&s);
    test_backend_begin(s.b, &s.sb, AGX_DO_CREATE, &r);
    reopen(&s);
    ASSERT_UINT(0, r.n_done);
    for (;;) {
        struct test_reply again = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);

        if (again.code == AGX_OK)
            break;
        ASSERT_INT(AGX_UNAVAILABLE, again.code); /* the first one still runs */
        test_pause(s.b->loop, 10);
    }
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

TEST(the_request_is_copied_before_the_call_returns)
{
    struct agx_sandbox gone;
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    make_sandbox(&gone, s.sb.id, 0);
    test_backend_begin(s.b, &gone, AGX_DO_CREATE, &r);
    memset(gone.id, 'X', strlen(gone.id));
    agx_sandbox_done(&gone);
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_CSTR("", r.text);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

TEST(operations_on_one_sandbox_do_not_overlap)
{
    struct test_reply r[4];
    struct stage s;
    unsigned taken = 0;

    open_stage(&s);
    for (size_t i = 0; i < AGX_ARRAY_LEN(r); i++)
        test_backend_begin(s.b, &s.sb, i == 0 ? AGX_DO_CREATE : AGX_DO_STOP, &r[i]);
    for (size_t i = 0; i < AGX_ARRAY_LEN(r); i++) {
        test_wait(s.b->loop, &r[i].n_done, 1);
        ASSERT_TRUE(r[i].code == AGX_OK || r[i].code == AGX_UNAVAILABLE);
        taken += r[i].code == AGX_OK;
    }
    ASSERT_INT(AGX_OK, r[0].code);
    ASSERT_TRUE(taken >= 1);
    close_stage(&s);
}

/* Cancelling, at whatever moment it reaches the operation. */
static void cancel_after(enum agx_do verb, uint64_t ms)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    if (verb != AGX_DO_CREATE)
        test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    if (verb == AGX_DO_RESUME)
        test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    test_backend_begin(s.b, &s.sb, verb, &r);
    if (ms > 0)
        test_pause(s.b->loop, ms);
    if (r.op)
        agx_backend_cancel(r.op);
    test_wait(s.b->loop, &r.n_done, 1);
    ASSERT_TRUE(r.code == AGX_OK || r.code == AGX_CANCELLED);
    close_stage(&s); /* its delete succeeds, whatever was left */
}

TEST(each_verb_may_be_cancelled_at_any_moment)
{
    static const enum agx_do verbs[] = { AGX_DO_CREATE, AGX_DO_STOP,   AGX_DO_RESUME,
                                         AGX_DO_DELETE, AGX_DO_REVIVE, AGX_DO_HALT };

    for (size_t i = 0; i < AGX_ARRAY_LEN(verbs); i++) {
        cancel_after(verbs[i], 0);
        cancel_after(verbs[i], 1);
    }
}

TEST(a_hanging_operation_ends_when_it_is_cancelled)
{
    static const enum agx_do verbs[] = { AGX_DO_CREATE, AGX_DO_STOP, AGX_DO_DELETE };

    for (size_t i = 0; i < AGX_ARRAY_LEN(verbs); i++) {
        struct test_reply r;
        struct stage s;

        open_stage(&s);
        if (verbs[i] != AGX_DO_CREATE)
            test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
        if (!conformance_backend_hangs(s.sb.id, verbs[i], false))
            SKIP("this backend cannot be made to hang");
        test_backend_begin(s.b, &s.sb, verbs[i], &r);
        test_pause(s.b->loop, 20);
        ASSERT_UINT(0, r.n_done);
        agx_backend_cancel(r.op);
        test_wait(s.b->loop, &r.n_done, 1);
        ASSERT_INT(AGX_CANCELLED, r.code);
        close_stage(&s);
    }
}

TEST(a_sandbox_that_hangs_holds_up_no_other_and_refuses_until_it_has_ended)
{
    struct agx_sandbox stuck;
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    make_sandbox(&stuck, "conform-stuck", 0);
    if (!conformance_backend_hangs(stuck.id, AGX_DO_CREATE, true))
        SKIP("this backend cannot be made to hang");
    test_backend_begin(s.b, &stuck, AGX_DO_CREATE, &r);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_backend_ok(s.b, &s.sb, AGX_DO_STOP);
    ASSERT_UINT(0, r.n_done);
    agx_backend_cancel(r.op);
    test_pause(s.b->loop, 20);
    ASSERT_UINT(0, r.n_done);
    ASSERT_INT(AGX_UNAVAILABLE, test_backend_do(s.b, &stuck, AGX_DO_DELETE).code);
    agx_backend_abandon(r.op); /* given up: it still refuses */
    ASSERT_INT(AGX_UNAVAILABLE, test_backend_do(s.b, &stuck, AGX_DO_DELETE).code);
    test_backend_ok(s.b, &s.sb, AGX_DO_RESUME);
    ASSERT_UINT(0, r.n_done);
    agx_sandbox_done(&stuck);
    close_stage(&s);
}

TEST(a_failed_create_says_why_and_can_be_deleted_or_tried_again)
{
    struct test_reply r;
    struct stage s;

    open_stage(&s);
    if (!conformance_backend_fails(s.sb.id, AGX_DO_CREATE))
        SKIP("this backend cannot be made to fail");
    r = test_backend_do(s.b, &s.sb, AGX_DO_CREATE);
    ASSERT_TRUE(r.code != AGX_OK && strlen(r.text) > 0);
    ASSERT_TRUE(test_backend_seen(s.b, s.sb.id) != AGX_SEEN_RUNNING);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    (void)conformance_backend_fails(s.sb.id, AGX_DO_CREATE);
    ASSERT_TRUE(test_backend_do(s.b, &s.sb, AGX_DO_CREATE).code != AGX_OK);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

struct listener {
    unsigned n;
    char sandbox_id[AGX_IDENT_MAX + 1];
};

static void on_news(void *user, const char *sandbox_id)
{
    struct listener *l = user;

    l->n++;
    (void)snprintf(l->sandbox_id, sizeof(l->sandbox_id), "%s", agx_text(sandbox_id));
}

TEST(a_main_process_that_ends_gives_news_and_can_be_revived)
{
    struct listener heard = { 0 };
    struct stage s;

    open_stage(&s);
    s.b->news = on_news;
    s.b->news_user = &heard;
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    if (!conformance_backend_kills_main(s.sb.id))
        SKIP("no way to kill a main process here");
    do { /* news may still be of its start, or of nothing at all */
        test_wait(s.b->loop, &heard.n, 1);
        heard.n = 0;
        ASSERT_TRUE(heard.sandbox_id[0] == '\0' || strcmp(heard.sandbox_id, s.sb.id) == 0);
    } while (test_backend_seen(s.b, s.sb.id) != AGX_SEEN_EXITED);
    test_backend_ok(s.b, &s.sb, AGX_DO_REVIVE);
    ASSERT_INT(AGX_SEEN_RUNNING, test_backend_seen(s.b, s.sb.id));
    close_stage(&s);
}

TEST(what_others_removed_is_missing)
{
    struct stage s;

    open_stage(&s);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    if (!conformance_backend_removes(s.sb.id))
        SKIP("no way to remove a sandbox here");
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, s.sb.id));
    ASSERT_INT(AGX_NOT_FOUND, test_backend_do(s.b, &s.sb, AGX_DO_REVIVE).code);
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    close_stage(&s);
}

TEST(what_is_not_ours_is_neither_seen_nor_touched)
{
    struct stage s;

    open_stage(&s);
    if (!conformance_backend_makes_foreign("conform-f"))
        SKIP("nothing foreign is possible here");
    ASSERT_INT(AGX_SEEN_MISSING, test_backend_seen(s.b, "conform-f"));
    test_backend_ok(s.b, &s.sb, AGX_DO_CREATE);
    test_backend_ok(s.b, &s.sb, AGX_DO_DELETE);
    conformance_backend_checks_foreign("conform-f");
    close_stage(&s);
}

TEST(many_sandboxes_at_a_time)
{
    enum { MAX = 64 };
    const unsigned n = conformance_backend_many();
    struct agx_sandbox sb[MAX];
    struct test_reply r[MAX];
    struct stage s;

    ASSERT_TRUE(n <= MAX);
    open_stage(&s);
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < n; i++) {
            char id[32];

            (void)snprintf(id, sizeof(id), "conform-n%u", i);
            if (round == 0)
                make_sandbox(&sb[i], id, 0);
            test_backend_begin(s.b, &sb[i], round == 0 ? AGX_DO_CREATE : AGX_DO_DELETE, &r[i]);
        }
        for (unsigned i = 0; i < n; i++) {
            test_wait(s.b->loop, &r[i].n_done, 1);
            ASSERT_CSTR("", r[i].text);
        }
    }
    for (unsigned i = 0; i < n; i++)
        agx_sandbox_done(&sb[i]);
    close_stage(&s);
}

TEST(ids_that_are_none_get_no_further)
{
    struct agx_error *err = NULL;
    struct agx_backend_op *op;
    struct stage s;

    open_stage(&s);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_backend_look(s.b, "../etc", test_reply_seen, test_reply_done, NULL, &op, &err));
    ASSERT_MESSAGE(err, "sandbox_id");
    agx_error_free(err);
    close_stage(&s);
}

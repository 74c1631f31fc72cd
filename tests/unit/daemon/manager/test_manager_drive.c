/* test_manager_drive.c: the backend is slow, fails, hangs and dies. */
#include "base/clock.h"
#include "tests/support/manager.h"

static const char *error_of(struct fixture *f, const char *id, const char **ret_message)
{
    const struct agx_sandbox *sb;

    ASSERT_OK(agx_manager_find(f->manager, id, &sb, NULL));
    *ret_message = agx_text(sb->life.error_message);
    return agx_text(sb->life.error_code);
}

TEST(a_failed_create_says_why_and_can_be_deleted)
{
    struct fixture f;
    const char *message;

    fixture_open(&f);
    f.world->fail[AGX_DO_CREATE] = 1;
    (void)ask_create(&f, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_FAILED);
    ASSERT_CSTR("SANDBOX_CREATE_FAILED", error_of(&f, "box1", &message));
    ASSERT_CSTR("made to fail", message);
    ASSERT_INT(AGX_OK, ask(&f, "box1", AGX_ON_DELETE).code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_CSTR("ACCEPTED FAILED DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_request_settles_before_the_backend_is_asked)
{
    struct fixture f;
    uint64_t before;

    fixture_prepare(&f);
    f.config.settle_ms = 20;
    fixture_open_manager(&f);
    before = agx_clock_ms();
    (void)ask_create(&f, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_TRUE(agx_clock_ms() - before >= 19);
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    fixture_close(&f);
}

/* Creates and deletes a sandbox; false: we were not quicker with the delete than it settles. */
static bool overtake(struct fixture *f, uint64_t settle_ms)
{
    uint64_t begin;

    fixture_prepare(f);
    f->config.settle_ms = settle_ms;
    fixture_open_manager(f);
    begin = agx_clock_ms();
    (void)ask_create(f, "box1");
    ASSERT_INT(AGX_OK, ask(f, "box1", AGX_ON_DELETE).code);
    if (agx_clock_ms() - begin < settle_ms)
        return true;
    fixture_close(f);
    return false;
}

TEST(a_request_that_settles_can_be_overtaken)
{
    struct fixture f;

    for (uint64_t settle_ms = 100; !overtake(&f, settle_ms);)
        settle_ms *= 2;
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_UINT(0, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    ASSERT_CSTR("ACCEPTED DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_delete_overtakes_a_create_and_leaves_nothing)
{
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, f.world->n_calls >= 2);
    ASSERT_INT(AGX_OK, ask(&f, "box1", AGX_ON_DELETE).code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_UINT(0, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_DELETE]);
    ASSERT_INT(AGX_SEEN_MISSING, world_box(f.world, "box1")->seen);
    ASSERT_CSTR("ACCEPTED DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_delete_in_the_same_turn_as_the_create_is_made)
{
    struct fixture f;
    struct reply create, delete = { 0 };

    fixture_open(&f);
    send_create(&f, "box1", &create);
    agx_manager_ask(f.manager, "box1", AGX_ON_DELETE, reply_note, &delete);
    UNTIL(&f, create.n == 1 && delete.n == 1);
    ASSERT_INT(AGX_OK, create.code);
    ASSERT_INT(AGX_OK, delete.code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_UINT(0, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    ASSERT_CSTR("ACCEPTED DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(stops_and_deletes_in_one_turn_do_each_thing_once)
{
    struct fixture f;
    struct reply r[4] = { 0 };

    fixture_open(&f);
    make_ready(&f, "box1");
    agx_manager_ask(f.manager, "box1", AGX_ON_STOP, reply_note, &r[0]);
    agx_manager_ask(f.manager, "box1", AGX_ON_STOP, reply_note, &r[1]);
    agx_manager_ask(f.manager, "box1", AGX_ON_DELETE, reply_note, &r[2]);
    agx_manager_ask(f.manager, "box1", AGX_ON_DELETE, reply_note, &r[3]);
    UNTIL(&f, r[0].n == 1 && r[1].n == 1 && r[2].n == 1 && r[3].n == 1);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_CSTR("ACCEPTED PREPARING READY STOP_REQUESTED DELETE_REQUESTED DELETED",
                events_of(&f, "box1"));
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_DELETE]);
    fixture_close(&f);
}

TEST(an_operation_past_its_deadline_is_cancelled_and_says_so)
{
    struct fixture f;
    const char *message;

    fixture_prepare(&f);
    f.config.create_ms = 10;
    fixture_open_manager(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_FAILED);
    (void)error_of(&f, "box1", &message);
    ASSERT_CSTR("create was cancelled after 10 ms: cancelled", message);
    fixture_close(&f);
}

TEST(an_operation_that_hangs_is_given_up_and_holds_up_no_other_sandbox)
{
    struct fixture f;
    struct agx_manager_stats stats;
    const char *message;

    fixture_prepare(&f);
    f.config.create_ms = 3000; /* the other one must be made by then */
    f.config.abandon_ms = 30;
    fixture_open_manager(&f);
    f.world->hold[AGX_DO_CREATE] = f.world->deaf = true;
    (void)ask_create(&f, "hung");
    UNTIL(&f, world_box(f.world, "hung"));
    f.world->hold[AGX_DO_CREATE] = false;
    make_ready(&f, "box2");
    ASSERT_INT(AGX_PHASE_CREATING, phase_of(&f, "hung"));
    UNTIL(&f, phase_of(&f, "hung") == AGX_PHASE_FAILED);
    (void)error_of(&f, "hung", &message);
    ASSERT_TRUE(strstr(message, "the backend hung in create: given up after") != NULL);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(1, stats.abandoned);
    ASSERT_UINT(0, stats.operations);
    /* The backend refuses the delete while the lost create runs, and takes it afterwards. */
    (void)ask(&f, "hung", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "hung") == AGX_PHASE_FAILED);
    world_release(f.world, "hung");
    fixture_settle(&f);
    ASSERT_INT(AGX_SEEN_RUNNING, world_box(f.world, "hung")->seen);
    (void)ask(&f, "hung", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "hung") == AGX_PHASE_DELETED);
    ASSERT_INT(AGX_SEEN_MISSING, world_box(f.world, "hung")->seen);
    ASSERT_CSTR("ACCEPTED FAILED DELETE_REQUESTED FAILED DELETE_REQUESTED DELETED",
                events_of(&f, "hung"));
    fixture_close(&f);
}

TEST(a_dead_main_process_is_started_again)
{
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    world_die(f.world, "box1", AGX_SEEN_EXITED);
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_REVIVE] == 1);
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_INT(AGX_SEEN_RUNNING, world_box(f.world, "box1")->seen);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

/* It dies and dies; false: we were too slow for more than one try within the window. */
static bool crash(struct fixture *f, uint64_t window_ms)
{
    fixture_prepare(f);
    f->config.watch.window_ms = window_ms;
    fixture_open_manager(f);
    make_ready(f, "box1");
    UNTIL(f, (world_die(f->world, "box1", AGX_SEEN_EXITED), fixture_turn(f),
              phase_of(f, "box1") == AGX_PHASE_FAILED));
    if (world_box(f->world, "box1")->n[AGX_DO_REVIVE] > 1)
        return true;
    fixture_close(f);
    return false;
}

TEST(a_crash_loop_fails_the_sandbox)
{
    struct fixture f;
    const char *message;

    for (uint64_t window_ms = 60; !crash(&f, window_ms);)
        window_ms *= 2;
    ASSERT_CSTR("CONTAINER_CRASHLOOP", error_of(&f, "box1", &message));
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_HALT] == 1);
    ASSERT_CSTR("ACCEPTED PREPARING READY FAILED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_crash_loop_by_memory_has_its_own_code)
{
    struct fixture f;
    const char *message;

    fixture_prepare(&f);
    f.config.watch.window_ms = 60;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    UNTIL(&f, (world_die(f.world, "box1", AGX_SEEN_OOM), fixture_turn(&f),
               phase_of(&f, "box1") == AGX_PHASE_FAILED));
    ASSERT_CSTR("CONTAINER_OOM", error_of(&f, "box1", &message));
    fixture_close(&f);
}

TEST(what_vanished_fails_at_once_with_its_execs)
{
    struct fixture f;
    struct agx_exec exec;
    uint64_t sequence;
    const char *message;

    fixture_open(&f);
    make_ready(&f, "box1");
    ASSERT_INT(AGX_OK, ask_exec(&f, "box1", "exec1").code);
    UNTIL(&f, world_exec(f.world, "exec1"));
    world_exec(f.world, "exec1")->running = false; /* nobody tells of its end */
    world_die(f.world, "box1", AGX_SEEN_MISSING);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_FAILED);
    ASSERT_CSTR("CONTAINER_NOT_RUNNING", error_of(&f, "box1", &message));
    ASSERT_OK(agx_manager_exec_find(f.manager, "exec1", &exec, &sequence, NULL));
    ASSERT_INT(AGX_EXEC_FAILED, exec.state);
    ASSERT_INT(-1, exec.exit_code);
    agx_exec_done(&exec);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_FAILED FAILED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(looks_without_news_find_a_death_too)
{
    struct fixture f;

    fixture_prepare(&f);
    f.config.look_ms = 5;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    world_box(f.world, "box1")->seen = AGX_SEEN_MISSING;
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_FAILED);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box2"));
    fixture_close(&f);
}

TEST(a_look_that_began_before_a_create_says_nothing_of_it)
{
    struct fixture f;

    fixture_prepare(&f);
    f.config.look_deadline_ms = 100000;
    f.world->hold_looks = true;
    fixture_open_manager(&f);
    UNTIL(&f, f.world->n_calls == 1); /* the look at all, which hangs */
    make_ready(&f, "box1");
    world_box(f.world, "box1")->seen = AGX_SEEN_MISSING; /* as it was when the look began */
    f.world->hold_looks = false;
    world_release(f.world, "");
    UNTIL(&f, f.world->n_looks >= 1);
    world_box(f.world, "box1")->seen = AGX_SEEN_RUNNING;
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    fixture_close(&f);
}

/* Waits until one more look at a sandbox was answered than `before`. */
static void until_looked(struct fixture *f, unsigned before)
{
    UNTIL(f, f->world->n_looks > before);
}

TEST(a_death_that_is_told_of_before_the_create_is_done_is_not_forgotten)
{
    struct fixture f;
    unsigned looks;

    fixture_open(&f);
    until_looked(&f, 0); /* the one at all */
    looks = f.world->n_looks;
    f.world->hold[AGX_DO_CREATE] = f.world->stillborn = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, world_box(f.world, "box1"));
    world_die(f.world, "box1", AGX_SEEN_EXITED);
    until_looked(&f, looks);
    ASSERT_INT(AGX_PHASE_CREATING, phase_of(&f, "box1"));
    world_release(f.world, "box1");
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_REVIVE] == 1);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_death_that_is_told_of_during_a_look_is_looked_at)
{
    struct fixture f;
    unsigned calls, looks;

    fixture_open(&f);
    make_ready(&f, "box1");
    fixture_settle(&f);
    looks = f.world->n_looks;
    calls = f.world->n_calls;
    f.world->hold_looks = true;
    world_news(f.world, "box1");
    UNTIL(&f, f.world->n_calls > calls);
    f.world->hold_looks = false;
    world_news(f.world, "box1"); /* of its death, which the look has not seen */
    fixture_settle(&f);
    world_release(f.world, "box1");
    until_looked(&f, looks);
    world_box(f.world, "box1")->seen = AGX_SEEN_EXITED;
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_REVIVE] == 1);
    fixture_close(&f);
}

TEST(news_of_all_during_a_look_at_all_are_looked_at)
{
    struct fixture f;
    unsigned looks;

    fixture_prepare(&f);
    f.world->hold_looks = true;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    f.world->hold_looks = false;
    looks = f.world->n_looks;
    world_news(f.world, NULL);
    fixture_settle(&f);
    world_release(f.world, "");
    until_looked(&f, looks);
    world_box(f.world, "box1")->seen = AGX_SEEN_EXITED;
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_REVIVE] == 1);
    fixture_close(&f);
}

TEST(companions_are_reported_once_for_each_change)
{
    struct fixture f;
    struct agx_spec spec;
    struct reply r = { 0 };
    struct world_box *box;

    fixture_open(&f);
    test_spec(&spec);
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    box = world_box(f.world, "box1");
    box->companions[1] = AGX_SEEN_MISSING;
    for (int i = 0; i < 3; i++) {
        world_news(f.world, "box1");
        fixture_settle(&f);
    }
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    box->companions[1] = AGX_SEEN_RUNNING;
    world_news(f.world, "box1");
    fixture_settle(&f);
    ASSERT_CSTR("ACCEPTED PREPARING COMPANION_CONTAINER_READY COMPANION_CONTAINER_READY READY "
                "COMPANION_CONTAINER_FAILED COMPANION_CONTAINER_READY",
                events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_companion_that_died_is_found_although_something_else_happened_meanwhile)
{
    struct fixture f;
    struct agx_spec spec;
    struct reply r = { 0 };
    unsigned calls;

    fixture_prepare(&f);
    f.config.look_ms = 3600000; /* no look but those that have a reason */
    f.config.look_deadline_ms = 100000;
    fixture_open_manager(&f);
    test_spec(&spec);
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    fixture_settle(&f);
    world_box(f.world, "box1")->companions[1] = AGX_SEEN_MISSING;
    f.world->hold_looks = true;
    calls = f.world->n_calls;
    world_news(f.world, "box1");
    UNTIL(&f, f.world->n_calls > calls);
    ASSERT_INT(AGX_OK, ask_exec(&f, "box1", "exec1").code);
    f.world->hold_looks = false;
    world_release(f.world, "box1");
    UNTIL(&f, strstr(events_of(&f, "box1"), "COMPANION_CONTAINER_FAILED"));
    fixture_close(&f);
}

TEST(a_backend_that_does_not_answer_looks_is_asked_again)
{
    struct fixture f;
    struct agx_manager_stats stats;

    fixture_prepare(&f);
    f.world->hold_looks = true;
    f.config.look_deadline_ms = 5;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    UNTIL(&f, (agx_manager_stats(f.manager, &stats), stats.abandoned >= 2));
    f.world->hold_looks = false;
    f.world->fail_looks = true;
    UNTIL(&f, f.world->n_looks >= 3);
    f.world->fail_looks = false;
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    fixture_close(&f);
}

/* test_manager_restart.c: the daemon ends in the middle of operations, and starts again. */
#include "tests/support/manager.h"

#include "store/store_batch.h"
#include "store/store_lmdb.h"

#include <endian.h>
#include <stdio.h>

static void test_ignore(void *user, struct agx_error *error)
{
    (void)user;
    agx_error_free(error);
}

/* What was on its way to the disk is lost, as by kill -9, and a new daemon starts. */
static void crash(struct fixture *f)
{
    agx_store_mem_hold(f->store, false);
    agx_store_mem_fail(f->store, AGX_UNAVAILABLE, 1000);
    fixture_close_manager(f);
    agx_store_mem_fail(f->store, AGX_UNAVAILABLE, 0);
    fixture_open_manager(f);
}

TEST(a_create_that_was_accepted_is_carried_on)
{
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    crash(&f);
    f.world->hold[AGX_DO_CREATE] = false;
    UNTIL(&f, world_box(f.world, "box1"));
    world_release(f.world, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(stops_resumes_and_deletes_that_were_accepted_are_carried_on)
{
    static const struct {
        enum agx_on on;
        enum agx_do op;
        enum agx_phase end;
        const char *events;
    } rows[] = {
        { AGX_ON_STOP, AGX_DO_STOP, AGX_PHASE_STOPPED,
          "ACCEPTED PREPARING READY STOP_REQUESTED STOPPED" },
        { AGX_ON_DELETE, AGX_DO_DELETE, AGX_PHASE_DELETED,
          "ACCEPTED PREPARING READY DELETE_REQUESTED DELETED" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        struct fixture f;

        fixture_open(&f);
        make_ready(&f, "box1");
        f.world->hold[rows[i].op] = true;
        (void)ask(&f, "box1", rows[i].on);
        fixture_settle(&f);
        f.world->hold[rows[i].op] = false;
        crash(&f);
        UNTIL(&f, phase_of(&f, "box1") == rows[i].end);
        ASSERT_CSTR(rows[i].events, events_of(&f, "box1"));
        fixture_close(&f);
    }
}

TEST(a_backend_that_is_still_at_what_the_former_daemon_asked_for_is_asked_again)
{
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, world_box(f.world, "box1"));
    crash(&f);
    f.world->hold[AGX_DO_CREATE] = false;
    world_box(f.world, "box1")->busy = true;
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_CREATING, phase_of(&f, "box1"));
    world_box(f.world, "box1")->busy = false;
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_delete_waits_for_what_the_former_daemon_asked_for)
{
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, world_box(f.world, "box1"));
    crash(&f);
    f.world->hold[AGX_DO_CREATE] = false;
    world_box(f.world, "box1")->busy = true;
    fixture_settle(&f);
    (void)ask(&f, "box1", AGX_ON_DELETE);
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_DELETING, phase_of(&f, "box1"));
    world_box(f.world, "box1")->busy = false;
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_CSTR("ACCEPTED DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(what_was_not_stored_did_not_happen)
{
    struct fixture f;
    struct reply stop = { 0 };

    fixture_open(&f);
    make_ready(&f, "box1");
    agx_store_mem_hold(f.store, true);
    agx_manager_ask(f.manager, "box1", AGX_ON_STOP, reply_note, &stop);
    fixture_settle(&f);
    ASSERT_UINT(0, stop.n);
    crash(&f);
    ASSERT_INT(AGX_UNAVAILABLE, stop.code);
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    ASSERT_UINT(0, world_box(f.world, "box1")->n[AGX_DO_STOP]);
    fixture_close(&f);
}

TEST(a_report_that_was_not_stored_comes_again)
{
    struct fixture f;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    (void)ask_create(&f, "box1");
    UNTIL(&f, world_box(f.world, "box1"));
    agx_store_mem_hold(f.store, true);
    world_release(f.world, "box1");
    fixture_settle(&f);
    f.world->hold[AGX_DO_CREATE] = false;
    crash(&f);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(what_the_backend_has_decides_what_follows)
{
    static const struct {
        bool stopped;
        enum agx_seen seen;
        enum agx_phase end;
        enum agx_do op;
    } rows[] = {
        { false, AGX_SEEN_RUNNING, AGX_PHASE_READY, AGX_DO_NONE },
        { false, AGX_SEEN_EXITED, AGX_PHASE_READY, AGX_DO_REVIVE },
        { false, AGX_SEEN_MISSING, AGX_PHASE_FAILED, AGX_DO_NONE },
        { true, AGX_SEEN_EXITED, AGX_PHASE_STOPPED, AGX_DO_NONE },
        { true, AGX_SEEN_RUNNING, AGX_PHASE_STOPPED, AGX_DO_HALT },
        { true, AGX_SEEN_MISSING, AGX_PHASE_FAILED, AGX_DO_NONE },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        struct fixture f;

        fixture_open(&f);
        make_ready(&f, "box1");
        if (rows[i].stopped) {
            (void)ask(&f, "box1", AGX_ON_STOP);
            UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
        }
        fixture_close_manager(&f);
        world_box(f.world, "box1")->seen = rows[i].seen;
        fixture_open_manager(&f);
        if (rows[i].op != AGX_DO_NONE)
            UNTIL(&f, world_box(f.world, "box1")->n[rows[i].op] == 1);
        UNTIL(&f, phase_of(&f, "box1") == rows[i].end);
        fixture_settle(&f);
        ASSERT_INT(rows[i].end, phase_of(&f, "box1"));
        (void)events_of(&f, "box1");
        fixture_close(&f);
    }
}

TEST(a_companion_that_ended_without_a_daemon_is_started_again_and_nobody_is_told)
{
    struct fixture f;
    struct agx_spec spec;
    struct reply r = { 0 };

    fixture_open(&f);
    test_spec(&spec);
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    world_box(f.world, "box1")->companions[1] = AGX_SEEN_EXITED;
    f.config.look_ms = 3600000; /* no look but those that have a reason */
    f.config.watch.window_ms = 3600000;
    crash(&f);
    UNTIL(&f, world_box(f.world, "box1")->n[AGX_DO_REVIVE] > 0);
    fixture_settle(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_CSTR("ACCEPTED PREPARING COMPANION_CONTAINER_READY COMPANION_CONTAINER_READY READY",
                events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(objects_without_a_record_are_removed)
{
    struct fixture f;
    struct world_box *orphan;

    fixture_prepare(&f);
    orphan = &f.world->boxes[f.world->n_boxes++];
    *orphan = (struct world_box){ .id = "orphan", .seen = AGX_SEEN_RUNNING };
    fixture_open_manager(&f);
    UNTIL(&f, orphan->n[AGX_DO_DELETE] == 1);
    ASSERT_INT(AGX_SEEN_MISSING, orphan->seen);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "orphan"));
    fixture_close(&f);
}

TEST(a_backend_that_does_not_answer_keeps_nobody_from_being_served)
{
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    fixture_close_manager(&f);
    f.world->hold_looks = true;
    f.config.look_deadline_ms = 5;
    fixture_open_manager(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    make_ready(&f, "box2");
    world_box(f.world, "box1")->seen = AGX_SEEN_MISSING;
    f.world->hold_looks = false;
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_FAILED);
    fixture_close(&f);
}

TEST(execs_are_adopted_and_their_exit_codes_are_not_lost)
{
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    (void)ask_exec(&f, "box1", "running");
    (void)ask_exec(&f, "box1", "ended");
    (void)ask_exec(&f, "box1", "lost");
    UNTIL(&f, world_exec(f.world, "running") && world_exec(f.world, "ended") &&
                  world_exec(f.world, "lost"));
    fixture_settle(&f);
    fixture_close_manager(&f);
    world_exit(f.world, "ended", 0);
    world_exec(f.world, "lost")->id[0] = '?';
    fixture_open_manager(&f);
    ASSERT_INT(AGX_EXEC_RUNNING, exec_state_of(&f, "running"));
    UNTIL(&f, exec_state_of(&f, "ended") == AGX_EXEC_FINISHED);
    UNTIL(&f, exec_state_of(&f, "lost") == AGX_EXEC_FAILED);
    ASSERT_UINT(1, world_exec(f.world, "running")->starts);
    UNTIL(&f, world_exec(f.world, "running")->op != NULL);
    world_exit(f.world, "running", 7);
    UNTIL(&f, exec_state_of(&f, "running") == AGX_EXEC_FAILED);
    ASSERT_UINT(8, sequence_of(&f, "box1") - 1);
    (void)events_of(&f, "box1");
    fixture_close(&f);
}

TEST(a_start_or_cancel_of_an_exec_is_carried_on)
{
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    f.world->hold_starts = true;
    (void)ask_exec(&f, "box1", "exec1");
    f.world->hold_starts = false;
    fixture_restart(&f);
    UNTIL(&f, world_exec(f.world, "exec1"));
    ASSERT_UINT(1, world_exec(f.world, "exec1")->starts);
    f.world->fail_kills = 1000000;
    (void)ask_cancel(&f, "exec1");
    fixture_restart(&f);
    f.world->fail_kills = 0;
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_CANCELLED);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_CANCELLED", events_of(&f, "box1"));
    fixture_close(&f);
}

static void spoil(struct fixture *f, struct agx_store_batch *b, enum agx_schema_table table,
                  const char *id)
{
    uint64_t number = htobe64(number_of(f, id));

    agx_store_batch_put(b, table, agx_str_bytes(&number, sizeof(number)),
                        AGX_STR("\xff\xff nonsense"));
}

TEST(an_unreadable_record_is_left_out_and_its_id_stays_taken)
{
    struct fixture f;
    struct agx_store_batch *b;
    struct agx_manager_stats stats;
    struct agx_error *err = NULL;
    struct world_box *box;

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    make_ready(&f, "box3");
    (void)ask_exec(&f, "box2", "exec1");
    fixture_close_manager(&f);
    b = agx_store_batch_new();
    spoil(&f, b, AGX_TABLE_SPECS, "box1");
    spoil(&f, b, AGX_TABLE_LIVES, "box2");
    ASSERT_OK(agx_store_commit(f.store, &b, test_ignore, NULL, &err));
    fixture_settle(&f);
    fixture_open_manager(&f);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(3, stats.unreadable);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box2"));
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box3"));
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "box1").code);
    fixture_settle(&f);
    box = world_box(f.world, "box1");
    ASSERT_INT(AGX_SEEN_RUNNING, box->seen); /* and what it has at the backend is left alone */
    fixture_close(&f);
}

TEST(purged_sandboxes_are_forgotten_but_their_ids_are_not)
{
    struct fixture f;
    struct agx_event_record record = { 0 };
    uint64_t number;

    fixture_prepare(&f);
    f.config.cleanup_ttl_ns = 1000000;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    number = number_of(&f, "box1");
    (void)ask_exec(&f, "box1", "exec1");
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_ABSENT);
    fixture_restart(&f);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    ASSERT_INT(AGX_EXEC_NONE, exec_state_of(&f, "exec1"));
    ASSERT_INT(0, agx_schema_get_event(f.store, number, 1, &record, NULL));
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "box1").code);
    make_ready(&f, "box2");
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_exec(&f, "box2", "exec1").code);
    fixture_close(&f);
}

/* Another store for the fixture: on disk. */
static void open_on_disk(struct fixture *f)
{
    struct agx_store_lmdb_config c = AGX_STORE_LMDB_CONFIG_INIT;
    char dir[100];

    snprintf(dir, sizeof(dir), "%s/store", f->dir);
    c.dir = dir;
    ASSERT_OK(agx_store_lmdb_open(f->loop, &c, &agx_schema_layout, &f->store, NULL));
}

static void count_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ++*(unsigned *)user;
}

static void close_store(struct fixture *f)
{
    unsigned n = 0;

    agx_store_close(f->store, count_closed, &n);
    UNTIL(f, n == 1);
}

TEST(everything_comes_back_from_disk)
{
    struct fixture f;
    char id[16];

    fixture_prepare(&f);
    close_store(&f);
    open_on_disk(&f);
    fixture_open_manager(&f);
    for (int i = 0; i < 30; i++) {
        snprintf(id, sizeof(id), "box%d", i);
        make_ready(&f, id);
    }
    (void)ask_exec(&f, "box0", "exec1");
    UNTIL(&f, world_exec(f.world, "exec1"));
    (void)ask(&f, "box1", AGX_ON_DELETE);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    fixture_settle(&f);
    fixture_close_manager(&f);
    close_store(&f);
    open_on_disk(&f);
    fixture_open_manager(&f);
    ASSERT_UINT(93, agx_manager_position(f.manager));
    ASSERT_INT(AGX_PHASE_DELETED, phase_of(&f, "box1"));
    ASSERT_CSTR("ACCEPTED PREPARING READY DELETE_REQUESTED DELETED", events_of(&f, "box1"));
    UNTIL(&f, world_exec(f.world, "exec1")->op != NULL);
    world_exit(f.world, "exec1", 0);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FINISHED);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_FINISHED", events_of(&f, "box0"));
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_create(&f, "box7").code);
    fixture_close(&f);
}

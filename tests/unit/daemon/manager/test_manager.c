/* test_manager.c: requests, their answers and their records in the store. */
#include "tests/support/manager.h"

#include <semaphore.h>
#include <stdio.h>

TEST(create_is_answered_after_its_commit_and_becomes_ready)
{
    struct fixture f;
    struct reply r;

    fixture_open(&f);
    agx_store_mem_hold(f.store, true);
    send_create(&f, "box1", &r);
    fixture_settle(&f);
    ASSERT_UINT(0, r.n);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    ASSERT_NULL(world_box(f.world, "box1"));
    agx_store_mem_hold(f.store, false);
    agx_manager_ask(f.manager, "nobody", AGX_ON_STOP, reply_note, &(struct reply){ 0 });
    UNTIL(&f, r.n == 1);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_CSTR("box1", r.id);
    ASSERT_INT(AGX_PHASE_CREATING, r.phase);
    ASSERT_UINT(1, r.sequence);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    fixture_close(&f);
}

TEST(a_sandbox_without_a_name_gets_a_uuid)
{
    struct fixture f;
    struct reply r;

    fixture_open(&f);
    r = ask_create(&f, NULL);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_UINT(36, strlen(r.id));
    fixture_close(&f);
}

TEST(the_whole_life_of_a_sandbox)
{
    struct fixture f;

    fixture_open(&f);
    make_ready(&f, "box1");
    ASSERT_INT(AGX_PHASE_STOPPING, ask(&f, "box1", AGX_ON_STOP).phase);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    ASSERT_INT(AGX_PHASE_RESUMING, ask(&f, "box1", AGX_ON_RESUME).phase);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_INT(AGX_PHASE_DELETING, ask(&f, "box1", AGX_ON_DELETE).phase);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_CSTR("ACCEPTED PREPARING READY STOP_REQUESTED STOPPED ACCEPTED READY DELETE_REQUESTED "
                "DELETED",
                events_of(&f, "box1"));
    ASSERT_INT(AGX_OK, ask(&f, "box1", AGX_ON_DELETE).code);
    fixture_close(&f);
}

TEST(refusals_have_their_reasons)
{
    struct fixture f;
    struct reply r;
    char long_id[5000];

    fixture_open(&f);
    r = ask(&f, "nobody", AGX_ON_STOP);
    ASSERT_INT(AGX_NOT_FOUND, r.code);
    ASSERT_INT(AGX_REASON_SANDBOX_NOT_FOUND, r.reason);
    ASSERT_CSTR("nobody", r.reason_id);
    ASSERT_CSTR("sandbox nobody was not found", r.text);
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    r = ask(&f, long_id, AGX_ON_DELETE);
    ASSERT_INT(AGX_NOT_FOUND, r.code);
    ASSERT_TRUE(strlen(r.text) < 300 && strlen(r.reason_id) == AGX_IDENT_MAX);
    make_ready(&f, "box1");
    r = ask(&f, "box1", AGX_ON_RESUME);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    ASSERT_INT(AGX_REASON_SANDBOX_NOT_STOPPED, r.reason);
    r = ask_create(&f, "box1");
    ASSERT_INT(AGX_ALREADY_EXISTS, r.code);
    ASSERT_INT(AGX_REASON_SANDBOX_ID_ALREADY_EXISTS, r.reason);
    ASSERT_CSTR("box1", r.reason_id);
    ASSERT_INT(AGX_INVALID_ARGUMENT, ask_create(&f, "no").code);
    ASSERT_INT(AGX_INVALID_ARGUMENT, ask_create(&f, "-bad-").code);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_bad_spec_and_one_that_the_backend_cannot_give_are_refused)
{
    struct fixture f;
    struct agx_spec spec;
    struct reply r = { 0 };

    fixture_open(&f);
    agx_spec_init(&spec);
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, r.n == 1);
    ASSERT_INT(AGX_INVALID_ARGUMENT, r.code);
    ASSERT_CSTR("create_spec.image is required", r.text);
    ASSERT_OK(agx_text_set(&spec.image, "debian", NULL));
    ASSERT_OK(agx_text_set(&spec.gpus, "all", NULL));
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, r.n == 2);
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    fixture_close(&f);
}

static void has_warnings(struct fixture *f, const char *id, const char *a, const char *b)
{
    const struct agx_sandbox *sb;

    ASSERT_OK(agx_manager_find(f->manager, id, &sb, NULL));
    ASSERT_UINT(2, sb->warnings.len);
    ASSERT_CSTR(a, sb->warnings.items[0]);
    ASSERT_CSTR(b, sb->warnings.items[1]);
}

TEST(what_the_backend_warns_of_is_kept_with_the_sandbox)
{
    const struct agx_sandbox *sb;
    struct fixture f;
    struct agx_spec spec;
    struct reply r = { 0 };

    fixture_open(&f);
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian", NULL));
    ASSERT_OK(agx_words_add(&spec.builtin_tools, AGX_STR("uv"), NULL));
    ASSERT_OK(agx_words_add(&spec.builtin_tools, AGX_STR("npm"), NULL));
    agx_manager_create(f.manager, 1000, "box1", &spec, reply_note, &r);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    has_warnings(&f, "box1", "uv", "npm");
    fixture_restart(&f);
    has_warnings(&f, "box1", "uv", "npm");
    (void)ask(&f, "box1", AGX_ON_STOP);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    has_warnings(&f, "box1", "uv", "npm");
    make_ready(&f, "box2");
    ASSERT_OK(agx_manager_find(f.manager, "box2", &sb, NULL));
    ASSERT_UINT(0, sb->warnings.len);
    fixture_close(&f);
}

TEST(two_creates_of_one_id_at_the_same_time_make_one)
{
    struct fixture f;
    struct reply first, second, third;

    fixture_open(&f);
    send_create(&f, "box1", &first);
    send_create(&f, "box1", &second);
    fixture_turn(&f);
    send_create(&f, "box1", &third);
    UNTIL(&f, first.n == 1 && second.n == 1 && third.n == 1);
    ASSERT_INT(AGX_OK, first.code);
    ASSERT_INT(AGX_ALREADY_EXISTS, second.code);
    ASSERT_INT(AGX_ALREADY_EXISTS, third.code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_CREATE]);
    fixture_close(&f);
}

TEST(a_create_behind_one_that_cannot_be_stored_takes_its_place)
{
    struct fixture f;
    struct reply first, second, stop = { 0 };

    fixture_open(&f);
    agx_store_mem_fail(f.store, AGX_RESOURCE_EXHAUSTED, 1);
    send_create(&f, "box1", &first);
    fixture_turn(&f);
    send_create(&f, "box1", &second);
    agx_manager_ask(f.manager, "box1", AGX_ON_STOP, reply_note, &stop);
    UNTIL(&f, first.n == 1 && second.n == 1 && stop.n == 1);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, first.code);
    ASSERT_INT(AGX_OK, second.code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(what_cannot_be_stored_is_refused_and_leaves_no_trace)
{
    struct fixture f;
    struct reply r;
    struct agx_manager_stats stats;

    fixture_open(&f);
    agx_store_mem_fail(f.store, AGX_RESOURCE_EXHAUSTED, 1);
    r = ask_create(&f, "box1");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, r.code);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    ASSERT_NULL(world_box(f.world, "box1"));
    make_ready(&f, "box1");
    agx_store_mem_fail(f.store, AGX_UNAVAILABLE, 1);
    r = ask(&f, "box1", AGX_ON_STOP);
    ASSERT_INT(AGX_UNAVAILABLE, r.code);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_UINT(3, sequence_of(&f, "box1"));
    ASSERT_INT(AGX_OK, ask(&f, "box1", AGX_ON_STOP).code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    ASSERT_CSTR("ACCEPTED PREPARING READY STOP_REQUESTED STOPPED", events_of(&f, "box1"));
    ASSERT_UINT(1, world_box(f.world, "box1")->n[AGX_DO_STOP]);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(1, stats.by_state[AGX_STATE_STOPPED]);
    fixture_close(&f);
}

TEST(what_the_backend_reported_is_stored_when_the_disk_is_back)
{
    struct fixture f;
    struct reply r;

    fixture_open(&f);
    f.world->hold[AGX_DO_CREATE] = true;
    r = ask_create(&f, "box1");
    ASSERT_INT(AGX_OK, r.code);
    agx_store_mem_fail(f.store, AGX_RESOURCE_EXHAUSTED, 5);
    world_release(f.world, "box1");
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_READY);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(readers_see_the_state_before_while_a_commit_is_under_way)
{
    struct fixture f;
    struct reply r = { 0 };
    struct agx_manager_stats stats;

    fixture_open(&f);
    make_ready(&f, "box1");
    agx_store_mem_hold(f.store, true);
    agx_manager_ask(f.manager, "box1", AGX_ON_DELETE, reply_note, &r);
    fixture_settle(&f);
    ASSERT_UINT(0, r.n);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_UINT(3, sequence_of(&f, "box1"));
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(1, stats.by_state[AGX_STATE_READY]);
    ASSERT_UINT(0, world_box(f.world, "box1")->n[AGX_DO_DELETE]);
    agx_store_mem_hold(f.store, false);
    (void)ask_create(&f, "box2"); /* another commit lets the first go */
    UNTIL(&f, r.n == 1 && phase_of(&f, "box1") == AGX_PHASE_DELETED);
    fixture_close(&f);
}

static int collect(void *user, const struct agx_sandbox *sb)
{
    char *text = user;

    snprintf(text + strlen(text), 8, "%s ", sb->id);
    return 0;
}

TEST(lists_are_newest_first_and_go_on_behind_any_place)
{
    struct fixture f;
    char all[100] = "", page[100] = "", rest[100] = "";
    const struct agx_sandbox *sb;
    int64_t created;

    fixture_open(&f);
    for (int i = 0; i < 5; i++) {
        char id[8];

        snprintf(id, sizeof(id), "box%d", i);
        make_ready(&f, id);
    }
    agx_manager_list(f.manager, 0, NULL, 0, collect, all);
    ASSERT_CSTR("box4 box3 box2 box1 box0 ", all);
    agx_manager_list(f.manager, 0, NULL, 2, collect, page);
    ASSERT_CSTR("box4 box3 ", page);
    ASSERT_OK(agx_manager_find(f.manager, "box3", &sb, NULL));
    created = sb->created.wall_ns;
    agx_manager_list(f.manager, created, "box3", 2, collect, rest);
    ASSERT_CSTR("box2 box1 ", rest);
    rest[0] = '\0';
    agx_manager_list(f.manager, created + 1, "gone", 0, collect, rest);
    ASSERT_CSTR("box3 box2 box1 box0 ", rest);
    rest[0] = '\0';
    agx_manager_list(f.manager, 1, "gone", 0, collect, rest);
    ASSERT_CSTR("", rest);
    fixture_close(&f);
}

TEST(the_limit_of_a_user_is_told_with_its_key)
{
    struct fixture f;
    struct reply r;

    fixture_prepare(&f);
    f.config.sandboxes_per_uid = 2;
    f.config.execs_per_uid = 1;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    r = ask_create(&f, "box3");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, r.code);
    ASSERT_TRUE(strstr(r.text, "limits.sandboxes_per_uid") != NULL);
    ASSERT_INT(AGX_OK, ask_exec(&f, "box1", "exec1").code);
    r = ask_exec(&f, "box2", "exec2");
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, r.code);
    ASSERT_TRUE(strstr(r.text, "limits.execs_per_uid") != NULL);
    fixture_restart(&f);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, ask_create(&f, "box3").code);
    ASSERT_INT(AGX_OK, ask(&f, "box1", AGX_ON_DELETE).code);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
    ASSERT_INT(AGX_OK, ask_create(&f, "box3").code);
    ASSERT_INT(AGX_OK, ask_exec(&f, "box2", "exec2").code);
    fixture_close(&f);
}

/* Brings a sandbox to that phase and keeps it there. */
static void bring_to(struct fixture *f, const char *id, enum agx_phase phase)
{
    struct world *w = f->world;

    w->hold[AGX_DO_CREATE] = phase == AGX_PHASE_CREATING;
    w->fail[AGX_DO_CREATE] = phase == AGX_PHASE_FAILED;
    w->hold[AGX_DO_STOP] = phase == AGX_PHASE_STOPPING;
    w->hold[AGX_DO_RESUME] = phase == AGX_PHASE_RESUMING;
    w->hold[AGX_DO_DELETE] = phase == AGX_PHASE_DELETING;
    (void)ask_create(f, id);
    if (phase == AGX_PHASE_CREATING || phase == AGX_PHASE_FAILED) {
        UNTIL(f, phase_of(f, id) == phase);
        return;
    }
    UNTIL(f, phase_of(f, id) == AGX_PHASE_READY);
    if (phase == AGX_PHASE_STOPPING || phase == AGX_PHASE_STOPPED || phase == AGX_PHASE_RESUMING)
        (void)ask(f, id, AGX_ON_STOP);
    if (phase == AGX_PHASE_RESUMING) {
        UNTIL(f, phase_of(f, id) == AGX_PHASE_STOPPED);
        (void)ask(f, id, AGX_ON_RESUME);
    }
    if (phase == AGX_PHASE_DELETING || phase == AGX_PHASE_DELETED)
        (void)ask(f, id, AGX_ON_DELETE);
    UNTIL(f, phase_of(f, id) == phase);
}

TEST(every_request_in_every_phase)
{
    enum {
        OK = AGX_REASON_NONE,
        NS = AGX_REASON_SANDBOX_NOT_STARTED,
        NP = AGX_REASON_SANDBOX_NOT_STOPPED,
        NR = AGX_REASON_SANDBOX_NOT_READY
    };
    static const struct {
        enum agx_phase phase;
        int stop, resume, exec;
    } rows[] = {
        { AGX_PHASE_CREATING, NS, NP, NR }, { AGX_PHASE_RESUMING, NS, NP, NR },
        { AGX_PHASE_READY, OK, NP, OK },    { AGX_PHASE_STOPPING, OK, NP, NR },
        { AGX_PHASE_STOPPED, NS, OK, NR },  { AGX_PHASE_FAILED, NS, NP, NR },
        { AGX_PHASE_DELETING, NS, NP, NR }, { AGX_PHASE_DELETED, NS, NP, NR },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        for (int what = 0; what < 5; what++) {
            struct fixture f;
            struct reply r;

            fixture_open(&f);
            bring_to(&f, "box1", rows[i].phase);
            if (what == 0)
                ASSERT_INT(rows[i].stop, ask(&f, "box1", AGX_ON_STOP).reason);
            if (what == 1)
                ASSERT_INT(rows[i].resume, ask(&f, "box1", AGX_ON_RESUME).reason);
            if (what == 2)
                ASSERT_INT(rows[i].exec, ask_exec(&f, "box1", "exec1").reason);
            if (what == 3)
                ASSERT_INT(AGX_REASON_SANDBOX_ID_ALREADY_EXISTS, ask_create(&f, "box1").reason);
            if (what == 4) {
                r = ask(&f, "box1", AGX_ON_DELETE);
                ASSERT_INT(AGX_OK, r.code);
                memset(f.world->hold, 0, sizeof(f.world->hold));
                world_release(f.world, "box1");
                UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_DELETED);
            }
            (void)events_of(&f, "box1");
            fixture_close(&f);
        }
    }
}

TEST(a_stopping_manager_answers_everybody)
{
    struct fixture f;
    struct reply create, stop = { 0 };

    fixture_open(&f);
    make_ready(&f, "box1");
    send_create(&f, "box2", &create);
    agx_manager_ask(f.manager, "box1", AGX_ON_STOP, reply_note, &stop);
    fixture_close_manager(&f);
    ASSERT_UINT(1, create.n);
    ASSERT_INT(AGX_UNAVAILABLE, create.code);
    ASSERT_UINT(1, stop.n);
    fixture_open_manager(&f);
    ASSERT_INT(AGX_PHASE_READY, phase_of(&f, "box1"));
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box2"));
    fixture_close(&f);
}

/* A file system that hangs until who asked has an answer. */
struct hung {
    sem_t gate;
    struct reply reply;
};

static int look_and_hang(void *user, const char *path, enum agx_path_kind *ret,
                         struct agx_error **err)
{
    struct hung *h = user;

    (void)path;
    (void)err;
    while (sem_wait(&h->gate) < 0)
        ;
    *ret = AGX_PATH_DIRECTORY;
    return 0;
}

static void note_and_release(void *user, const struct agx_answer *a)
{
    struct hung *h = user;

    reply_note(&h->reply, a);
    sem_post(&h->gate);
}

TEST(a_create_whose_path_is_looked_at_for_ever_is_answered_when_the_manager_stops)
{
    static struct hung h; /* a thread that never comes back has it for ever */
    struct agx_mount *m = NULL;
    struct agx_spec spec;
    struct fixture f;

    sem_init(&h.gate, 0, 0);
    fixture_prepare(&f);
    f.config.host.look = look_and_hang;
    f.config.host.user = &h;
    fixture_open_manager(&f);
    agx_spec_init(&spec);
    ASSERT_OK(agx_text_set(&spec.image, "debian:12", NULL));
    ASSERT_OK(agx_spec_add_mount(&spec, &m, NULL));
    ASSERT_OK(agx_text_set(&m->source, "/hangs", NULL));
    ASSERT_OK(agx_text_set(&m->target, "/data", NULL));
    agx_manager_create(f.manager, 1000, "box1", &spec, note_and_release, &h);
    fixture_settle(&f);
    ASSERT_UINT(0, h.reply.n);
    fixture_close_manager(&f);
    ASSERT_UINT(1, h.reply.n);
    ASSERT_INT(AGX_UNAVAILABLE, h.reply.code);
    fixture_open_manager(&f);
    ASSERT_INT(AGX_PHASE_ABSENT, phase_of(&f, "box1"));
    fixture_close(&f);
}

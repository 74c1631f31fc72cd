/* test_manager_exec.c: commands: their states, their ids, their logs. */
#include "tests/support/manager.h"

#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* The exec as readers see it; its texts are gone. */
static struct agx_exec exec_of(struct fixture *f, const char *id, char *ret_code)
{
    struct agx_exec exec, plain;
    uint64_t sequence;

    ASSERT_OK(agx_manager_exec_find(f->manager, id, &exec, &sequence, NULL));
    ASSERT_UINT(sequence_of(f, exec.sandbox_id), sequence);
    snprintf(ret_code, 64, "%s", agx_text(exec.error_code));
    plain = exec;
    agx_exec_done(&exec);
    return plain;
}

TEST(a_command_runs_and_its_exit_code_is_kept)
{
    struct fixture f;
    struct reply r;
    struct agx_exec exec;
    struct agx_manager_stats stats;
    char code[64];

    fixture_open(&f);
    make_ready(&f, "box1");
    r = ask_exec(&f, "box1", NULL);
    ASSERT_INT(AGX_OK, r.code);
    ASSERT_UINT(36, strlen(r.exec_id));
    ASSERT_TRUE(strstr(r.out_path, ".stdout.log") && strstr(r.err_path, ".stderr.log"));
    ASSERT_INT(AGX_EXEC_RUNNING, exec_state_of(&f, r.exec_id));
    UNTIL(&f, world_exec(f.world, r.exec_id));
    world_exit(f.world, r.exec_id, 3);
    UNTIL(&f, exec_state_of(&f, r.exec_id) == AGX_EXEC_FAILED);
    exec = exec_of(&f, r.exec_id, code);
    ASSERT_INT(3, exec.exit_code);
    ASSERT_CSTR("EXEC_RUN_FAILED", code);
    UNTIL(&f, world_exec(f.world, r.exec_id)->forgotten);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(0, stats.active_execs);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_FAILED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(refusals_of_execs_come_in_the_order_that_clients_know)
{
    struct fixture f;
    struct reply r;

    fixture_open(&f);
    r = ask_exec(&f, "nobody", "exec1");
    ASSERT_INT(AGX_REASON_SANDBOX_NOT_FOUND, r.reason);
    make_ready(&f, "box1");
    ASSERT_INT(AGX_INVALID_ARGUMENT, ask_exec(&f, "box1", "no").code);
    ASSERT_INT(AGX_OK, ask_exec(&f, "box1", "exec1").code);
    r = ask_exec(&f, "box1", "exec1");
    ASSERT_INT(AGX_ALREADY_EXISTS, r.code);
    ASSERT_INT(AGX_REASON_EXEC_ID_ALREADY_EXISTS, r.reason);
    ASSERT_CSTR("exec1", r.reason_id);
    UNTIL(&f, world_exec(f.world, "exec1"));
    world_exit(f.world, "exec1", 0);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FINISHED);
    make_ready(&f, "box2");
    ASSERT_INT(AGX_ALREADY_EXISTS, ask_exec(&f, "box2", "exec1").code);
    r = ask_cancel(&f, "exec1");
    ASSERT_INT(AGX_REASON_EXEC_ALREADY_TERMINAL, r.reason);
    ASSERT_CSTR("exec1", r.reason_id);
    r = ask_cancel(&f, "exec9");
    ASSERT_INT(AGX_REASON_EXEC_NOT_FOUND, r.reason);
    (void)ask(&f, "box1", AGX_ON_STOP);
    r = ask_exec(&f, "box1", "exec1");
    ASSERT_INT(AGX_REASON_SANDBOX_NOT_READY, r.reason);
    ASSERT_CSTR("box1", r.reason_id);
    fixture_close(&f);
}

TEST(one_id_at_the_same_time_in_two_sandboxes_makes_one_exec)
{
    struct fixture f;
    struct reply a, b, c;

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    send_exec(&f, "box1", "exec1", 0, &a);
    send_exec(&f, "box2", "exec1", 0, &b);
    send_exec(&f, "box1", "exec1", 0, &c);
    UNTIL(&f, a.n == 1 && b.n == 1 && c.n == 1);
    ASSERT_INT(AGX_OK, a.code);
    ASSERT_INT(AGX_ALREADY_EXISTS, b.code);
    ASSERT_INT(AGX_ALREADY_EXISTS, c.code);
    UNTIL(&f, world_exec(f.world, "exec1"));
    ASSERT_CSTR("box1", world_exec(f.world, "exec1")->sandbox_id);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box2"));
    fixture_close(&f);
}

TEST(an_exec_behind_one_that_cannot_be_stored_takes_its_place)
{
    struct fixture f;
    struct reply a, b;
    char path[300];

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    agx_store_mem_fail(f.store, AGX_UNAVAILABLE, 1);
    send_exec(&f, "box1", "exec1", 0, &a);
    send_exec(&f, "box2", "exec1", 0, &b);
    UNTIL(&f, a.n == 1 && b.n == 1);
    ASSERT_INT(AGX_UNAVAILABLE, a.code);
    ASSERT_INT(AGX_OK, b.code);
    UNTIL(&f, world_exec(f.world, "exec1"));
    ASSERT_CSTR("box2", world_exec(f.world, "exec1")->sandbox_id);
    snprintf(path, sizeof(path), "%s/box1/exec1.stdout.log", f.dir);
    ASSERT_TRUE(access(path, F_OK) < 0);
    ASSERT_CSTR("ACCEPTED PREPARING READY", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(many_execs_of_one_turn_share_a_commit)
{
    struct fixture f;
    struct reply r[50];
    struct agx_store_stats before, after;
    char id[16];

    fixture_open(&f);
    make_ready(&f, "box1");
    agx_store_stats(f.store, &before);
    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof(id), "exec%d", i);
        send_exec(&f, "box1", id, 0, &r[i]);
    }
    UNTIL(&f, r[49].n == 1);
    agx_store_stats(f.store, &after);
    ASSERT_UINT(1, after.batches - before.batches);
    ASSERT_UINT(53, sequence_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_cancel_ends_a_command_when_it_is_gone)
{
    struct fixture f;
    struct agx_exec exec;
    char code[64];

    fixture_open(&f);
    make_ready(&f, "box1");
    (void)ask_exec(&f, "box1", "exec1");
    UNTIL(&f, world_exec(f.world, "exec1"));
    f.world->fail_kills = 3;
    ASSERT_INT(AGX_OK, ask_cancel(&f, "exec1").code);
    ASSERT_INT(AGX_OK, ask_cancel(&f, "exec1").code);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_CANCELLED);
    exec = exec_of(&f, "exec1", code);
    ASSERT_INT(0, exec.exit_code);
    ASSERT_UINT(1, world_exec(f.world, "exec1")->kills);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED EXEC_CANCELLED", events_of(&f, "box1"));
    fixture_close(&f);
}

TEST(a_cancel_in_the_same_turn_as_the_create_is_made)
{
    struct fixture f;
    struct reply create, cancel = { 0 };

    fixture_open(&f);
    make_ready(&f, "box1");
    agx_store_mem_hold(f.store, true);
    send_exec(&f, "box1", "exec1", 0, &create);
    fixture_settle(&f);
    ASSERT_INT(AGX_EXEC_NONE, exec_state_of(&f, "exec1"));
    agx_manager_exec_cancel(f.manager, "exec1", reply_note, &cancel);
    agx_store_mem_hold(f.store, false);
    (void)ask_create(&f, "box2");
    UNTIL(&f, create.n == 1 && cancel.n == 1);
    ASSERT_INT(AGX_OK, cancel.code);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_CANCELLED);
    fixture_close(&f);
}

TEST(a_deadline_kills_the_command)
{
    struct fixture f;
    struct reply r;
    struct agx_exec exec;
    char code[64], id[16];
    int64_t ns = 20 * 1000000;

    fixture_open(&f);
    make_ready(&f, "box1");
    /* Long enough that it runs before, however slow the machine is. */
    for (int i = 0; i == 0 || !world_exec(f.world, id); i++, ns *= 2) {
        snprintf(id, sizeof(id), "exec%d", i);
        send_exec(&f, "box1", id, ns, &r);
        UNTIL(&f, exec_state_of(&f, id) == AGX_EXEC_FAILED);
    }
    exec = exec_of(&f, id, code);
    ASSERT_INT(137, exec.exit_code);
    ASSERT_CSTR("EXEC_DEADLINE_EXCEEDED", code);
    ASSERT_UINT(1, world_exec(f.world, id)->kills);
    fixture_close(&f);
}

TEST(a_command_that_cannot_be_started_fails_with_the_backends_words)
{
    struct fixture f;
    struct agx_exec exec;
    char code[64];

    fixture_open(&f);
    make_ready(&f, "box1");
    f.world->refuse_starts = true;
    (void)ask_exec(&f, "box1", "exec1");
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FAILED);
    exec = exec_of(&f, "exec1", code);
    ASSERT_INT(0, exec.exit_code);
    fixture_close(&f);
}

TEST(a_start_that_hangs_is_given_up)
{
    struct fixture f;
    struct agx_manager_stats stats;

    fixture_prepare(&f);
    f.config.exec_start_ms = 10;
    fixture_open_manager(&f);
    make_ready(&f, "box1");
    f.world->hold_starts = true;
    (void)ask_exec(&f, "box1", "exec1");
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FAILED);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(1, stats.abandoned);
    fixture_close(&f);
}

TEST(a_stop_ends_the_commands_before_the_sandbox)
{
    struct fixture f;
    struct agx_exec exec;
    char code[64];

    fixture_open(&f);
    make_ready(&f, "box1");
    (void)ask_exec(&f, "box1", "exec1");
    UNTIL(&f, world_exec(f.world, "exec1"));
    f.world->execs[0].ended = true; /* its end is never told */
    (void)ask(&f, "box1", AGX_ON_STOP);
    UNTIL(&f, phase_of(&f, "box1") == AGX_PHASE_STOPPED);
    exec = exec_of(&f, "exec1", code);
    ASSERT_INT(137, exec.exit_code);
    ASSERT_CSTR("ACCEPTED PREPARING READY EXEC_STARTED STOP_REQUESTED EXEC_FAILED STOPPED",
                events_of(&f, "box1"));
    fixture_close(&f);
}

static int first_exec(void *user, const struct agx_exec *exec, uint64_t sequence)
{
    (void)sequence;
    snprintf(user, 8, "%s", exec->id);
    return 1;
}

static int count_execs(void *user, const struct agx_exec *exec, uint64_t sequence)
{
    char *text = user;

    ASSERT_TRUE(sequence > 0);
    snprintf(text + strlen(text), 8, "%s ", exec->id);
    return 0;
}

TEST(active_execs_are_listed_by_id)
{
    struct fixture f;
    char all[64] = "", of_one[64] = "", of_none[64] = "", rest[64] = "", next[8] = "";

    fixture_open(&f);
    make_ready(&f, "box1");
    make_ready(&f, "box2");
    (void)ask_exec(&f, "box1", "exec2");
    (void)ask_exec(&f, "box2", "exec1");
    (void)ask_exec(&f, "box1", "exec0");
    agx_manager_exec_list(f.manager, NULL, NULL, count_execs, all);
    ASSERT_CSTR("exec0 exec1 exec2 ", all);
    agx_manager_exec_list(f.manager, "box1", NULL, count_execs, of_one);
    ASSERT_CSTR("exec0 exec2 ", of_one);
    agx_manager_exec_list(f.manager, "", NULL, count_execs, of_none);
    ASSERT_CSTR("", of_none);
    agx_manager_exec_list(f.manager, NULL, "exec0", first_exec, next);
    ASSERT_CSTR("exec1", next);
    /* Behind one that has ended, or was none. */
    UNTIL(&f, world_exec(f.world, "exec1"));
    world_exit(f.world, "exec1", 0);
    UNTIL(&f, exec_state_of(&f, "exec1") == AGX_EXEC_FINISHED);
    agx_manager_exec_list(f.manager, NULL, "exec1", count_execs, rest);
    ASSERT_CSTR("exec2 ", rest);
    fixture_close(&f);
}

static void count_taken(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ++*(unsigned *)user;
}

TEST(bytes_reach_a_commands_input)
{
    struct fixture f;
    struct agx_exec exec;
    struct reply r = { 0 };
    struct agx_error *err = NULL;
    unsigned n = 0;

    fixture_open(&f);
    make_ready(&f, "box1");
    test_exec(&exec, "exec1", "box1");
    agx_manager_exec_create(f.manager, 1000, &exec, true, reply_note, &r);
    UNTIL(&f, world_exec(f.world, "exec1"));
    ASSERT_TRUE(world_exec(f.world, "exec1")->stdin_open);
    ASSERT_OK(
        agx_manager_exec_write(f.manager, "exec1", AGX_STR("hello"), false, count_taken, &n, NULL));
    ASSERT_UINT(0, n);
    UNTIL(&f, n == 1);
    ASSERT_CSTR("hello", world_exec(f.world, "exec1")->input);
    ASSERT_CODE(AGX_NOT_FOUND, agx_manager_exec_write(f.manager, "exec9", AGX_STR("x"), true,
                                                      count_taken, &n, &err));
    agx_error_free(err);
    fixture_close(&f);
}

TEST(logs_are_ours_alone_and_can_be_read)
{
    struct fixture f;
    struct reply r;
    struct stat st;
    char dir[300];
    int data, index;

    fixture_open(&f);
    make_ready(&f, "box1");
    r = ask_exec(&f, "box1", "exec1");
    ASSERT_INT(0, stat(r.out_path, &st));
    ASSERT_UINT(0600, st.st_mode & 07777);
    snprintf(dir, sizeof(dir), "%s/box1", f.dir);
    ASSERT_INT(0, stat(dir, &st));
    ASSERT_UINT(0700, st.st_mode & 07777);
    ASSERT_OK(agx_manager_open_log(f.manager, "exec1", AGX_STREAM_ERR, &data, &index, NULL));
    ASSERT_TRUE(fcntl(data, F_GETFD) & FD_CLOEXEC);
    close(data);
    close(index);
    ASSERT_CODE(AGX_NOT_FOUND,
                agx_manager_open_log(f.manager, "exec9", AGX_STREAM_OUT, &data, &index, NULL));
    ASSERT_INT(0, unlink(r.out_path));
    ASSERT_CODE(AGX_NOT_FOUND,
                agx_manager_open_log(f.manager, "exec1", AGX_STREAM_OUT, &data, &index, NULL));
    fixture_close(&f);
}

TEST(what_stands_in_a_logs_way_is_not_followed)
{
    struct fixture f;
    struct reply r;
    char path[300], dir[300];

    fixture_open(&f);
    make_ready(&f, "box1");
    (void)ask_exec(&f, "box1", "exec1");
    snprintf(path, sizeof(path), "%s/box1/exec2.stdout.log", f.dir);
    ASSERT_INT(0, symlink("/tmp/elsewhere", path));
    r = ask_exec(&f, "box1", "exec2");
    ASSERT_INT(AGX_FAILED_PRECONDITION, r.code);
    ASSERT_TRUE(strstr(r.text, "prepare exec artifact output") != NULL);
    ASSERT_INT(AGX_EXEC_NONE, exec_state_of(&f, "exec2"));
    /* What an exec that was never stored left behind is replaced. */
    snprintf(path, sizeof(path), "%s/box1/exec3.stderr.pos", f.dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ASSERT_INT(AGX_OK, ask_exec(&f, "box1", "exec3").code);
    make_ready(&f, "box2");
    snprintf(dir, sizeof(dir), "%s/box2", f.dir);
    ASSERT_INT(0, symlink("/tmp", dir));
    ASSERT_INT(AGX_FAILED_PRECONDITION, ask_exec(&f, "box2", "exec4").code);
    ASSERT_INT(0, unlink(dir));
    fixture_close(&f);
}

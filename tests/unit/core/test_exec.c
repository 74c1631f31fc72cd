#include "core/exec.h"
#include "core/exec_internal.h"
#include "tests/support/core.h"

/* A sandbox that is READY with one exec in it. */
struct story {
    struct agx_sandbox sb;
    struct agx_exec e;
    struct agx_exec_output out;
    uint64_t second;
};

static void begin(struct story *s)
{
    *s = (struct story){ 0 };
    test_sandbox(&s->sb, "box1");
    s->sb.life.phase = AGX_PHASE_READY;
    s->sb.life.last_sequence = 3;
    test_exec(&s->e, "exec1", "box1");
}

static void finish(struct story *s)
{
    agx_event_done(&s->out.event);
    agx_exec_done(&s->e);
    agx_sandbox_done(&s->sb);
}

static int send(struct story *s, enum agx_exec_on on, int32_t exit_code, const char *message)
{
    struct agx_exec_input in = { on, test_at(++s->second), exit_code, message };

    agx_event_done(&s->out.event);
    return agx_exec_step(&s->e, &s->sb, &in, &s->out, NULL);
}

static void expect(struct story *s, enum agx_exec_on on, enum agx_event_type event)
{
    ASSERT_OK(send(s, on, 0, NULL));
    ASSERT_INT(event, s->out.has_event ? s->out.event.type : AGX_EVENT_NONE);
}

static void make_running(struct story *s)
{
    begin(s);
    expect(s, AGX_EXEC_ON_CREATE, AGX_EVENT_EXEC_STARTED);
    expect(s, AGX_EXEC_ON_BEGUN, AGX_EVENT_NONE);
}

/* How a step in that phase, with that operation running, ends: one character. */
static char classify(const struct story *s, enum agx_exec_phase before, int r)
{
    if (r < 0)
        return s->out.reason == AGX_REASON_EXEC_NOT_FOUND           ? 'f'
               : s->out.reason == AGX_REASON_EXEC_ID_ALREADY_EXISTS ? 'e'
               : s->out.reason == AGX_REASON_EXEC_ALREADY_TERMINAL  ? 't'
                                                                    : '?';
    if (s->e.phase != before && s->e.phase == AGX_EXEC_PHASE_ENDED)
        return s->e.state == AGX_EXEC_CANCELLED                          ? 'C'
               : s->e.state == AGX_EXEC_FINISHED                         ? 'F'
               : agx_text_eq(s->e.error_code, AGX_FAILED_EXEC_DEADLINE)  ? 'D'
               : agx_text_eq(s->e.error_code, AGX_FAILED_EXEC_RESTARTED) ? 'U'
                                                                         : 'X';
    if (s->out.start == AGX_EXEC_DO_START)
        return 's';
    if (s->out.start == AGX_EXEC_DO_ADOPT)
        return 'a';
    if (s->out.start == AGX_EXEC_DO_KILL)
        return 'k';
    if (s->e.phase != before)
        return '>';
    return s->e.running == AGX_EXEC_DO_NONE ? 'o' : '.';
}

/*
 * Inputs in order: create cancel deadline begun refused unknown exited gone kill-failed lost
 * restart. Small: refused (f: not found, e: exists, t: terminal), starts an operation (s: start, a:
 * adopt, k: kill), 'o': none runs. Capital: ended as Cancelled, Finished, Deadline, Unknown after a
 * restart, other failure (X). '>': another phase, nothing started. '.': nothing.
 */
static const struct {
    enum agx_exec_phase phase;
    enum agx_exec_do running;
    const char *want;
} golden[] = {
    { AGX_EXEC_PHASE_ABSENT, AGX_EXEC_DO_NONE, "sfooooooooo" },
    { AGX_EXEC_PHASE_STARTING, AGX_EXEC_DO_START, "e>>>X.F..Xs" },
    { AGX_EXEC_PHASE_RUNNING, AGX_EXEC_DO_NONE, "ekkoooFooXa" },
    { AGX_EXEC_PHASE_RUNNING, AGX_EXEC_DO_ADOPT, "e>>o.UF..Xa" },
    { AGX_EXEC_PHASE_CANCELLING, AGX_EXEC_DO_START, "e..kC.k..Ck" },
    { AGX_EXEC_PHASE_CANCELLING, AGX_EXEC_DO_ADOPT, "e..k.Ck..Ck" },
    { AGX_EXEC_PHASE_CANCELLING, AGX_EXEC_DO_KILL, "e......CkCk" },
    { AGX_EXEC_PHASE_EXPIRING, AGX_EXEC_DO_START, "e..kD.k..Dk" },
    { AGX_EXEC_PHASE_EXPIRING, AGX_EXEC_DO_ADOPT, "e..k.Dk..Dk" },
    { AGX_EXEC_PHASE_EXPIRING, AGX_EXEC_DO_KILL, "e......DkDk" },
    { AGX_EXEC_PHASE_ENDED, AGX_EXEC_DO_NONE, "etooooooooo" },
};

TEST(exec_table_does_in_each_phase_on_each_input_what_it_should)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(golden); i++) {
        ASSERT_UINT(AGX_EXEC_ON_COUNT, strlen(golden[i].want));
        for (int on = 0; on < AGX_EXEC_ON_COUNT; on++) {
            struct story s;
            char got;

            begin(&s);
            s.e.phase = golden[i].phase;
            s.e.running = golden[i].running;
            s.sb.life.active_execs = 1;
            got = classify(&s, golden[i].phase, send(&s, (enum agx_exec_on)on, 0, NULL));
            if (got != golden[i].want[on])
                FAIL("%d (%d) on %d: '%c', expected '%c'", golden[i].phase, golden[i].running, on,
                     got, golden[i].want[on]);
            finish(&s);
        }
    }
}

TEST(exec_table_has_no_empty_cell)
{
    for (int phase = 0; phase < AGX_EXEC_PHASE_COUNT; phase++)
        for (int on = 0; on < AGX_EXEC_ON_COUNT; on++)
            ASSERT_TRUE(agx_exec_table[phase][on].verdict != AGX_EXEC_MISSING);
}

TEST(exec_create_starts_and_takes_the_next_sequence)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_EXEC_ON_CREATE, AGX_EVENT_EXEC_STARTED);
    ASSERT_UINT(4, s.out.event.sequence);
    ASSERT_UINT(4, s.sb.life.last_sequence);
    ASSERT_INT(AGX_STATE_NONE, s.out.event.state);
    ASSERT_CSTR("exec1", s.out.event.subject);
    ASSERT_INT(AGX_EXEC_DO_START, s.out.start);
    ASSERT_INT(AGX_EXEC_RUNNING, s.e.state);
    ASSERT_UINT(1, s.sb.life.active_execs);
    finish(&s);
}

TEST(exec_create_needs_a_sandbox_that_is_ready_and_stays)
{
    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        struct story s;

        begin(&s);
        s.sb.life.phase = (enum agx_phase)phase;
        if (phase == AGX_PHASE_READY) {
            ASSERT_OK(send(&s, AGX_EXEC_ON_CREATE, 0, NULL));
        } else {
            ASSERT_CODE(AGX_FAILED_PRECONDITION, send(&s, AGX_EXEC_ON_CREATE, 0, NULL));
            ASSERT_INT(AGX_REASON_SANDBOX_NOT_READY, s.out.reason);
            ASSERT_UINT(3, s.sb.life.last_sequence);
            ASSERT_INT(AGX_EXEC_PHASE_ABSENT, s.e.phase);
        }
        finish(&s);
    }
}

TEST(exec_exit_code_decides_between_finished_and_failed)
{
    struct story s;

    make_running(&s);
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 0, NULL));
    ASSERT_INT(AGX_EVENT_EXEC_FINISHED, s.out.event.type);
    ASSERT_INT(0, s.e.exit_code);
    ASSERT_NULL(s.e.error_code);
    finish(&s);
    make_running(&s);
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 3, NULL));
    ASSERT_INT(AGX_EVENT_EXEC_FAILED, s.out.event.type);
    ASSERT_INT(3, s.out.event.exit_code);
    ASSERT_CSTR("EXEC_RUN_FAILED", s.out.event.error_code);
    ASSERT_CSTR("docker exec failed: exit code 3", s.out.event.error_message);
    ASSERT_INT(3, s.e.exit_code);
    ASSERT_CSTR("docker exec failed: exit code 3", s.e.error_message);
    finish(&s);
}

TEST(exec_that_cannot_start_fails_with_the_backends_words)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_EXEC_ON_CREATE, AGX_EVENT_EXEC_STARTED);
    ASSERT_OK(send(&s, AGX_EXEC_ON_REFUSED, 0, "no such directory"));
    ASSERT_INT(AGX_EXEC_FAILED, s.e.state);
    ASSERT_INT(0, s.e.exit_code);
    ASSERT_CSTR("EXEC_RUN_FAILED", s.e.error_code);
    ASSERT_CSTR("no such directory", s.e.error_message);
    finish(&s);
}

TEST(exec_cancel_ends_it_only_when_the_whole_group_is_gone)
{
    struct story s;

    make_running(&s);
    expect(&s, AGX_EXEC_ON_CANCEL, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_KILL, s.out.start);
    ASSERT_TRUE(s.out.changed);
    ASSERT_INT(AGX_EXEC_RUNNING, s.e.state);
    expect(&s, AGX_EXEC_ON_CANCEL, AGX_EVENT_NONE);
    ASSERT_FALSE(s.out.changed);
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 7, NULL)); /* by itself, in the grace */
    ASSERT_FALSE(s.out.has_event);
    expect(&s, AGX_EXEC_ON_GONE, AGX_EVENT_EXEC_CANCELLED);
    ASSERT_INT(AGX_EXEC_CANCELLED, s.e.state);
    ASSERT_INT(0, s.e.exit_code);
    ASSERT_NULL(s.e.error_message);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, send(&s, AGX_EXEC_ON_CANCEL, 0, NULL));
    ASSERT_INT(AGX_REASON_EXEC_ALREADY_TERMINAL, s.out.reason);
    finish(&s);
}

TEST(exec_cancel_during_the_start_kills_when_it_has_started)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_EXEC_ON_CREATE, AGX_EVENT_EXEC_STARTED);
    expect(&s, AGX_EXEC_ON_CANCEL, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_NONE, s.out.start);
    expect(&s, AGX_EXEC_ON_BEGUN, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_KILL, s.out.start);
    expect(&s, AGX_EXEC_ON_KILL_FAILED, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_KILL, s.out.start);
    expect(&s, AGX_EXEC_ON_GONE, AGX_EVENT_EXEC_CANCELLED);
    finish(&s);
}

TEST(exec_past_its_deadline_fails_with_137)
{
    struct agx_stamp now = test_at(3);
    struct story s;

    make_running(&s);
    ASSERT_UINT(AGX_LEFT_NEVER, agx_exec_deadline_left_ns(&s.e, &now));
    s.e.deadline_ns = 5000000000;
    ASSERT_UINT(3000000000, agx_exec_deadline_left_ns(&s.e, &now));
    now = test_at(60);
    ASSERT_UINT(0, agx_exec_deadline_left_ns(&s.e, &now));
    expect(&s, AGX_EXEC_ON_DEADLINE, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_KILL, s.out.start);
    ASSERT_UINT(AGX_LEFT_NEVER, agx_exec_deadline_left_ns(&s.e, &now));
    expect(&s, AGX_EXEC_ON_CANCEL, AGX_EVENT_NONE); /* accepted, and too late */
    expect(&s, AGX_EXEC_ON_GONE, AGX_EVENT_EXEC_FAILED);
    ASSERT_INT(137, s.e.exit_code);
    ASSERT_CSTR("EXEC_DEADLINE_EXCEEDED", s.e.error_code);
    finish(&s);
}

TEST(exec_under_a_sandbox_that_ends_is_lost_with_the_code_given)
{
    struct story s;

    make_running(&s);
    ASSERT_OK(send(&s, AGX_EXEC_ON_LOST, AGX_EXEC_EXIT_KILLED, NULL));
    ASSERT_INT(137, s.e.exit_code);
    ASSERT_CSTR("docker exec failed: exit code 137", s.e.error_message);
    finish(&s);
    make_running(&s);
    ASSERT_OK(send(&s, AGX_EXEC_ON_LOST, AGX_EXEC_EXIT_UNKNOWN, "the engine restarted"));
    ASSERT_INT(-1, s.e.exit_code);
    ASSERT_CSTR("the engine restarted", s.e.error_message);
    finish(&s);
}

TEST(exec_that_is_lost_while_its_sandbox_is_stopped_was_killed_by_that)
{
    static const enum agx_phase phases[] = { AGX_PHASE_STOPPING, AGX_PHASE_DELETING };

    for (size_t i = 0; i < AGX_ARRAY_LEN(phases); i++) {
        struct story s;

        make_running(&s);
        s.sb.life.phase = phases[i];
        ASSERT_OK(send(&s, AGX_EXEC_ON_LOST, AGX_EXEC_EXIT_UNKNOWN, "its main process has ended"));
        ASSERT_INT(137, s.e.exit_code);
        ASSERT_CSTR("docker exec failed: exit code 137", s.e.error_message);
        finish(&s);
    }
}

TEST(exec_every_end_resets_the_idle_clock)
{
    static const enum agx_exec_on ends[] = { AGX_EXEC_ON_EXITED, AGX_EXEC_ON_LOST };

    for (size_t i = 0; i < AGX_ARRAY_LEN(ends); i++) {
        struct story s;

        make_running(&s);
        s.second = 500;
        ASSERT_OK(send(&s, ends[i], 1, NULL));
        ASSERT_UINT(0, s.sb.life.active_execs);
        ASSERT_UINT(test_at(501).mono_ns, s.sb.life.idle_from.mono_ns);
        finish(&s);
    }
}

TEST(exec_is_adopted_after_a_restart)
{
    struct story s;

    make_running(&s);
    s.sb.life.active_execs = 0; /* not stored */
    expect(&s, AGX_EXEC_ON_RESTART, AGX_EVENT_NONE);
    ASSERT_UINT(1, s.sb.life.active_execs);
    ASSERT_INT(AGX_EXEC_DO_ADOPT, s.out.start);
    expect(&s, AGX_EXEC_ON_BEGUN, AGX_EVENT_NONE);
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 4, NULL));
    ASSERT_INT(4, s.e.exit_code);
    finish(&s);
    make_running(&s);
    s.sb.life.active_execs = 0;
    expect(&s, AGX_EXEC_ON_RESTART, AGX_EVENT_NONE);
    expect(&s, AGX_EXEC_ON_UNKNOWN, AGX_EVENT_EXEC_FAILED);
    ASSERT_CSTR("DAEMON_RESTARTED", s.e.error_code);
    ASSERT_CSTR("exec was running when daemon restarted", s.e.error_message);
    ASSERT_INT(0, s.e.exit_code);
    finish(&s);
}

TEST(exec_cancel_is_carried_on_after_a_restart)
{
    struct story s;

    make_running(&s);
    expect(&s, AGX_EXEC_ON_CANCEL, AGX_EVENT_NONE);
    s.sb.life.active_execs = 0;
    expect(&s, AGX_EXEC_ON_RESTART, AGX_EVENT_NONE);
    ASSERT_INT(AGX_EXEC_DO_KILL, s.out.start);
    expect(&s, AGX_EXEC_ON_GONE, AGX_EVENT_EXEC_CANCELLED);
    finish(&s);
}

TEST(exec_check_wants_a_command_and_a_good_id)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_exec e;

    ASSERT_OK(agx_exec_init(&e, "abc", "box1", NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_exec_check(&e, &err));
    ASSERT_CSTR("command must not be empty", err->message);
    err = agx_error_free(err);
    ASSERT_OK(agx_words_add(&e.command, AGX_STR(""), NULL)); /* an empty word is allowed */
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_exec_check(&e, &err));
    ASSERT_CSTR("exec_id must be at least 4 characters", err->message);
    ASSERT_OK(agx_text_set(&e.id, "abcd", NULL));
    ASSERT_OK(agx_exec_check(&e, NULL));
    e.deadline_ns = -1;
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_exec_check(&e, NULL));
    agx_exec_done(&e);
}

TEST(exec_undo_takes_back_a_step_that_could_not_be_stored)
{
    struct agx_exec before;
    struct story s;

    make_running(&s);
    before = s.e;
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 5, NULL));
    agx_exec_undo(&s.e, &before);
    ASSERT_INT(AGX_EXEC_PHASE_RUNNING, s.e.phase);
    ASSERT_INT(AGX_EXEC_RUNNING, s.e.state);
    ASSERT_NULL(s.e.error_code);
    s.sb.life.active_execs = 1;
    ASSERT_OK(send(&s, AGX_EXEC_ON_EXITED, 6, NULL));
    ASSERT_INT(6, s.e.exit_code);
    finish(&s);
}

#include "core/sandbox.h"
#include "core/sandbox_internal.h"
#include "tests/support/core.h"

/* What an operation of a phase is, where it can have one. */
static const enum agx_do phase_op[AGX_PHASE_COUNT] = {
    [AGX_PHASE_CREATING] = AGX_DO_CREATE, [AGX_PHASE_RESUMING] = AGX_DO_RESUME,
    [AGX_PHASE_READY] = AGX_DO_REVIVE,    [AGX_PHASE_STOPPING] = AGX_DO_STOP,
    [AGX_PHASE_STOPPED] = AGX_DO_HALT,    [AGX_PHASE_FAILED] = AGX_DO_HALT,
    [AGX_PHASE_DELETING] = AGX_DO_DELETE,
};

static void put_into(struct agx_sandbox *sb, enum agx_phase phase, enum agx_do running)
{
    test_sandbox(sb, "box1");
    sb->life.phase = phase;
    sb->life.op = phase_op[phase];
    sb->life.running = running;
    sb->life.last_sequence = 10;
    sb->life.cause = AGX_CAUSE_STOP_REQUESTED;
    if (phase == AGX_PHASE_FAILED)
        ASSERT_OK(agx_text_set(&sb->life.error_code, "OLD", NULL));
}

/* What a step did, as one character. */
static char classify(const struct agx_sandbox *sb, enum agx_phase before, int r,
                     const struct agx_sandbox_output *out)
{
    static const char moved[AGX_PHASE_COUNT] = { '?', 'C', 'R', 'O', 'T', 'S', 'X', 'D', 'G', 'P' };

    if (r < 0) {
        switch (out->reason) {
        case AGX_REASON_SANDBOX_NOT_FOUND:
            return 'f';
        case AGX_REASON_SANDBOX_ID_ALREADY_EXISTS:
            return 'e';
        case AGX_REASON_SANDBOX_NOT_READY:
            return 'n';
        case AGX_REASON_SANDBOX_NOT_STARTED:
            return 's';
        case AGX_REASON_SANDBOX_NOT_STOPPED:
            return 'r';
        default:
            return '?';
        }
    }
    if (sb->life.phase != before)
        return moved[sb->life.phase];
    if (out->has_event)
        return '+';
    if (out->start != AGX_DO_NONE)
        return '*';
    return sb->life.op != phase_op[before] ? 'o' : '.';
}

/*
 * The whole table as it must be, the inputs in the order of enum agx_on: create stop resume delete
 * exec, begun done failed, died revive halt, companion-ready companion-failed, idle cleanup,
 * restart.
 *
 * Capitals, moves to: Creating, Resuming, ready (O), sTopping, Stopped, failed (X), Deleting,
 * deleted (G), Purged. Small, refused: f not found, e exists, n not ready, s not started, r not
 * stopped. '+' an event, '*' an operation starts, 'o' the operation is over, '.' nothing.
 */
/* clang-format off */
static const char *const golden[AGX_PHASE_COUNT] = {
    [AGX_PHASE_ABSENT] =   "Cffff" "..." "..." ".." ".." ".",
    [AGX_PHASE_CREATING] = "esrDn" "+OX" "..." "++" ".." "*",
    [AGX_PHASE_RESUMING] = "esrDn" ".OX" "..." "++" ".." "*",
    [AGX_PHASE_READY] =    "eTrD." ".oo" "X.." "++" "T." "o",
    [AGX_PHASE_STOPPING] = "e.rDn" ".SX" "..." ".." ".." "*",
    [AGX_PHASE_STOPPED] =  "esRDn" ".oo" "X.." ".." ".D" "*",
    [AGX_PHASE_FAILED] =   "esrDn" ".oo" "..." ".." ".." "*",
    [AGX_PHASE_DELETING] = "esr.n" ".GX" "..." ".." ".." "*",
    [AGX_PHASE_DELETED] =  "esr.n" "..." "..." ".." ".P" ".",
    [AGX_PHASE_PURGED] =   "effff" "..." "..." ".." ".." ".",
};
/* clang-format on */

TEST(sandbox_table_does_in_each_phase_on_each_input_what_it_should)
{
    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        for (int on = 0; on < AGX_ON_COUNT; on++) {
            struct agx_sandbox sb;
            struct agx_sandbox_input in = { .on = (enum agx_on)on,
                                            .now = test_at(1),
                                            .op = phase_op[phase],
                                            .error_message = "why" };
            struct agx_sandbox_output out;
            char got;
            int r;

            put_into(&sb, (enum agx_phase)phase, phase_op[phase]);
            r = agx_sandbox_step(&sb, &in, &out, NULL);
            got = classify(&sb, (enum agx_phase)phase, r, &out);
            if (got != golden[phase][on])
                FAIL("%s on %s: '%c', expected '%c'", agx_phase_name((enum agx_phase)phase),
                     agx_on_name((enum agx_on)on), got, golden[phase][on]);
            ASSERT_UINT(out.has_event ? 11 : 10, sb.life.last_sequence);
            agx_event_done(&out.event);
            agx_sandbox_done(&sb);
        }
    }
}

TEST(sandbox_table_has_no_empty_cell)
{
    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        ASSERT_UINT(AGX_ON_COUNT, strlen(golden[phase]));
        for (int on = 0; on < AGX_ON_COUNT; on++)
            ASSERT_TRUE(agx_sandbox_table[phase][on].verdict != AGX_VERDICT_MISSING);
    }
}

TEST(sandbox_report_of_an_overtaken_operation_only_starts_the_wanted_one)
{
    static const enum agx_on reports[] = { AGX_ON_BEGUN, AGX_ON_DONE, AGX_ON_FAILED };

    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        for (int running = 1; running < AGX_DO_COUNT; running++) {
            for (size_t i = 0; i < AGX_ARRAY_LEN(reports); i++) {
                bool over = reports[i] != AGX_ON_BEGUN;
                struct agx_sandbox sb;
                struct agx_sandbox_input in = { .on = reports[i],
                                                .now = test_at(1),
                                                .op = (enum agx_do)running };
                struct agx_sandbox_output out;

                if (running == (int)phase_op[phase])
                    continue;
                put_into(&sb, (enum agx_phase)phase, (enum agx_do)running);
                ASSERT_FALSE(agx_sandbox_ends_execs(&sb, &in));
                ASSERT_OK(agx_sandbox_step(&sb, &in, &out, NULL));
                ASSERT_INT(phase, sb.life.phase);
                ASSERT_FALSE(out.has_event);
                ASSERT_FALSE(out.changed);
                ASSERT_INT(over ? phase_op[phase] : AGX_DO_NONE, out.start);
                ASSERT_INT(over ? (int)phase_op[phase] : running, sb.life.running);
                agx_sandbox_done(&sb);
            }
        }
    }
}

TEST(sandbox_report_of_what_does_not_run_is_ignored)
{
    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        for (int op = 0; op < AGX_DO_COUNT; op++) {
            struct agx_sandbox sb;
            struct agx_sandbox_input in = { .on = AGX_ON_DONE, .op = (enum agx_do)op };
            struct agx_sandbox_output out;

            put_into(&sb, (enum agx_phase)phase, AGX_DO_NONE);
            ASSERT_OK(agx_sandbox_step(&sb, &in, &out, NULL));
            ASSERT_INT(phase, sb.life.phase);
            ASSERT_INT(AGX_DO_NONE, out.start);
            ASSERT_FALSE(out.has_event);
            agx_sandbox_done(&sb);
        }
    }
}

/* One sandbox, driven by short words; each step's event is checked against what is expected. */
struct story {
    struct agx_sandbox sb;
    struct agx_sandbox_output out;
    uint64_t second;
};

static void begin(struct story *s)
{
    *s = (struct story){ 0 };
    test_sandbox(&s->sb, "box1");
}

static void finish(struct story *s)
{
    agx_event_done(&s->out.event);
    agx_sandbox_done(&s->sb);
}

static int send(struct story *s, struct agx_sandbox_input in)
{
    agx_event_done(&s->out.event);
    in.now = test_at(++s->second);
    return agx_sandbox_step(&s->sb, &in, &s->out, NULL);
}

static void expect(struct story *s, enum agx_on on, enum agx_do op, enum agx_event_type event)
{
    ASSERT_OK(send(s, (struct agx_sandbox_input){ .on = on, .op = op, .error_message = "why" }));
    ASSERT_INT(event, s->out.has_event ? s->out.event.type : AGX_EVENT_NONE);
}

static void make_ready(struct story *s)
{
    begin(s);
    expect(s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_INT(AGX_DO_CREATE, s->out.start);
    expect(s, AGX_ON_BEGUN, AGX_DO_CREATE, AGX_EVENT_SANDBOX_PREPARING);
    expect(s, AGX_ON_DONE, AGX_DO_CREATE, AGX_EVENT_SANDBOX_READY);
}

static void make_stopped(struct story *s)
{
    make_ready(s);
    expect(s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    expect(s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
}

TEST(sandbox_create_has_the_handle_that_clients_expect)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_TRUE(s.out.changed);
    ASSERT_UINT(1, s.out.event.sequence);
    ASSERT_INT(AGX_STATE_PENDING, s.out.event.state);
    ASSERT_INT(test_at(1).wall_ns, s.out.event.occurred_at_ns);
    ASSERT_INT(AGX_STATE_PENDING, agx_sandbox_state(&s.sb));
    ASSERT_INT(test_at(1).wall_ns, s.sb.created.wall_ns);
    ASSERT_INT(test_at(1).wall_ns, s.sb.life.changed.wall_ns);
    ASSERT_UINT(1, s.sb.life.last_sequence);
    finish(&s);
}

TEST(sandbox_events_carry_state_and_reason)
{
    struct story s;

    make_ready(&s);
    ASSERT_INT(AGX_STATE_READY, s.out.event.state);
    ASSERT_INT(test_at(3).wall_ns, s.sb.life.changed.wall_ns);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_INT(AGX_STATE_NONE, s.out.event.state);
    ASSERT_INT(AGX_STATE_READY, agx_sandbox_state(&s.sb));
    ASSERT_INT(test_at(3).wall_ns, s.sb.life.changed.wall_ns);
    ASSERT_CSTR("stop_requested", s.out.event.reason);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    ASSERT_INT(AGX_STATE_STOPPED, s.out.event.state);
    ASSERT_CSTR("stop_requested", s.out.event.reason);
    expect(&s, AGX_ON_RESUME, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_INT(AGX_STATE_PENDING, s.out.event.state);
    ASSERT_NULL(s.out.event.reason);
    expect(&s, AGX_ON_BEGUN, AGX_DO_RESUME, AGX_EVENT_NONE);
    expect(&s, AGX_ON_DONE, AGX_DO_RESUME, AGX_EVENT_SANDBOX_READY);
    expect(&s, AGX_ON_IDLE, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_CSTR("idle_ttl", s.out.event.reason);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    ASSERT_CSTR("idle_ttl", s.out.event.reason);
    expect(&s, AGX_ON_CLEANUP, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_CSTR("cleanup_ttl", s.out.event.reason);
    ASSERT_INT(AGX_STATE_DELETING, s.out.event.state);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    ASSERT_CSTR("cleanup_ttl", s.out.event.reason);
    expect(&s, AGX_ON_CLEANUP, 0, AGX_EVENT_NONE);
    ASSERT_TRUE(s.out.purge);
    ASSERT_TRUE(s.out.changed);
    finish(&s);
}

TEST(sandbox_failure_fills_the_error_and_leaving_it_clears_it)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    expect(&s, AGX_ON_FAILED, AGX_DO_CREATE, AGX_EVENT_SANDBOX_FAILED);
    ASSERT_CSTR("SANDBOX_CREATE_FAILED", s.out.event.error_code);
    ASSERT_CSTR("why", s.out.event.error_message);
    ASSERT_CSTR("SANDBOX_CREATE_FAILED", s.sb.life.error_code);
    ASSERT_CSTR("why", s.sb.life.error_message);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_NULL(s.sb.life.error_code);
    ASSERT_NULL(s.sb.life.error_message);
    finish(&s);
}

TEST(sandbox_failure_may_bring_its_own_code)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_OK(send(&s, (struct agx_sandbox_input){ .on = AGX_ON_FAILED,
                                                   .op = AGX_DO_CREATE,
                                                   .error_code = AGX_FAILED_INTERRUPTED }));
    ASSERT_CSTR("INTERRUPTED_PENDING", s.out.event.error_code);
    finish(&s);
}

TEST(sandbox_delete_during_create_ends_deleted_and_never_ready)
{
    static const enum agx_on ends[] = { AGX_ON_DONE, AGX_ON_FAILED };

    for (size_t i = 0; i < AGX_ARRAY_LEN(ends); i++) {
        struct story s;

        begin(&s);
        expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
        expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
        ASSERT_TRUE(s.out.cancel);
        ASSERT_INT(AGX_DO_NONE, s.out.start);
        expect(&s, AGX_ON_BEGUN, AGX_DO_CREATE, AGX_EVENT_NONE);
        ASSERT_OK(send(&s, (struct agx_sandbox_input){ .on = AGX_ON_COMPANION_READY }));
        ASSERT_FALSE(s.out.has_event);
        expect(&s, ends[i], AGX_DO_CREATE, AGX_EVENT_NONE);
        ASSERT_INT(AGX_DO_DELETE, s.out.start);
        expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
        ASSERT_CSTR("delete_requested", s.out.event.reason);
        expect(&s, AGX_ON_DONE, AGX_DO_CREATE, AGX_EVENT_NONE);
        ASSERT_INT(AGX_STATE_DELETED, agx_sandbox_state(&s.sb));
        finish(&s);
    }
}

TEST(sandbox_stop_then_delete_does_not_become_stopped)
{
    struct story s;

    make_ready(&s);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_TRUE(s.out.cancel);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_DELETE, s.out.start);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    finish(&s);
}

TEST(sandbox_second_stop_is_accepted_without_an_event)
{
    struct story s;

    make_ready(&s);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_NONE);
    ASSERT_FALSE(s.out.changed);
    ASSERT_INT(AGX_DO_NONE, s.out.start);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, send(&s, (struct agx_sandbox_input){ .on = AGX_ON_EXEC }));
    ASSERT_INT(AGX_REASON_SANDBOX_NOT_READY, s.out.reason);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    finish(&s);
}

TEST(sandbox_resume_racing_delete_ends_deleted)
{
    struct story s;

    make_stopped(&s);
    expect(&s, AGX_ON_RESUME, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_CODE(AGX_FAILED_PRECONDITION,
                send(&s, (struct agx_sandbox_input){ .on = AGX_ON_RESUME }));
    expect(&s, AGX_ON_DONE, AGX_DO_RESUME, AGX_EVENT_NONE);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    finish(&s);
}

TEST(sandbox_failed_delete_can_be_tried_again)
{
    struct story s;

    make_ready(&s);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_NONE);
    expect(&s, AGX_ON_FAILED, AGX_DO_DELETE, AGX_EVENT_SANDBOX_FAILED);
    ASSERT_CSTR("SANDBOX_DELETE_FAILED", s.out.event.error_code);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_INT(AGX_DO_DELETE, s.out.start);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    finish(&s);
}

TEST(sandbox_failed_resume_stops_what_had_started)
{
    struct story s;

    make_stopped(&s);
    expect(&s, AGX_ON_RESUME, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    expect(&s, AGX_ON_FAILED, AGX_DO_RESUME, AGX_EVENT_SANDBOX_FAILED);
    ASSERT_CSTR("SANDBOX_RESUME_FAILED", s.out.event.error_code);
    ASSERT_INT(AGX_DO_HALT, s.out.start);
    expect(&s, AGX_ON_FAILED, AGX_DO_HALT, AGX_EVENT_NONE);
    ASSERT_INT(AGX_STATE_FAILED, agx_sandbox_state(&s.sb));
    ASSERT_CSTR("SANDBOX_RESUME_FAILED", s.sb.life.error_code);
    finish(&s);
}

TEST(sandbox_that_died_is_halted_and_keeps_the_first_failure)
{
    struct story s;

    make_ready(&s);
    ASSERT_OK(send(&s, (struct agx_sandbox_input){ .on = AGX_ON_DIED,
                                                   .error_code = AGX_FAILED_OOM,
                                                   .error_message = "killed" }));
    ASSERT_CSTR("CONTAINER_OOM", s.sb.life.error_code);
    ASSERT_INT(AGX_DO_HALT, s.out.start);
    expect(&s, AGX_ON_DIED, 0, AGX_EVENT_NONE);
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    ASSERT_TRUE(s.out.cancel);
    finish(&s);
}

TEST(sandbox_stop_waits_for_a_main_process_that_is_being_started)
{
    struct story s;

    make_ready(&s);
    expect(&s, AGX_ON_REVIVE, 0, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_REVIVE, s.out.start);
    expect(&s, AGX_ON_REVIVE, 0, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_NONE, s.out.start);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_TRUE(s.out.cancel);
    expect(&s, AGX_ON_FAILED, AGX_DO_REVIVE, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_STOP, s.out.start);
    finish(&s);
}

TEST(sandbox_companion_is_reported_once_and_again_after_a_resume)
{
    struct agx_sandbox_input ready = { .on = AGX_ON_COMPANION_READY, .companion = 1 };
    struct agx_sandbox_input failed = { .on = AGX_ON_COMPANION_FAILED,
                                        .companion = 1,
                                        .error_code = AGX_FAILED_NOT_RUNNING,
                                        .error_message = "missing" };
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_OK(send(&s, ready));
    ASSERT_CSTR("db", s.out.event.subject);
    ASSERT_INT(AGX_STATE_PENDING, s.out.event.state);
    ASSERT_OK(send(&s, ready));
    ASSERT_FALSE(s.out.has_event);
    expect(&s, AGX_ON_DONE, AGX_DO_CREATE, AGX_EVENT_SANDBOX_READY);
    ASSERT_OK(send(&s, failed));
    ASSERT_INT(AGX_STATE_READY, s.out.event.state);
    ASSERT_CSTR("CONTAINER_NOT_RUNNING", s.out.event.error_code);
    ASSERT_OK(send(&s, failed));
    ASSERT_FALSE(s.out.has_event);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_OK(send(&s, ready));
    ASSERT_FALSE(s.out.has_event);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    expect(&s, AGX_ON_RESUME, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    failed.error_code = NULL;
    ASSERT_OK(send(&s, failed));
    ASSERT_CSTR("COMPANION_CONTAINER_FAILED", s.out.event.error_code);
    failed.companion = 2;
    ASSERT_OK(send(&s, failed));
    ASSERT_FALSE(s.out.has_event);
    finish(&s);
}

TEST(sandbox_that_leaves_no_process_wants_its_execs_ended_first)
{
    struct agx_sandbox_input done = { .on = AGX_ON_DONE, .op = AGX_DO_STOP };
    struct story s;

    make_ready(&s);
    s.sb.life.active_execs = 1;
    expect(&s, AGX_ON_IDLE, 0, AGX_EVENT_NONE);
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_TRUE(agx_sandbox_ends_execs(&s.sb, &done));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, send(&s, done));
    ASSERT_INT(AGX_PHASE_STOPPING, s.sb.life.phase);
    ASSERT_FALSE(s.out.has_event);
    s.sb.life.active_execs = 0;
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    finish(&s);
}

TEST(sandbox_restart_carries_on_what_was_accepted)
{
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    expect(&s, AGX_ON_BEGUN, AGX_DO_CREATE, AGX_EVENT_SANDBOX_PREPARING);
    expect(&s, AGX_ON_RESTART, 0, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_CREATE, s.out.start);
    expect(&s, AGX_ON_BEGUN, AGX_DO_CREATE, AGX_EVENT_NONE); /* told before the restart */
    expect(&s, AGX_ON_DELETE, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    expect(&s, AGX_ON_RESTART, 0, AGX_EVENT_NONE);
    ASSERT_INT(AGX_DO_DELETE, s.out.start);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    finish(&s);
}

TEST(sandbox_resume_resets_the_idle_clock)
{
    const int64_t ttl = INT64_C(600) * 1000000000;
    struct agx_stamp now;
    struct story s;

    make_ready(&s);
    now = test_at(s.second + 100);
    ASSERT_UINT((uint64_t)ttl - UINT64_C(100000000000), agx_sandbox_idle_left_ns(&s.sb, ttl, &now));
    s.second += 1000;
    now = test_at(s.second);
    ASSERT_UINT(0, agx_sandbox_idle_left_ns(&s.sb, ttl, &now));
    expect(&s, AGX_ON_IDLE, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_idle_left_ns(&s.sb, ttl, &now));
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    expect(&s, AGX_ON_RESUME, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    expect(&s, AGX_ON_DONE, AGX_DO_RESUME, AGX_EVENT_SANDBOX_READY);
    now = test_at(s.second);
    ASSERT_UINT((uint64_t)ttl, agx_sandbox_idle_left_ns(&s.sb, ttl, &now));
    finish(&s);
}

TEST(sandbox_idle_time_of_the_spec_wins_and_zero_switches_it_off)
{
    struct agx_stamp now = test_at(50);
    struct story s;

    make_ready(&s);
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_idle_left_ns(&s.sb, 0, &now));
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_idle_left_ns(&s.sb, -1, &now));
    s.sb.spec.idle_ttl_ns = 0;
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_idle_left_ns(&s.sb, 5, &now));
    s.sb.spec.idle_ttl_ns = 7;
    ASSERT_UINT(0, agx_sandbox_idle_left_ns(&s.sb, 0, &now));
    s.sb.life.active_execs = 1;
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_idle_left_ns(&s.sb, 5, &now));
    finish(&s);
}

TEST(sandbox_cleanup_counts_from_the_stop_and_from_the_end)
{
    const int64_t ttl = INT64_C(10) * 1000000000;
    struct agx_stamp now;
    struct story s;

    make_ready(&s);
    now = test_at(1000);
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_cleanup_left_ns(&s.sb, ttl, &now));
    expect(&s, AGX_ON_STOP, 0, AGX_EVENT_SANDBOX_STOP_REQUESTED);
    expect(&s, AGX_ON_DONE, AGX_DO_STOP, AGX_EVENT_SANDBOX_STOPPED);
    now = test_at(s.second + 4);
    ASSERT_UINT(UINT64_C(6000000000), agx_sandbox_cleanup_left_ns(&s.sb, ttl, &now));
    now.wall_ns = INT64_MAX; /* somebody set the clock */
    ASSERT_UINT(UINT64_C(6000000000), agx_sandbox_cleanup_left_ns(&s.sb, ttl, &now));
    now = test_at(s.second + 11);
    ASSERT_UINT(0, agx_sandbox_cleanup_left_ns(&s.sb, ttl, &now));
    ASSERT_UINT(AGX_LEFT_NEVER, agx_sandbox_cleanup_left_ns(&s.sb, 0, &now));
    expect(&s, AGX_ON_CLEANUP, 0, AGX_EVENT_SANDBOX_DELETE_REQUESTED);
    expect(&s, AGX_ON_DONE, AGX_DO_DELETE, AGX_EVENT_SANDBOX_DELETED);
    now = test_at(s.second);
    ASSERT_UINT((uint64_t)ttl, agx_sandbox_cleanup_left_ns(&s.sb, ttl, &now));
    finish(&s);
}

TEST(sandbox_life_copy_undoes_a_step)
{
    struct agx_life before = { 0 };
    struct story s;

    begin(&s);
    expect(&s, AGX_ON_CREATE, 0, AGX_EVENT_SANDBOX_ACCEPTED);
    ASSERT_OK(send(&s, (struct agx_sandbox_input){ .on = AGX_ON_COMPANION_READY }));
    ASSERT_OK(agx_life_copy(&before, &s.sb.life, NULL));
    expect(&s, AGX_ON_FAILED, AGX_DO_CREATE, AGX_EVENT_SANDBOX_FAILED);
    agx_life_done(&s.sb.life);
    s.sb.life = before;
    ASSERT_INT(AGX_PHASE_CREATING, s.sb.life.phase);
    ASSERT_INT(AGX_COMPANION_READY, s.sb.life.companions[0]);
    expect(&s, AGX_ON_DONE, AGX_DO_CREATE, AGX_EVENT_SANDBOX_READY);
    ASSERT_UINT(3, s.out.event.sequence);
    finish(&s);
}

TEST(sandbox_order_is_the_newest_first_then_by_id)
{
    struct agx_sandbox a = { .id = (char *)"a", .created.wall_ns = 1 };
    struct agx_sandbox b = { .id = (char *)"b", .created.wall_ns = 1 };
    struct agx_sandbox c = { .id = (char *)"c", .created.wall_ns = INT64_MAX };

    ASSERT_TRUE(agx_sandbox_order(&a, &b) < 0);
    ASSERT_TRUE(agx_sandbox_order(&b, &a) > 0);
    ASSERT_TRUE(agx_sandbox_order(&c, &a) < 0);
    ASSERT_TRUE(agx_sandbox_order(&a, &c) > 0);
    ASSERT_INT(0, agx_sandbox_order(&a, &a));
}

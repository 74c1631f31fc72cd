#include "core/event.h"
#include "core/reason.h"
#include "tests/support/test.h"

TEST(event_types_have_the_names_and_details_of_the_wire)
{
    static const struct {
        const char *name;
        enum agx_event_details details;
        enum agx_exec_state exec;
    } want[AGX_EVENT_COUNT] = {
        { "EVENT_TYPE_UNSPECIFIED", AGX_EVENT_DETAILS_NONE, 0 },
        { "SANDBOX_ACCEPTED", AGX_EVENT_DETAILS_NONE, 0 },
        { "SANDBOX_PREPARING", AGX_EVENT_DETAILS_PHASE, 0 },
        { "SANDBOX_READY", AGX_EVENT_DETAILS_NONE, 0 },
        { "SANDBOX_FAILED", AGX_EVENT_DETAILS_PHASE, 0 },
        { "SANDBOX_STOP_REQUESTED", AGX_EVENT_DETAILS_PHASE, 0 },
        { "SANDBOX_STOPPED", AGX_EVENT_DETAILS_PHASE, 0 },
        { "SANDBOX_DELETE_REQUESTED", AGX_EVENT_DETAILS_PHASE, 0 },
        { "SANDBOX_DELETED", AGX_EVENT_DETAILS_PHASE, 0 },
        { "EXEC_STARTED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_RUNNING },
        { "EXEC_FINISHED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_FINISHED },
        { "EXEC_FAILED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_FAILED },
        { "EXEC_CANCELLED", AGX_EVENT_DETAILS_EXEC, AGX_EXEC_CANCELLED },
        { "COMPANION_CONTAINER_READY", AGX_EVENT_DETAILS_COMPANION, 0 },
        { "COMPANION_CONTAINER_FAILED", AGX_EVENT_DETAILS_COMPANION, 0 },
    };

    for (int t = 0; t < AGX_EVENT_COUNT; t++) {
        ASSERT_CSTR(want[t].name, agx_event_name((enum agx_event_type)t));
        ASSERT_INT(want[t].details, agx_event_details((enum agx_event_type)t));
        ASSERT_INT(want[t].exec, agx_event_exec_state((enum agx_event_type)t));
    }
    ASSERT_CSTR("materialize", agx_event_phase(AGX_EVENT_SANDBOX_PREPARING));
    ASSERT_NULL(agx_event_phase(AGX_EVENT_SANDBOX_READY));
}

TEST(event_id_is_made_of_sandbox_and_sequence)
{
    struct agx_event e = { .sequence = UINT64_MAX, .type = AGX_EVENT_EXEC_STARTED };
    char id[AGX_EVENT_ID_SIZE];

    ASSERT_CSTR("box1-18446744073709551615", agx_event_id(&e, "box1", id));
}

TEST(event_of_a_snapshot_has_the_newest_number_and_an_id_of_its_own)
{
    char sandbox[AGX_IDENT_MAX + 1], exec[AGX_IDENT_MAX + 1], id[AGX_EVENT_ID_SIZE];
    struct agx_event e = { 0 };

    memset(sandbox, 's', AGX_IDENT_MAX);
    memset(exec, 'e', AGX_IDENT_MAX);
    sandbox[AGX_IDENT_MAX] = exec[AGX_IDENT_MAX] = '\0';
    ASSERT_OK(agx_event_snapshot_exec(&e, exec, 7, AGX_STATE_READY, 123, NULL));
    ASSERT_UINT(7, e.sequence);
    ASSERT_INT(AGX_EVENT_EXEC_STARTED, e.type);
    ASSERT_INT(AGX_STATE_READY, e.state);
    ASSERT_INT(123, e.occurred_at_ns);
    ASSERT_UINT(2 * AGX_IDENT_MAX + 10, strlen(agx_event_id(&e, sandbox, id)));
    ASSERT_NOT_NULL(strstr(id, "s-snapshot-e"));
    agx_event_done(&e);
}

TEST(event_copy_shares_nothing)
{
    struct agx_event e = { .sequence = 3, .type = AGX_EVENT_EXEC_FAILED, .exit_code = -1 }, copy;
    struct agx_event_text text = { "exec1", NULL, "EXEC_RUN_FAILED", "gone" };

    ASSERT_OK(agx_event_init(&e, &text, NULL));
    ASSERT_OK(agx_event_copy(&copy, &e, NULL));
    agx_event_done(&e);
    ASSERT_UINT(3, copy.sequence);
    ASSERT_INT(-1, copy.exit_code);
    ASSERT_CSTR("exec1", copy.subject);
    ASSERT_CSTR("EXEC_RUN_FAILED", copy.error_code);
    ASSERT_CSTR("gone", copy.error_message);
    ASSERT_NULL(copy.reason);
    agx_event_done(&copy);
}

TEST(event_subscription_from_the_future_is_out_of_range)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_OK(agx_event_check_from("box1", 5, 0, NULL));
    ASSERT_OK(agx_event_check_from("box1", 5, 5, NULL));
    ASSERT_CODE(AGX_OUT_OF_RANGE, agx_event_check_from("box1", 5, 6, &err));
    ASSERT_CSTR("sandbox box1 event sequence 6 is outside retained history", err->message);
}

TEST(reason_has_code_name_key_and_message_of_the_contract)
{
    static const struct {
        enum agx_reason reason;
        enum agx_code code;
        const char *name, *key, *message;
    } want[] = {
        { AGX_REASON_SANDBOX_NOT_FOUND, AGX_NOT_FOUND, "SANDBOX_NOT_FOUND", "sandbox_id",
          "sandbox x1 was not found" },
        { AGX_REASON_SANDBOX_ID_ALREADY_EXISTS, AGX_ALREADY_EXISTS, "SANDBOX_ID_ALREADY_EXISTS",
          "sandbox_id", "sandbox_id x1 already exists" },
        { AGX_REASON_SANDBOX_NOT_READY, AGX_FAILED_PRECONDITION, "SANDBOX_NOT_READY", "sandbox_id",
          "sandbox x1 is not ready" },
        { AGX_REASON_SANDBOX_NOT_STARTED, AGX_FAILED_PRECONDITION, "SANDBOX_INVALID_STATE",
          "sandbox_id", "sandbox x1 is not ready" },
        { AGX_REASON_SANDBOX_NOT_STOPPED, AGX_FAILED_PRECONDITION, "SANDBOX_INVALID_STATE",
          "sandbox_id", "sandbox x1 is not stopped" },
        { AGX_REASON_EXEC_NOT_FOUND, AGX_NOT_FOUND, "EXEC_NOT_FOUND", "exec_id",
          "exec x1 was not found" },
        { AGX_REASON_EXEC_ID_ALREADY_EXISTS, AGX_ALREADY_EXISTS, "EXEC_ID_ALREADY_EXISTS",
          "exec_id", "exec_id x1 already exists" },
        { AGX_REASON_EXEC_ALREADY_TERMINAL, AGX_FAILED_PRECONDITION, "EXEC_ALREADY_TERMINAL",
          "exec_id", "exec x1 is already terminal" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(want); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;

        ASSERT_CODE(want[i].code, agx_reason_error(want[i].reason, "x1", &err));
        ASSERT_CSTR(want[i].message, err->message);
        ASSERT_CSTR(want[i].name, agx_reason_name(want[i].reason));
        ASSERT_CSTR(want[i].key, agx_reason_id_key(want[i].reason));
    }
    ASSERT_CSTR("SANDBOX_EVENT_SEQUENCE_EXPIRED", agx_reason_name(AGX_REASON_SEQUENCE_EXPIRED));
    ASSERT_NULL(agx_reason_name(AGX_REASON_NONE));
    ASSERT_NULL(agx_reason_id_key(AGX_REASON_NONE));
}

TEST(stamp_age_follows_the_monotonic_clock_within_a_boot)
{
    struct agx_stamp then = { .wall_ns = 1000, .mono_ns = 100, .boot = 1 };
    struct agx_stamp now = { .wall_ns = -50000, .mono_ns = 130, .boot = 1 };

    ASSERT_UINT(30, agx_stamp_age_ns(&then, &now));
    ASSERT_UINT(0, agx_stamp_age_ns(&now, &then));
    now.boot = 2;
    ASSERT_UINT(0, agx_stamp_age_ns(&then, &now)); /* a wall clock set back: not negative */
    now.wall_ns = 1700;
    ASSERT_UINT(700, agx_stamp_age_ns(&then, &now));
}

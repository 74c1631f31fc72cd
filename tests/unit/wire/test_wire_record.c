#include "tests/support/wire.h"
#include "wire/record.h"

static void same_stamp(const struct agx_stamp *a, const struct agx_stamp *b)
{
    ASSERT_INT(a->wall_ns, b->wall_ns);
    ASSERT_UINT(a->mono_ns, b->mono_ns);
    ASSERT_UINT(a->boot, b->boot);
}

TEST(sandbox_record_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf fixed = AGX_BUF_INIT(WIRE_OUT_MAX), life = AGX_BUF_INIT(1000);
    struct agx_sandbox sb = { 0 }, back;

    ASSERT_OK(wire_sandbox(&sb));
    sb.life.running = AGX_DO_HALT;
    sb.life.active_execs = 3;
    ASSERT_OK(agx_sandbox_record_encode(&fixed, &sb));
    ASSERT_OK(agx_life_record_encode(&life, &sb.life));
    ASSERT_OK(agx_sandbox_record_decode(&back, agx_buf_peek(&fixed), NULL));
    ASSERT_INT(AGX_PHASE_ABSENT, back.life.phase);
    ASSERT_OK(agx_life_record_decode(&back, agx_buf_peek(&life), NULL));
    ASSERT_CSTR("box-1", back.id);
    ASSERT_UINT(1000, back.owner_uid);
    same_stamp(&sb.created, &back.created);
    wire_same_spec(&sb.spec, &back.spec);
    ASSERT_UINT(2, back.warnings.len);
    ASSERT_TRUE(agx_words_eq(&sb.warnings, &back.warnings));
    ASSERT_INT(AGX_PHASE_FAILED, back.life.phase);
    ASSERT_INT(AGX_DO_HALT, back.life.op);
    ASSERT_INT(AGX_DO_NONE, back.life.running);
    ASSERT_UINT(0, back.life.active_execs);
    ASSERT_TRUE(back.life.prepared);
    ASSERT_INT(AGX_CAUSE_IDLE_TTL, back.life.cause);
    ASSERT_UINT(12, back.life.last_sequence);
    same_stamp(&sb.life.changed, &back.life.changed);
    same_stamp(&sb.life.idle_from, &back.life.idle_from);
    ASSERT_CSTR(AGX_FAILED_OOM, back.life.error_code);
    ASSERT_CSTR("main process: out of memory", back.life.error_message);
    ASSERT_UINT(2, back.life.companions_len);
    ASSERT_INT(AGX_COMPANION_FAILED, back.life.companions[0]);
    ASSERT_INT(AGX_COMPANION_READY, back.life.companions[1]);
    agx_sandbox_done(&sb);
    agx_sandbox_done(&back);
}

TEST(exec_record_comes_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_exec e = { 0 }, back;

    ASSERT_OK(wire_exec(&e));
    e.running = AGX_EXEC_DO_KILL;
    ASSERT_OK(agx_exec_record_encode(&out, &e));
    ASSERT_OK(agx_exec_record_decode(&back, agx_buf_peek(&out), NULL));
    wire_same_exec(&e, &back);
    ASSERT_INT(e.phase, back.phase);
    ASSERT_INT(AGX_EXEC_DO_NONE, back.running);
    same_stamp(&e.created, &back.created);
    agx_exec_done(&e);
    agx_exec_done(&back);
}

TEST(event_record_comes_back_the_same)
{
    for (int type = 1; type < AGX_EVENT_COUNT; type++) {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_event_record record = { .position = UINT64_MAX, .sandbox_id = (char *)"box-1" };
        struct agx_event_record back;

        ASSERT_OK(wire_event(&record.event, type));
        ASSERT_OK(agx_event_record_encode(&out, &record));
        ASSERT_OK(agx_event_record_decode(&back, agx_buf_peek(&out), NULL));
        ASSERT_UINT(UINT64_MAX, back.position);
        ASSERT_CSTR("box-1", back.sandbox_id);
        wire_same_event(&record.event, &back.event);
        agx_event_done(&record.event);
        agx_event_record_done(&back);
    }
}

TEST(damaged_records_are_data_loss)
{
    static const struct agx_str bad[] = {
        { "", 0 },                 /* nothing at all */
        { "\x0a\x09x", 3 },        /* cut off */
        { "\x0a\x01\xff", 3 },     /* an id that is no text */
        { "\x0a\x02\x61\x00", 4 }, /* an id with a NUL */
        { "\x08\x01", 2 },         /* a number in its place */
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_event_record event;
        struct agx_sandbox sb;
        struct agx_exec e;

        ASSERT_CODE(AGX_DATA_LOSS, agx_sandbox_record_decode(&sb, bad[i], &err));
        ASSERT_NOT_NULL(err);
        ASSERT_CODE(AGX_DATA_LOSS, agx_exec_record_decode(&e, bad[i], NULL));
        ASSERT_CODE(AGX_DATA_LOSS, agx_event_record_decode(&event, bad[i], NULL));
    }
}

TEST(life_record_that_does_not_fit_is_data_loss_and_changes_nothing)
{
    static const struct agx_str bad[] = {
        { "\x52\x01\x01", 3 },                 /* one companion, where the spec has two */
        { "\x52\x02\x01\x03", 4 },             /* a state that none has */
        { "\x08\x0a\x52\x02\x01\x01", 6 },     /* a phase that there is not */
        { "\x10\x07\x52\x02\x01\x01", 6 },     /* an operation */
        { "\x18\x05\x52\x02\x01\x01", 6 },     /* a cause */
        { "\x42\x01\xff\x52\x02\x01\x01", 7 }, /* an error code that is no text */
    };
    struct agx_sandbox sb = { 0 };

    ASSERT_OK(wire_sandbox(&sb));
    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        ASSERT_CODE(AGX_DATA_LOSS, agx_life_record_decode(&sb, bad[i], NULL));
        ASSERT_INT(AGX_PHASE_FAILED, sb.life.phase);
        ASSERT_CSTR(AGX_FAILED_OOM, sb.life.error_code);
        ASSERT_UINT(2, sb.life.companions_len);
    }
    ASSERT_OK(agx_life_record_decode(&sb, AGX_STR("\x08\x03\x52\x02\x01\x02"), NULL));
    ASSERT_INT(AGX_PHASE_READY, sb.life.phase);
    ASSERT_NULL(sb.life.error_code);
    agx_sandbox_done(&sb);
}

TEST(records_of_a_newer_program_are_read_without_what_is_new)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_exec e = { 0 }, back;

    ASSERT_OK(wire_exec(&e));
    ASSERT_OK(agx_exec_record_encode(&out, &e));
    ASSERT_OK(agx_buf_append(&out, AGX_STR("\xba\x3e\x03new"))); /* field 999 */
    ASSERT_OK(agx_exec_record_decode(&back, agx_buf_peek(&out), NULL));
    wire_same_exec(&e, &back);
    agx_exec_done(&e);
    agx_exec_done(&back);
}

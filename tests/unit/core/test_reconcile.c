#include "core/reconcile.h"
#include "tests/support/test.h"

TEST(reconcile_start_has_an_answer_for_every_phase_and_sight)
{
    /* unknown missing exited oom paused running; k: keep, c: carry on, a: adopt, v: revive, f:
     * fail, h: halt, x: remove, w: wait */
    static const char letters[] = "?kcavfhxw";
    static const char *const golden[AGX_PHASE_COUNT] = {
        [AGX_PHASE_ABSENT] = "kkxxxx",   [AGX_PHASE_CREATING] = "cccccc",
        [AGX_PHASE_RESUMING] = "cccccc", [AGX_PHASE_READY] = "wfvvaa",
        [AGX_PHASE_STOPPING] = "cccccc", [AGX_PHASE_STOPPED] = "wfkkhh",
        [AGX_PHASE_FAILED] = "kkkkhh",   [AGX_PHASE_DELETING] = "cccccc",
        [AGX_PHASE_DELETED] = "kkxxxx",  [AGX_PHASE_PURGED] = "kkxxxx",
    };

    for (int phase = 0; phase < AGX_PHASE_COUNT; phase++) {
        for (int seen = 0; seen < AGX_SEEN_COUNT; seen++) {
            struct agx_recovery_plan p =
                agx_reconcile_start((enum agx_phase)phase, (enum agx_seen)seen, false);

            if (letters[p.action] != golden[phase][seen])
                FAIL("%s, seen %d: '%c', expected '%c'", agx_phase_name((enum agx_phase)phase),
                     seen, letters[p.action], golden[phase][seen]);
            ASSERT_INT(p.action == AGX_RECOVERY_FAIL, p.error_code != NULL);
            ASSERT_INT(p.action == AGX_RECOVERY_FAIL, p.error_message != NULL);
        }
    }
}

TEST(reconcile_start_removes_what_remains_without_a_main_process)
{
    static const enum agx_phase removed[] = { AGX_PHASE_ABSENT, AGX_PHASE_DELETED,
                                              AGX_PHASE_PURGED };

    for (size_t i = 0; i < AGX_ARRAY_LEN(removed); i++)
        ASSERT_INT(AGX_RECOVERY_REMOVE,
                   agx_reconcile_start(removed[i], AGX_SEEN_MISSING, true).action);
    ASSERT_INT(AGX_RECOVERY_FAIL,
               agx_reconcile_start(AGX_PHASE_READY, AGX_SEEN_MISSING, true).action);
    ASSERT_INT(AGX_RECOVERY_KEEP,
               agx_reconcile_start(AGX_PHASE_FAILED, AGX_SEEN_MISSING, true).action);
}

TEST(reconcile_start_says_what_is_missing)
{
    ASSERT_CSTR("primary container not running after daemon restart",
                agx_reconcile_start(AGX_PHASE_READY, AGX_SEEN_MISSING, false).error_message);
    ASSERT_CSTR("primary container missing after daemon restart",
                agx_reconcile_start(AGX_PHASE_STOPPED, AGX_SEEN_MISSING, false).error_message);
    ASSERT_CSTR("CONTAINER_NOT_RUNNING",
                agx_reconcile_start(AGX_PHASE_STOPPED, AGX_SEEN_MISSING, false).error_code);
}

static const struct agx_watch_config defaults = AGX_WATCH_CONFIG_INIT;

static struct agx_watch_verdict look(struct agx_watch *w, enum agx_seen seen, uint64_t now_ms)
{
    return agx_watch_look(w, &defaults, seen, true, now_ms);
}

TEST(watch_missing_fails_at_once)
{
    struct agx_watch w = { 0 };
    struct agx_watch_verdict v = look(&w, AGX_SEEN_MISSING, 5);

    ASSERT_INT(AGX_WATCH_FAIL, v.action);
    ASSERT_CSTR("CONTAINER_NOT_RUNNING", v.error_code);
    ASSERT_CSTR("primary container not running (detected during reconciliation)", v.error_message);
    v = agx_watch_look(&w, &defaults, AGX_SEEN_MISSING, false, 5);
    ASSERT_CSTR("companion container not running (detected during reconciliation)",
                v.error_message);
}

TEST(watch_exit_is_started_again_with_growing_pauses)
{
    struct agx_watch w = { 0 };
    uint64_t now = 1000, pause = 100;

    for (int i = 0; i < 6; i++, pause *= 2) {
        struct agx_watch_verdict v = look(&w, AGX_SEEN_EXITED, now);

        ASSERT_INT(AGX_WATCH_WAIT, v.action);
        ASSERT_UINT(now + pause, v.at_ms);
        ASSERT_INT(AGX_WATCH_WAIT, look(&w, AGX_SEEN_EXITED, v.at_ms - 1).action);
        now = v.at_ms;
        ASSERT_INT(AGX_WATCH_REVIVE, look(&w, AGX_SEEN_EXITED, now).action);
    }
}

TEST(watch_down_for_more_than_the_window_is_a_crash_loop)
{
    struct agx_watch w = { 0 };

    (void)look(&w, AGX_SEEN_EXITED, 10);
    ASSERT_TRUE(look(&w, AGX_SEEN_EXITED, 10 + 300000).action != AGX_WATCH_FAIL);
    ASSERT_CSTR("CONTAINER_CRASHLOOP", look(&w, AGX_SEEN_EXITED, 11 + 300000).error_code);
    ASSERT_CSTR("primary container exited", look(&w, AGX_SEEN_EXITED, 11 + 300000).error_message);
    ASSERT_CSTR("CONTAINER_OOM", look(&w, AGX_SEEN_OOM, 11 + 300000).error_code);
    ASSERT_CSTR("primary container OOM killed", look(&w, AGX_SEEN_OOM, 11 + 300000).error_message);
}

TEST(watch_short_runs_keep_the_window_and_a_stable_one_ends_it)
{
    struct agx_watch w = { 0 };
    uint64_t now = 0;

    /* Dies after 29 s each time: a crash loop after five minutes. */
    for (; now <= 300000; now += 29000) {
        ASSERT_TRUE(look(&w, AGX_SEEN_EXITED, now).action != AGX_WATCH_FAIL);
        ASSERT_INT(AGX_WATCH_NONE, look(&w, AGX_SEEN_RUNNING, now).action);
    }
    ASSERT_INT(AGX_WATCH_FAIL, look(&w, AGX_SEEN_EXITED, now).action);
    ASSERT_INT(AGX_WATCH_NONE, look(&w, AGX_SEEN_RUNNING, now).action);
    (void)look(&w, AGX_SEEN_RUNNING, now + 30000);
    ASSERT_INT(AGX_WATCH_WAIT, look(&w, AGX_SEEN_EXITED, now + 30001).action);
    ASSERT_UINT(1, w.down);
    ASSERT_UINT(0, w.attempts);
}

TEST(watch_pause_forgets_and_silence_changes_nothing)
{
    struct agx_watch w = { 0 }, before;

    (void)look(&w, AGX_SEEN_EXITED, 7);
    before = w;
    ASSERT_INT(AGX_WATCH_NONE, look(&w, AGX_SEEN_UNKNOWN, 900000).action);
    ASSERT_UINT(before.down_ms, w.down_ms);
    ASSERT_TRUE(w.down);
    ASSERT_INT(AGX_WATCH_NONE, look(&w, AGX_SEEN_PAUSED, 900000).action);
    ASSERT_FALSE(w.down);
    ASSERT_FALSE(w.up);
}

TEST(backoff_doubles_up_to_its_maximum)
{
    ASSERT_UINT(100, agx_backoff_ms(0, 100, 30000));
    ASSERT_UINT(200, agx_backoff_ms(1, 100, 30000));
    ASSERT_UINT(25600, agx_backoff_ms(8, 100, 30000));
    ASSERT_UINT(30000, agx_backoff_ms(9, 100, 30000));
    ASSERT_UINT(30000, agx_backoff_ms(4000000000u, 100, 30000));
    ASSERT_UINT(UINT64_MAX, agx_backoff_ms(200, 3, UINT64_MAX));
    ASSERT_UINT(5, agx_backoff_ms(0, 100, 5));
    ASSERT_UINT(0, agx_backoff_ms(0, 0, 0));
}

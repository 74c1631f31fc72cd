#include "tests/support/wire.h"
#include "wire/reply.h"
#include "wire/stats.h"
#include "wire/view.h"

TEST(sandbox_reply_shows_the_sandbox)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_sandbox sb = { 0 };
    struct agx_sandbox_view v;
    bool timed_out = true;

    ASSERT_OK(wire_sandbox(&sb));
    ASSERT_OK(agx_reply_sandbox(&out, &sb, true));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&out), &timed_out, NULL));
    ASSERT_FALSE(timed_out);
    ASSERT_CSTR("box-1", v.id);
    ASSERT_INT(AGX_STATE_FAILED, v.state);
    ASSERT_UINT(12, v.last_sequence);
    ASSERT_INT(1700000000123456789, v.created_at_ns);
    ASSERT_INT(1700000001000000000, v.changed_at_ns);
    ASSERT_CSTR("debian:12", v.spec.image);
    ASSERT_TRUE(test_pairs_eq(&sb.spec.labels, &v.spec.labels));
    ASSERT_UINT(2, v.spec.companions_len);
    wire_same_companion(&sb.spec.companions[0], &v.spec.companions[0]);
    wire_same_companion(&sb.spec.companions[1], &v.spec.companions[1]);
    ASSERT_CSTR(AGX_FAILED_OOM, v.error_code);
    ASSERT_CSTR("main process: out of memory", v.error_message);
    ASSERT_UINT(2, v.warnings.len);
    ASSERT_TRUE(agx_words_eq(&sb.warnings, &v.warnings));
    agx_sandbox_view_done(&v);
    agx_sandbox_done(&sb);
}

static bool contains(const struct agx_buf *b, const char *word)
{
    return memmem(b->data, b->len, word, strlen(word));
}

TEST(sandbox_reply_tells_environments_of_companions_only_when_asked)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_sandbox sb = { 0 };

    ASSERT_OK(wire_sandbox(&sb));
    ASSERT_OK(agx_reply_sandbox(&out, &sb, false));
    ASSERT_TRUE(contains(&out, "postgres:16"));
    ASSERT_FALSE(contains(&out, "secret"));
    ASSERT_FALSE(contains(&out, "environment"));
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_sandbox(&out, &sb, true));
    ASSERT_TRUE(contains(&out, "secret"));
    ASSERT_FALSE(contains(&out, "environment")); /* the sandbox's own, never */
    agx_sandbox_done(&sb);
}

TEST(replies_one_behind_the_other_are_a_list)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_sandbox sb = { 0 };
    struct agx_sandbox_views v;

    ASSERT_OK(agx_sandbox_views_decode(&v, AGX_STR(""), NULL));
    ASSERT_UINT(0, v.len);
    ASSERT_NULL(v.next_page_token);
    ASSERT_OK(wire_sandbox(&sb));
    for (int i = 0; i < 100; i++) {
        sb.life.last_sequence = (uint64_t)i;
        ASSERT_OK(agx_reply_sandbox(&out, &sb, i % 2));
    }
    ASSERT_OK(agx_reply_page_token(&out, "next"));
    ASSERT_OK(agx_sandbox_views_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_UINT(100, v.len);
    for (uint64_t i = 0; i < v.len; i++)
        ASSERT_UINT(i, v.items[i].last_sequence);
    ASSERT_CSTR("next", v.next_page_token);
    agx_sandbox_views_done(&v);
    agx_sandbox_done(&sb);
}

TEST(a_wait_that_timed_out_says_so)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_sandbox sb = { 0 };
    struct agx_sandbox_view v;
    bool timed_out = false;

    ASSERT_OK(wire_sandbox(&sb));
    ASSERT_OK(agx_reply_sandbox(&out, &sb, false));
    ASSERT_OK(agx_reply_timed_out(&out));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&out), &timed_out, NULL));
    ASSERT_TRUE(timed_out);
    agx_sandbox_view_done(&v);
    agx_sandbox_done(&sb);
}

TEST(exec_reply_shows_the_exec)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_exec e = { 0 };
    struct agx_exec_view v;
    struct agx_exec_views list;

    ASSERT_OK(wire_exec(&e));
    ASSERT_OK(agx_reply_exec(&out, &e, 44, true));
    ASSERT_OK(agx_exec_view_decode(&v, agx_buf_peek(&out), NULL, NULL));
    wire_same_exec(&e, &v.exec);
    ASSERT_UINT(44, v.last_sequence);
    ASSERT_OK(agx_reply_exec(&out, &e, 45, false));
    ASSERT_OK(agx_exec_views_decode(&list, agx_buf_peek(&out), NULL));
    ASSERT_UINT(2, list.len);
    ASSERT_UINT(45, list.items[1].last_sequence);
    ASSERT_UINT(3, list.items[0].exec.env_overrides.len);
    ASSERT_UINT(0, list.items[1].exec.env_overrides.len);
    agx_exec_views_done(&list);
    agx_exec_view_done(&v);
    agx_exec_done(&e);
}

TEST(exec_without_deadline_shows_none)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_exec e = { .id = (char *)"exec-1", .sandbox_id = (char *)"box-1" };
    struct agx_exec_view v;

    ASSERT_OK(agx_reply_exec(&out, &e, 1, true));
    ASSERT_OK(agx_exec_view_decode(&v, agx_buf_peek(&out), NULL, NULL));
    ASSERT_INT(0, v.exec.deadline_ns);
    agx_exec_view_done(&v);
}

TEST(event_reply_shows_the_event_of_every_type)
{
    for (int type = 1; type < AGX_EVENT_COUNT; type++) {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
        struct agx_event e = { 0 };
        struct agx_event_view v;

        ASSERT_OK(wire_event(&e, type));
        ASSERT_OK(agx_reply_event(&out, &e, "box-1", type % 2));
        ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&out), NULL));
        ASSERT_CSTR("box-1-5", v.event_id);
        ASSERT_CSTR("box-1", v.sandbox_id);
        ASSERT_TRUE(v.replay);
        ASSERT_INT(type % 2, v.snapshot);
        wire_same_event(&e, &v.event);
        agx_event_view_done(&v);
        agx_event_done(&e);
    }
}

TEST(event_of_the_epoch_has_its_time)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_event e = { .sequence = 1, .type = AGX_EVENT_SANDBOX_READY };

    ASSERT_OK(agx_reply_event(&out, &e, "b", false));
    /* field 5, occurred_at, is there though it is empty */
    ASSERT_TRUE(memmem(out.data, out.len, "\x2a\x00", 2));
}

TEST(snapshot_of_an_exec_has_its_own_event_id)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_event_view v;
    struct agx_event e;

    ASSERT_OK(agx_event_snapshot_exec(&e, "exec-1", 9, AGX_STATE_READY, 1, NULL));
    ASSERT_OK(agx_reply_event(&out, &e, "box-1", true));
    ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("box-1-snapshot-exec-1", v.event_id);
    ASSERT_UINT(9, v.event.sequence);
    ASSERT_INT(AGX_STATE_READY, v.event.state);
    agx_event_view_done(&v);
    agx_event_done(&e);
}

TEST(watch_reply_has_a_position_and_maybe_an_event)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_event e = { 0 };
    struct agx_event_view v;
    uint64_t position = 0;

    ASSERT_OK(agx_reply_watch(&out, 7, NULL, NULL));
    ASSERT_INT(0, agx_watch_view_decode(&v, &position, agx_buf_peek(&out), NULL));
    ASSERT_UINT(7, position);
    ASSERT_NULL(v.sandbox_id);
    agx_buf_clear(&out);
    ASSERT_OK(wire_event(&e, AGX_EVENT_EXEC_FAILED));
    ASSERT_OK(agx_reply_watch(&out, UINT64_MAX, &e, "box-1"));
    ASSERT_INT(1, agx_watch_view_decode(&v, &position, agx_buf_peek(&out), NULL));
    ASSERT_UINT(UINT64_MAX, position);
    wire_same_event(&e, &v.event);
    agx_event_view_done(&v);
    agx_event_done(&e);
}

TEST(watch_reply_may_have_a_pull_instead_of_an_event)
{
    const struct agx_pull pull = { "redis:7", 2, 5, 1000, UINT64_MAX };
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_event_view event;
    struct agx_pull_view v;
    uint64_t position = 0;

    ASSERT_OK(agx_reply_pull(&out, 7, "box-1", &pull));
    ASSERT_INT(0, agx_watch_view_decode(&event, &position, agx_buf_peek(&out), NULL));
    ASSERT_UINT(7, position);
    ASSERT_INT(1, agx_pull_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("box-1", v.sandbox_id);
    ASSERT_CSTR("redis:7", v.pull.image);
    ASSERT_UINT(2, v.pull.layers_done);
    ASSERT_UINT(5, v.pull.layers_total);
    ASSERT_UINT(1000, v.pull.bytes_done);
    ASSERT_UINT(UINT64_MAX, v.pull.bytes_total);
    agx_pull_view_done(&v);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_watch(&out, 7, NULL, NULL));
    ASSERT_INT(0, agx_pull_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_NULL(v.image);
    ASSERT_CODE(AGX_INTERNAL, agx_pull_view_decode(&v, AGX_STR("\xff"), NULL));
    agx_pull_view_done(NULL);
}

TEST(small_replies_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX);
    struct agx_ping_view ping;
    struct agx_exec_created_view created;
    struct agx_words ids = { 0 };

    ASSERT_OK(agx_reply_ping(&out, "1.2.3", "agentixd"));
    ASSERT_OK(agx_ping_view_decode(&ping, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("1.2.3", ping.version);
    ASSERT_CSTR("agentixd", ping.daemon);
    agx_ping_view_done(&ping);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_exec_created(&out, "exec-1", "/o", "/e"));
    ASSERT_OK(agx_exec_created_view_decode(&created, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("exec-1", created.exec_id);
    ASSERT_CSTR("/o", created.stdout_path);
    ASSERT_CSTR("/e", created.stderr_path);
    agx_exec_created_view_done(&created);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_deleted_id(&out, "box-1"));
    ASSERT_OK(agx_reply_deleted_id(&out, "box-2"));
    ASSERT_OK(agx_reply_deleted_count(&out, 2));
    ASSERT_OK(agx_deleted_view_decode(&ids, agx_buf_peek(&out), NULL));
    ASSERT_UINT(2, ids.len);
    ASSERT_CSTR("box-2", ids.items[1]);
    agx_words_done(&ids);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_accepted(&out));
    ASSERT_STR(AGX_STR("\x08\x01"), agx_buf_peek(&out));
}

TEST(streams_of_bytes_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX), copy = AGX_BUF_INIT(16);
    struct agx_output_view v;

    ASSERT_OK(agx_reply_output(&out, 100, AGX_STR("a\0b"), 50));
    ASSERT_OK(agx_output_view_decode(&v, agx_buf_peek(&out), NULL));
    ASSERT_UINT(100, v.offset);
    ASSERT_UINT(50, v.skipped);
    ASSERT_STR(AGX_STR("a\0b"), agx_buf_peek(&v.data));
    agx_output_view_done(&v);
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_input(&out, 1234567890123));
    ASSERT_STR(AGX_STR("\x08\xcb\x89\xec\x8f\xf7\x23"), agx_buf_peek(&out)); /* bytes_written */
    agx_buf_clear(&out);
    ASSERT_OK(agx_reply_backup(&out, AGX_STR("page")));
    ASSERT_OK(agx_backup_view_decode(agx_buf_peek(&out), &copy, NULL));
    ASSERT_OK(agx_backup_view_decode(agx_buf_peek(&out), &copy, NULL));
    ASSERT_STR(AGX_STR("pagepage"), agx_buf_peek(&copy));
}

TEST(stats_come_back_the_same)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(WIRE_OUT_MAX), again = AGX_BUF_INIT(1000);
    struct agx_stats s = { .version = (char *)"1", .backend = (char *)"fake" }, back;

    s.uptime_ns = 61000000001;
    s.pid = 4711;
    s.rss_bytes = 5 << 20;
    s.sandboxes[AGX_STATE_READY] = 10;
    s.sandboxes[AGX_STATE_DELETED] = 3;
    s.active_execs = 2;
    s.subscribers = 10000;
    s.longest_turn_ns = 999;
    s.rpc.connections = 1;
    s.rpc.calls = 2;
    s.rpc.bytes = 3;
    s.rpc.calls_started = 4;
    s.rpc.connections_calmed = 5;
    s.store.commits = 6;
    s.store.batches = 7;
    s.store.refused = 8;
    s.store.failed = 9;
    s.store.bytes = 10;
    s.store.group_max = 11;
    s.store.map_bytes = 12;
    s.store.file_bytes = 13;
    s.store.map_growths = 14;
    ASSERT_OK(agx_stats_encode(&out, &s));
    ASSERT_OK(agx_stats_decode(&back, agx_buf_peek(&out), NULL));
    ASSERT_CSTR("1", back.version);
    ASSERT_CSTR("fake", back.backend);
    ASSERT_UINT(3, back.sandboxes[AGX_STATE_DELETED]);
    ASSERT_UINT(0, back.sandboxes[AGX_STATE_PENDING]);
    ASSERT_UINT(61000000001, back.uptime_ns);
    ASSERT_UINT(14, back.store.map_growths);
    ASSERT_OK(agx_stats_encode(&again, &back));
    ASSERT_STR(agx_buf_peek(&out), agx_buf_peek(&again));
    agx_stats_done(&back);
}

TEST(answers_that_are_none_are_the_servers_fault)
{
    static const struct agx_str bad = { "\x0a\x09x", 3 };
    struct agx_sandbox_view sandbox;
    struct agx_sandbox_views sandboxes;
    struct agx_exec_view exec;
    struct agx_exec_views execs;
    struct agx_event_view event;
    struct agx_ping_view ping;
    struct agx_stats stats;
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;

    ASSERT_CODE(AGX_INTERNAL, agx_sandbox_view_decode(&sandbox, bad, NULL, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_sandbox_view_decode(&sandbox, AGX_STR(""), NULL, &err));
    ASSERT_MESSAGE(err, "sandbox is missing in the answer");
    ASSERT_CODE(AGX_INTERNAL, agx_sandbox_views_decode(&sandboxes, bad, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_exec_view_decode(&exec, bad, NULL, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_exec_view_decode(&exec, AGX_STR(""), NULL, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_exec_views_decode(&execs, bad, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_event_view_decode(&event, bad, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_ping_view_decode(&ping, bad, NULL));
    ASSERT_CODE(AGX_INTERNAL, agx_stats_decode(&stats, bad, NULL));
    ASSERT_UINT(0, sandboxes.len);
    ASSERT_UINT(0, execs.len);
}

TEST(a_time_that_no_clock_has_is_the_servers_fault)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_sandbox_view v;

    /* sandbox { created_at { nanos: 10^9 } } */
    ASSERT_CODE(AGX_INTERNAL,
                agx_sandbox_view_decode(&v, AGX_STR("\x0a\x08\x32\x06\x10\x80\x94\xeb\xdc\x03"),
                                        NULL, &err));
    ASSERT_MESSAGE(err, "created_at");
}

TEST(numbers_of_a_newer_server_are_none_of_ours)
{
    struct agx_sandbox_view v;
    struct agx_event_view e;

    ASSERT_OK(agx_sandbox_view_decode(&v, AGX_STR("\x0a\x02\x10\x63"), NULL, NULL));
    ASSERT_INT(AGX_STATE_NONE, v.state);
    agx_sandbox_view_done(&v);
    ASSERT_OK(agx_event_view_decode(&e, AGX_STR("\x20\x63\x40\x63"), NULL));
    ASSERT_INT(AGX_EVENT_NONE, e.event.type);
    ASSERT_INT(AGX_STATE_NONE, e.event.state);
    agx_event_view_done(&e);
}

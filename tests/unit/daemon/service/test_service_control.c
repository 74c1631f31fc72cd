/* agentix.v1.ControlService: waits, figures, backup. */
#include "tests/support/service.h"

#include "store/store_mem.h"
#include "tests/support/store.h"
#include "wire/control_request.h"
#include "wire/stats.h"
#include "wire/view.h"

#include <stdio.h>

#include "base/banned.h"

/* Waits. */

static void put_wait(struct service_fixture *f, const char *id, uint32_t states, uint64_t after,
                     int64_t timeout_ns)
{
    const struct agx_wait_request q = {
        .id = (char *)id, .states = states, .after_sequence = after, .timeout_ns = timeout_ns
    };

    ASSERT_OK(agx_wait_sandbox_encode(&f->message, &q));
}

static void put_wait_exec(struct service_fixture *f, const char *id, int64_t timeout_ns)
{
    const struct agx_wait_request q = { .id = (char *)id, .timeout_ns = timeout_ns };

    ASSERT_OK(agx_wait_exec_encode(&f->message, &q));
}

/* The call was answered with a sandbox in this state. */
static void answered(struct service_fixture *f, struct rpc_request *q, enum agx_state state,
                     bool timed_out)
{
    struct agx_sandbox_view v;
    bool was_timed_out;

    service_until_closed(f, q);
    ASSERT_CSTR("0", q->grpc_status);
    ASSERT_TRUE(rpc_read(q, &f->reply));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&f->reply), &was_timed_out, NULL));
    ASSERT_INT(state, v.state);
    ASSERT_INT(timed_out, was_timed_out);
    agx_sandbox_view_done(&v);
    rpc_request_done(q);
}

TEST(wait_for_a_sandbox_ends_when_it_is_in_a_lasting_state)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    ASSERT_FALSE(q.closed);
    stub_move(f.manager, "box-a", AGX_ON_DONE, AGX_DO_CREATE);
    answered(&f, &q, AGX_STATE_READY, false);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    answered(&f, &q, AGX_STATE_READY, false); /* at once */
    stub_move(f.manager, "box-a", AGX_ON_STOP, AGX_DO_NONE);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    ASSERT_FALSE(q.closed); /* it is READY, but being stopped */
    stub_move(f.manager, "box-a", AGX_ON_DONE, AGX_DO_STOP);
    answered(&f, &q, AGX_STATE_STOPPED, false);
    service_teardown(&f);
}

TEST(wait_after_a_sequence_needs_an_event_behind_it)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 1U << AGX_STATE_READY, 2, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    ASSERT_FALSE(q.closed);
    stub_exec_add(f.manager, "box-a", "exec-1"); /* says nothing of the state, which is right */
    answered(&f, &q, AGX_STATE_READY, false);
    service_teardown(&f);
}

TEST(wait_for_a_state_that_passes_quickly_sees_it)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 1U << AGX_STATE_READY, 0, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    stub_move(f.manager, "box-a", AGX_ON_DONE, AGX_DO_CREATE);
    stub_move(f.manager, "box-a", AGX_ON_DELETE, AGX_DO_NONE);
    answered(&f, &q, AGX_STATE_DELETING, false);
    service_teardown(&f);
}

TEST(wait_whose_time_is_up_says_so)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 0, 0, 1000000);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    answered(&f, &q, AGX_STATE_PENDING, true);
    put_wait(&f, "box-a", 0, 0, 0);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    answered(&f, &q, AGX_STATE_PENDING, true);
    service_teardown(&f);
}

TEST(wait_for_what_is_unknown_or_forgotten_is_not_found)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    (void)service_call(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_refused(&q, AGX_NOT_FOUND, "sandbox box-a was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "box-a");
    rpc_request_done(&q);
    stub_add(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    stub_purge(f.manager, "box-a");
    service_until_closed(&f, &q);
    service_refused(&q, AGX_NOT_FOUND, "sandbox box-a was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "box-a");
    rpc_request_done(&q);
    put_wait_exec(&f, "exec-1", AGX_NS_UNSET);
    (void)service_call(&f, &q, AGX_METHOD_WAIT_EXEC);
    service_refused(&q, AGX_NOT_FOUND, "exec exec-1 was not found", "EXEC_NOT_FOUND", "exec_id",
                    "exec-1");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(wait_whose_client_leaves_or_whose_server_stops_is_dropped)
{
    struct service_fixture f;
    struct rpc_request q, stopped;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    put_wait(&f, "box-a", 0, 0, INT64_C(3600000000000));
    service_start(&f, &q, AGX_METHOD_WAIT_SANDBOX);
    put_wait(&f, "box-a", 0, 0, AGX_NS_UNSET);
    service_start(&f, &stopped, AGX_METHOD_WAIT_SANDBOX);
    service_turns(&f, 5);
    service_cancel(&f, &q);
    rpc_stop(&f.rpc, 60000);
    service_until_closed(&f, &stopped);
    ASSERT_CSTR("14", stopped.grpc_status);
    rpc_request_done(&q);
    rpc_request_done(&stopped);
    service_teardown(&f);
}

static void exec_answered(struct service_fixture *f, struct rpc_request *q,
                          enum agx_exec_state state, int exit_code, bool timed_out)
{
    struct agx_exec_view v;
    bool was_timed_out;

    service_until_closed(f, q);
    ASSERT_CSTR("0", q->grpc_status);
    ASSERT_TRUE(rpc_read(q, &f->reply));
    ASSERT_OK(agx_exec_view_decode(&v, agx_buf_peek(&f->reply), &was_timed_out, NULL));
    ASSERT_INT(state, v.exec.state);
    ASSERT_INT(exit_code, v.exec.exit_code);
    ASSERT_INT(timed_out, was_timed_out);
    agx_exec_view_done(&v);
    rpc_request_done(q);
}

TEST(wait_for_an_exec_ends_with_it_and_not_with_another)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_exec_add(f.manager, "box-a", "exec-1");
    stub_exec_add(f.manager, "box-a", "exec-2");
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_BEGUN, 0);
    put_wait_exec(&f, "exec-1", 0);
    service_start(&f, &q, AGX_METHOD_WAIT_EXEC);
    exec_answered(&f, &q, AGX_EXEC_RUNNING, 0, true);
    put_wait_exec(&f, "exec-1", AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_EXEC);
    service_turns(&f, 3);
    stub_exec_move(f.manager, "exec-2", AGX_EXEC_ON_REFUSED, 0);
    service_turns(&f, 3);
    ASSERT_FALSE(q.closed);
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_EXITED, 3);
    exec_answered(&f, &q, AGX_EXEC_FAILED, 3, false);
    put_wait_exec(&f, "exec-1", AGX_NS_UNSET);
    service_start(&f, &q, AGX_METHOD_WAIT_EXEC);
    exec_answered(&f, &q, AGX_EXEC_FAILED, 3, false); /* at once */
    service_teardown(&f);
}

/* Figures and backup. */

TEST(stats_tell_what_there_is)
{
    struct service_fixture f;
    struct agx_stats stats;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    stub_add_ready(f.manager, "box-b", NULL);
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_GET_STATS));
    ASSERT_OK(agx_stats_decode(&stats, agx_buf_peek(&f.reply), NULL));
    ASSERT_CSTR("1.2.3", stats.version);
    ASSERT_CSTR("stub", stats.backend);
    ASSERT_UINT((uint32_t)getpid(), stats.pid);
    ASSERT_UINT(1, stats.sandboxes[AGX_STATE_PENDING]);
    ASSERT_UINT(1, stats.sandboxes[AGX_STATE_READY]);
    ASSERT_UINT(1, stats.rpc.connections);
    ASSERT_UINT(1, stats.rpc.calls);
    ASSERT_TRUE(stats.rss_bytes > 100000 && stats.uptime_ns > 0);
    agx_stats_done(&stats);
    rpc_request_done(&q);
    service_teardown(&f);
}

static size_t read_backup(struct service_fixture *f, struct rpc_request *q, struct agx_buf *out)
{
    while (service_next(f, q))
        ASSERT_OK(agx_backup_view_decode(agx_buf_peek(&f->reply), out, NULL));
    return out->len;
}

TEST(backup_streams_the_whole_copy)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT((size_t)8 << 20);
    struct agx_store_batch *b = agx_store_batch_new();
    struct service_fixture f;
    struct test_result stored;
    struct rpc_request q;
    char key[32];

    service_setup(&f, NULL);
    for (unsigned i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof(key), "key-%06u", i);
        agx_store_batch_put(b, TEST_SANDBOXES, agx_str_from(key), AGX_STR("v"));
    }
    test_store_submit(f.store, b, &stored);
    RPC_UNTIL(&f.rpc, stored.n == 1);
    service_start(&f, &q, AGX_METHOD_BACKUP);
    ASSERT_UINT(20000 * strlen("sandboxes key-000000\n"), read_backup(&f, &q, &out));
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    service_teardown(&f);
}

static void no_directory(struct agx_service_config *c)
{
    c->data_dir = "/nonexistent";
}

TEST(backup_without_a_place_for_its_file_fails)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, no_directory);
    (void)service_call(&f, &q, AGX_METHOD_BACKUP);
    ASSERT_NOT_NULL(strstr(q.grpc_message, "make a file for the backup in '/nonexistent'"));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(backup_is_made_one_at_a_time_and_ends_with_its_client)
{
    _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT((size_t)8 << 20);
    struct service_fixture f;
    struct rpc_request first, second;

    service_setup(&f, NULL);
    service_start(&f, &first, AGX_METHOD_BACKUP);
    service_start(&f, &second, AGX_METHOD_BACKUP); /* in one turn with the first */
    service_until_closed(&f, &second);
    service_refused(&second, AGX_FAILED_PRECONDITION, "another backup is being made", NULL, NULL,
                    NULL);
    rpc_request_done(&second);
    (void)read_backup(&f, &first, &out);
    ASSERT_CSTR("0", first.grpc_status);
    rpc_request_done(&first);
    service_start(&f, &first, AGX_METHOD_BACKUP);
    RPC_UNTIL(&f.rpc, first.n_headers == 1);
    service_cancel(&f, &first);
    rpc_request_done(&first);
    service_start(&f, &second, AGX_METHOD_BACKUP);
    (void)read_backup(&f, &second, &out);
    ASSERT_CSTR("0", second.grpc_status);
    rpc_request_done(&second);
    service_teardown(&f);
}

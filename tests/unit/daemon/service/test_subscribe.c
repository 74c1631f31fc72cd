/* Event streams of one sandbox and of all sandboxes. */
#include "tests/support/service.h"

#include "base/clock.h"
#include "wire/control_request.h"
#include "wire/view.h"

#include <stdio.h>

#include "base/banned.h"

static void put_subscribe(struct service_fixture *f, const char *id, uint64_t from, bool snapshot)
{
    const struct agx_subscribe_request q = { .sandbox_id = (char *)id,
                                             .from_sequence = from,
                                             .snapshot = snapshot };

    ASSERT_OK(agx_subscribe_request_encode(&f->message, &q));
}

static void subscribe(struct service_fixture *f, struct rpc_request *q, const char *id,
                      uint64_t from, bool snapshot)
{
    put_subscribe(f, id, from, snapshot);
    service_start(f, q, AGX_METHOD_SUBSCRIBE);
}

/* The next event is this one; *ret may be NULL. */
static void next_is(struct service_fixture *f, struct rpc_request *q, uint64_t sequence,
                    enum agx_event_type type, bool snapshot)
{
    struct agx_event_view v;

    ASSERT_TRUE(service_next(f, q));
    ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&f->reply), NULL));
    ASSERT_UINT(sequence, v.event.sequence);
    ASSERT_CSTR(agx_event_name(type), agx_event_name(v.event.type));
    ASSERT_TRUE(v.replay);
    ASSERT_INT(snapshot, v.snapshot);
    ASSERT_TRUE(v.event.occurred_at_ns > 0);
    agx_event_view_done(&v);
}

TEST(subscription_replays_and_then_follows_until_the_sandbox_is_forgotten)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    subscribe(&f, &q, "box-a", 0, false);
    next_is(&f, &q, 1, AGX_EVENT_SANDBOX_ACCEPTED, false);
    next_is(&f, &q, 2, AGX_EVENT_SANDBOX_READY, false);
    stub_move(f.manager, "box-a", AGX_ON_DELETE, AGX_DO_NONE);
    next_is(&f, &q, 3, AGX_EVENT_SANDBOX_DELETE_REQUESTED, false);
    stub_move(f.manager, "box-a", AGX_ON_DONE, AGX_DO_DELETE);
    next_is(&f, &q, 4, AGX_EVENT_SANDBOX_DELETED, false);
    service_turns(&f, 5);
    ASSERT_FALSE(q.closed); /* not the end */
    stub_purge(f.manager, "box-a");
    ASSERT_FALSE(service_next(&f, &q));
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    put_subscribe(&f, "box-a", 0, false);
    (void)service_call(&f, &q, AGX_METHOD_SUBSCRIBE);
    service_refused(&q, AGX_NOT_FOUND, "sandbox box-a was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "box-a");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(subscription_sends_headers_before_the_first_event)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    subscribe(&f, &q, "box-a", 2, false);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    ASSERT_CSTR("", q.grpc_status);
    ASSERT_UINT(0, q.data.len);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(subscription_after_a_sequence_that_does_not_exist_is_out_of_range)
{
    static const char message[] = "sandbox box-a event sequence 3 is outside retained history";
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    put_subscribe(&f, "box-a", 3, false);
    (void)service_call(&f, &q, AGX_METHOD_SUBSCRIBE);
    ASSERT_UINT(1, q.n_headers); /* trailers only */
    service_refused(&q, AGX_OUT_OF_RANGE, message, "SANDBOX_EVENT_SEQUENCE_EXPIRED", "sandbox_id",
                    "box-a");
    service_refused(&q, AGX_OUT_OF_RANGE, message, "SANDBOX_EVENT_SEQUENCE_EXPIRED",
                    "from_sequence", "3");
    rpc_request_done(&q);
    /* With a snapshot that comes first. */
    subscribe(&f, &q, "box-a", 3, true);
    next_is(&f, &q, 2, AGX_EVENT_SANDBOX_READY, true);
    ASSERT_FALSE(service_next(&f, &q));
    service_refused(&q, AGX_OUT_OF_RANGE, message, "SANDBOX_EVENT_SEQUENCE_EXPIRED", "sandbox_id",
                    "box-a");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(snapshot_has_the_newest_event_and_every_exec_that_runs)
{
    struct service_fixture f;
    struct agx_event_view v;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    stub_add_ready(f.manager, "box-b", NULL);
    stub_exec_add(f.manager, "box-a", "exec-1");
    stub_exec_add(f.manager, "box-a", "exec-2");
    stub_exec_add(f.manager, "box-b", "exec-3");
    stub_exec_move(f.manager, "exec-1", AGX_EXEC_ON_REFUSED, 0);
    subscribe(&f, &q, "box-a", 4, true);
    next_is(&f, &q, 5, AGX_EVENT_EXEC_FAILED, true);
    ASSERT_TRUE(service_next(&f, &q));
    ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_CSTR("box-a-snapshot-exec-2", v.event_id);
    ASSERT_UINT(5, v.event.sequence);
    ASSERT_INT(AGX_EVENT_EXEC_STARTED, v.event.type);
    ASSERT_INT(AGX_STATE_READY, v.event.state);
    ASSERT_CSTR("exec-2", v.event.subject);
    ASSERT_TRUE(v.snapshot && v.replay);
    agx_event_view_done(&v);
    next_is(&f, &q, 5, AGX_EVENT_EXEC_FAILED, false);
    rpc_request_done(&q);
    service_teardown(&f);
}

/* So many events that neither a page nor what a call may queue holds them. */
enum { LONG = 2000 };

static void make_history(struct service_fixture *f, const char *sandbox_id)
{
    char id[32];

    for (unsigned i = 0; i < LONG; i++) {
        (void)snprintf(id, sizeof(id), "%s-exec-%04u", sandbox_id, i);
        stub_exec_add(f->manager, sandbox_id, id);
    }
}

TEST(subscription_from_an_old_sequence_is_whole_and_lets_a_ping_through)
{
    struct service_fixture f;
    struct agx_str none = AGX_STR("");
    struct agx_event_view v;
    struct rpc_request q, p;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    make_history(&f, "box-a");
    subscribe(&f, &q, "box-a", 0, false);
    rpc_start(&f.rpc.client, &p, AGX_METHOD_PING, &none);
    service_until_closed(&f, &p);
    for (uint64_t i = 1; i <= LONG + 2; i++) {
        ASSERT_TRUE(service_next(&f, &q));
        ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&f.reply), NULL));
        ASSERT_UINT(i, v.event.sequence);
        agx_event_view_done(&v);
    }
    rpc_request_done(&q);
    rpc_request_done(&p);
    service_teardown(&f);
}

TEST(snapshot_that_is_larger_than_a_call_may_queue_comes_whole)
{
    struct service_fixture f;
    struct rpc_request q;
    unsigned n = 0;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    make_history(&f, "box-a");
    subscribe(&f, &q, "box-a", LONG + 3, true);
    while (service_next(&f, &q))
        n++;
    ASSERT_UINT(LONG + 1, n);
    ASSERT_CSTR("11", q.grpc_status); /* OUT_OF_RANGE, behind it */
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(slow_subscriber_holds_little_and_gets_everything_in_the_end)
{
    struct service_fixture f;
    struct agx_grpc_stats stats;
    struct agx_event_view v;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    subscribe(&f, &q, "box-a", 2, false);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    f.rpc.client.deaf = true;
    make_history(&f, "box-a");
    service_turns(&f, 500);
    agx_grpc_server_stats(f.rpc.server, &stats);
    ASSERT_TRUE(stats.bytes < (size_t)256 << 10);
    f.rpc.client.deaf = false;
    for (uint64_t i = 3; i <= LONG + 2; i++) {
        ASSERT_TRUE(service_next(&f, &q));
        ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&f.reply), NULL));
        ASSERT_UINT(i, v.event.sequence);
        agx_event_view_done(&v);
    }
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(subscription_ends_when_its_client_leaves_in_the_middle)
{
    struct service_fixture f;
    struct agx_manager_stats stats;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    make_history(&f, "box-a");
    subscribe(&f, &q, "box-a", 0, true);
    ASSERT_TRUE(service_next(&f, &q));
    service_cancel(&f, &q);
    agx_manager_stats(f.manager, &stats);
    ASSERT_UINT(0, stats.feeds);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(subscription_whose_store_fails_ends_with_that_error)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    subscribe(&f, &q, "box-a", 2, false);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    stub_move(f.manager, "box-a", AGX_ON_STOP, AGX_DO_NONE);
    stub_fail(f.manager, AGX_DATA_LOSS, "the event is damaged");
    ASSERT_FALSE(service_next(&f, &q));
    service_refused(&q, AGX_DATA_LOSS, "the event is damaged", NULL, NULL, NULL);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(subscription_ends_when_the_server_stops)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    subscribe(&f, &q, "box-a", 2, false);
    RPC_UNTIL(&f.rpc, q.n_headers == 1);
    rpc_stop(&f.rpc, 60000);
    service_until_closed(&f, &q);
    ASSERT_CSTR("14", q.grpc_status); /* UNAVAILABLE */
    rpc_request_done(&q);
    service_teardown(&f);
}

static void two_streams(struct agx_service_config *c)
{
    c->subscribers_per_uid = 2;
}

TEST(streams_of_one_user_are_capped_and_the_message_names_the_key)
{
    struct service_fixture f;
    struct rpc_request q[3];

    service_setup(&f, two_streams);
    stub_add_ready(f.manager, "box-a", NULL);
    for (unsigned i = 0; i < 2; i++) {
        subscribe(&f, &q[i], "box-a", 2, false);
        RPC_UNTIL(&f.rpc, q[i].n_headers == 1);
    }
    put_subscribe(&f, "box-a", 2, false);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, service_call(&f, &q[2], AGX_METHOD_SUBSCRIBE));
    ASSERT_NOT_NULL(strstr(q[2].grpc_message, "limits.subscribers_per_uid"));
    rpc_request_done(&q[2]);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, service_call(&f, &q[2], AGX_METHOD_WATCH_EVENTS));
    rpc_request_done(&q[2]);
    service_cancel(&f, &q[0]);
    rpc_request_done(&q[0]);
    subscribe(&f, &q[0], "box-a", 2, false); /* a place is free again */
    RPC_UNTIL(&f.rpc, q[0].n_headers == 1);
    ASSERT_CSTR("", q[0].grpc_status);
    rpc_request_done(&q[0]);
    rpc_request_done(&q[1]);
    service_teardown(&f);
}

/* WatchEvents. */

static void watch(struct service_fixture *f, struct rpc_request *q,
                  const struct agx_watch_request *request)
{
    ASSERT_OK(agx_watch_request_encode(&f->message, request));
    service_start(f, q, AGX_METHOD_WATCH_EVENTS);
}

/* The next message: its position; `sandbox_id` NULL: without an event. */
static uint64_t next_watched(struct service_fixture *f, struct rpc_request *q,
                             const char *sandbox_id)
{
    struct agx_event_view v;
    uint64_t position = 0;
    int r;

    ASSERT_TRUE(service_next(f, q));
    r = agx_watch_view_decode(&v, &position, agx_buf_peek(&f->reply), NULL);
    ASSERT_INT(sandbox_id ? 1 : 0, r);
    if (sandbox_id)
        ASSERT_CSTR(sandbox_id, v.sandbox_id);
    agx_event_view_done(&v);
    return position;
}

TEST(watch_tells_of_all_sandboxes_in_one_order_and_can_be_resumed)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    stub_add(f.manager, "box-b", NULL);
    stub_move(f.manager, "box-a", AGX_ON_DONE, AGX_DO_CREATE);
    watch(&f, &q, &(struct agx_watch_request){ 0 });
    ASSERT_UINT(0, next_watched(&f, &q, NULL));
    ASSERT_UINT(1, next_watched(&f, &q, "box-a"));
    ASSERT_UINT(2, next_watched(&f, &q, "box-b"));
    ASSERT_UINT(3, next_watched(&f, &q, "box-a"));
    stub_add(f.manager, "box-c", NULL);
    ASSERT_UINT(4, next_watched(&f, &q, "box-c"));
    service_cancel(&f, &q);
    rpc_request_done(&q);
    watch(&f, &q, &(struct agx_watch_request){ .after_position = 2 });
    ASSERT_UINT(2, next_watched(&f, &q, NULL));
    ASSERT_UINT(3, next_watched(&f, &q, "box-a"));
    service_cancel(&f, &q);
    rpc_request_done(&q);
    watch(&f, &q, &(struct agx_watch_request){ .from_now = true });
    ASSERT_UINT(4, next_watched(&f, &q, NULL));
    stub_add(f.manager, "box-d", NULL);
    ASSERT_UINT(5, next_watched(&f, &q, "box-d"));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(watch_tells_of_pulls_of_the_sandboxes_that_were_asked_for)
{
    const struct agx_pull pull = { "redis:7", 1, 2, 10, 20 };
    struct agx_watch_request ids = { .from_now = true };
    struct agx_pull_view v;
    struct service_fixture f;
    struct rpc_request q, one;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    stub_add(f.manager, "box-b", NULL);
    ASSERT_OK(agx_words_add(&ids.sandbox_ids, AGX_STR("box-b"), NULL));
    watch(&f, &q, &ids);
    ASSERT_UINT(2, next_watched(&f, &q, NULL));
    subscribe(&f, &one, "box-b", 1, false); /* has no message for it */
    RPC_UNTIL(&f.rpc, one.n_headers == 1);
    stub_pull(f.manager, "box-a", &pull);
    stub_pull(f.manager, "box-b", &pull);
    ASSERT_TRUE(service_next(&f, &q));
    ASSERT_INT(1, agx_pull_view_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_CSTR("box-b", v.sandbox_id);
    ASSERT_CSTR("redis:7", v.pull.image);
    agx_pull_view_done(&v);
    stub_move(f.manager, "box-b", AGX_ON_DONE, AGX_DO_CREATE);
    ASSERT_UINT(3, next_watched(&f, &q, "box-b"));
    ASSERT_TRUE(service_next(&f, &one)); /* the event, and nothing in front of it */
    agx_watch_request_done(&ids);
    rpc_request_done(&q);
    rpc_request_done(&one);
    service_teardown(&f);
}

TEST(watch_leaves_out_what_was_not_asked_for)
{
    struct agx_watch_request labels = { 0 }, ids = { 0 };
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", "team=a");
    stub_add(f.manager, "box-b", "team=b");
    stub_add(f.manager, "box-c", "team=b");
    ASSERT_OK(agx_pairs_set(&labels.selector, AGX_STR("team"), AGX_STR("b"), NULL));
    watch(&f, &q, &labels);
    ASSERT_UINT(0, next_watched(&f, &q, NULL));
    ASSERT_UINT(2, next_watched(&f, &q, "box-b"));
    ASSERT_UINT(3, next_watched(&f, &q, "box-c"));
    service_cancel(&f, &q);
    rpc_request_done(&q);
    ASSERT_OK(agx_words_add(&ids.sandbox_ids, AGX_STR("box-c"), NULL));
    watch(&f, &q, &ids);
    ASSERT_UINT(0, next_watched(&f, &q, NULL));
    ASSERT_UINT(3, next_watched(&f, &q, "box-c"));
    rpc_request_done(&q);
    agx_watch_request_done(&labels);
    agx_watch_request_done(&ids);
    service_teardown(&f);
}

TEST(watch_tells_its_position_now_and_then_when_nothing_is_wanted)
{
    struct agx_watch_request ids = { 0 };
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "box-a", NULL);
    make_history(&f, "box-a");
    ASSERT_OK(agx_words_add(&ids.sandbox_ids, AGX_STR("box-b"), NULL));
    watch(&f, &q, &ids);
    ASSERT_UINT(0, next_watched(&f, &q, NULL));
    ASSERT_UINT(AGX_WATCH_SKIP_MAX, next_watched(&f, &q, NULL));
    ASSERT_UINT(2 * AGX_WATCH_SKIP_MAX, next_watched(&f, &q, NULL));
    rpc_request_done(&q);
    agx_watch_request_done(&ids);
    service_teardown(&f);
}

TEST(watch_after_a_position_that_does_not_exist_is_out_of_range)
{
    const struct agx_watch_request request = { .after_position = 7 };
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "box-a", NULL);
    ASSERT_OK(agx_watch_request_encode(&f.message, &request));
    (void)service_call(&f, &q, AGX_METHOD_WATCH_EVENTS);
    service_refused(&q, AGX_OUT_OF_RANGE, "after_position 7: the newest event has position 1", NULL,
                    NULL, NULL);
    rpc_request_done(&q);
    service_teardown(&f);
}

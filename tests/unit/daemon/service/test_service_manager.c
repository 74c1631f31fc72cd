/* The services on the real manager, with a store in memory and a scripted backend. */
#include "tests/support/manager.h"
#include "tests/support/service.h"

#include "wire/control_request.h"
#include "wire/view.h"

#include "base/banned.h"

struct whole {
    struct fixture f;
    struct service_fixture s;
};

static void setup(struct whole *w)
{
    struct agx_grpc_config rpc = AGX_GRPC_CONFIG_INIT;
    struct agx_service_config config = AGX_SERVICE_CONFIG_INIT;

    rpc.handshake_ms = SERVICE_HANDSHAKE_MS;
    fixture_open(&w->f);
    w->s = (struct service_fixture){ .message = AGX_BUF_INIT((size_t)16 << 20),
                                     .reply = AGX_BUF_INIT((size_t)64 << 20),
                                     .rpc.loop = w->f.loop };
    ASSERT_OK(agx_grpc_server_open(w->f.loop, &rpc, &w->s.rpc.server, NULL));
    rpc_connect(&w->s.rpc, &w->s.rpc.client);
    config.loop = w->f.loop;
    config.manager = w->f.manager;
    config.store = w->f.store;
    config.server = w->s.rpc.server;
    config.version = config.backend = "test";
    config.data_dir = "/tmp";
    ASSERT_OK(agx_service_open(&config, &w->s.service, NULL));
}

static void teardown(struct whole *w)
{
    if (w->s.rpc.client.session)
        rpc_client_close(&w->s.rpc.client);
    rpc_stop(&w->s.rpc, 0);
    UNTIL(&w->f, w->s.rpc.n_stopped == 1);
    fixture_close_manager(&w->f);
    agx_service_close(w->s.service, NULL, NULL);
    agx_buf_done(&w->s.message);
    agx_buf_done(&w->s.reply);
    fixture_close(&w->f);
}

static enum agx_code call_id(struct whole *w, const char *path, const char *id)
{
    struct rpc_request q;
    enum agx_code code = service_call_id(&w->s, &q, path, id);

    rpc_request_done(&q);
    return code;
}

static enum agx_code create(struct whole *w, const char *id)
{
    struct agx_create_request q;
    struct rpc_request call;
    enum agx_code code;

    agx_create_request_init(&q);
    q.has_spec = true;
    ASSERT_OK(agx_text_set(&q.spec.image, "debian:12", NULL));
    ASSERT_OK(agx_text_set(&q.sandbox_id, id, NULL));
    ASSERT_OK(agx_create_request_encode(&w->s.message, &q));
    agx_create_request_done(&q);
    code = service_call(&w->s, &call, AGX_METHOD_CREATE_SANDBOX);
    rpc_request_done(&call);
    return code;
}

/* Waits for a state that lasts, and is told it. */
static enum agx_state wait_for(struct whole *w, const char *id, uint32_t states)
{
    const struct agx_wait_request q = { .id = (char *)id,
                                        .states = states,
                                        .timeout_ns = AGX_NS_UNSET };
    struct agx_sandbox_view v;
    struct rpc_request call;
    enum agx_state state;

    ASSERT_OK(agx_wait_sandbox_encode(&w->s.message, &q));
    ASSERT_INT(AGX_OK, service_call(&w->s, &call, AGX_METHOD_WAIT_SANDBOX));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&w->s.reply), NULL, NULL));
    state = v.state;
    agx_sandbox_view_done(&v);
    rpc_request_done(&call);
    return state;
}

static void subscribe(struct whole *w, struct rpc_request *q, const char *id, uint64_t from)
{
    const struct agx_subscribe_request request = { .sandbox_id = (char *)id,
                                                   .from_sequence = from };

    ASSERT_OK(agx_subscribe_request_encode(&w->s.message, &request));
    service_start(&w->s, q, AGX_METHOD_SUBSCRIBE);
}

/* The next events are these, from that sequence on. */
static void next_are(struct whole *w, struct rpc_request *q, uint64_t sequence,
                     const enum agx_event_type *types, size_t n)
{
    struct agx_event_view v;

    for (size_t i = 0; i < n; i++) {
        ASSERT_TRUE(service_next(&w->s, q));
        ASSERT_OK(agx_event_view_decode(&v, agx_buf_peek(&w->s.reply), NULL));
        ASSERT_UINT(sequence + i, v.event.sequence);
        ASSERT_CSTR(agx_event_name(types[i]), agx_event_name(v.event.type));
        agx_event_view_done(&v);
    }
}

TEST(sandbox_lives_its_whole_life_by_calls_alone)
{
    static const enum agx_event_type types[] = {
        AGX_EVENT_SANDBOX_ACCEPTED, AGX_EVENT_SANDBOX_PREPARING,
        AGX_EVENT_SANDBOX_READY,    AGX_EVENT_SANDBOX_STOP_REQUESTED,
        AGX_EVENT_SANDBOX_STOPPED,  AGX_EVENT_SANDBOX_ACCEPTED,
        AGX_EVENT_SANDBOX_READY,    AGX_EVENT_SANDBOX_DELETE_REQUESTED,
        AGX_EVENT_SANDBOX_DELETED,
    };
    struct rpc_request live, late;
    struct whole w;

    setup(&w);
    ASSERT_INT(AGX_OK, create(&w, "box-a"));
    subscribe(&w, &live, "box-a", 0);
    ASSERT_INT(AGX_STATE_READY, wait_for(&w, "box-a", 0));
    ASSERT_INT(AGX_OK, call_id(&w, AGX_METHOD_STOP_SANDBOX, "box-a"));
    ASSERT_INT(AGX_STATE_STOPPED, wait_for(&w, "box-a", 0));
    ASSERT_INT(AGX_OK, call_id(&w, AGX_METHOD_RESUME_SANDBOX, "box-a"));
    ASSERT_INT(AGX_STATE_READY, wait_for(&w, "box-a", 0));
    ASSERT_INT(AGX_OK, call_id(&w, AGX_METHOD_DELETE_SANDBOX, "box-a"));
    ASSERT_INT(AGX_STATE_DELETED, wait_for(&w, "box-a", 0));
    next_are(&w, &live, 1, types, AGX_ARRAY_LEN(types));
    subscribe(&w, &late, "box-a", 3); /* from the store */
    next_are(&w, &late, 4, types + 3, AGX_ARRAY_LEN(types) - 3);
    rpc_request_done(&live);
    rpc_request_done(&late);
    ASSERT_INT(AGX_ALREADY_EXISTS, create(&w, "box-a"));
    teardown(&w);
}

TEST(exec_runs_and_its_end_is_waited_for)
{
    const struct agx_wait_request wait = { .id = (char *)"exec-1", .timeout_ns = AGX_NS_UNSET };
    struct agx_exec_request exec = { 0 };
    struct agx_exec_view v;
    struct rpc_request q;
    struct whole w;

    setup(&w);
    ASSERT_INT(AGX_OK, create(&w, "box-a"));
    ASSERT_INT(AGX_STATE_READY, wait_for(&w, "box-a", 0));
    ASSERT_OK(agx_exec_init(&exec.exec, "exec-1", "box-a", NULL));
    ASSERT_OK(agx_words_add(&exec.exec.command, AGX_STR("false"), NULL));
    ASSERT_OK(agx_exec_request_encode(&w.s.message, &exec));
    agx_exec_request_done(&exec);
    ASSERT_INT(AGX_OK, service_call(&w.s, &q, AGX_METHOD_CREATE_EXEC));
    rpc_request_done(&q);
    ASSERT_OK(agx_wait_exec_encode(&w.s.message, &wait));
    service_start(&w.s, &q, AGX_METHOD_WAIT_EXEC);
    UNTIL(&w.f, world_exec(w.f.world, "exec-1") && world_exec(w.f.world, "exec-1")->running);
    service_turns(&w.s, 5);
    ASSERT_FALSE(q.closed);
    world_exit(w.f.world, "exec-1", 3);
    service_until_closed(&w.s, &q);
    ASSERT_TRUE(rpc_read(&q, &w.s.reply));
    ASSERT_OK(agx_exec_view_decode(&v, agx_buf_peek(&w.s.reply), NULL, NULL));
    ASSERT_INT(AGX_EXEC_FAILED, v.exec.state);
    ASSERT_INT(3, v.exec.exit_code);
    agx_exec_view_done(&v);
    rpc_request_done(&q);
    ASSERT_INT(AGX_FAILED_PRECONDITION, call_id(&w, AGX_METHOD_CANCEL_EXEC, "exec-1"));
    ASSERT_INT(AGX_OK, call_id(&w, AGX_METHOD_GET_EXEC, "exec-1"));
    teardown(&w);
}

TEST(request_that_the_disk_has_no_room_for_fails_and_the_next_succeeds)
{
    struct whole w;

    setup(&w);
    agx_store_mem_fail(w.f.store, AGX_RESOURCE_EXHAUSTED, 1);
    ASSERT_INT(AGX_RESOURCE_EXHAUSTED, create(&w, "box-a"));
    ASSERT_INT(AGX_NOT_FOUND, call_id(&w, AGX_METHOD_GET_SANDBOX, "box-a"));
    ASSERT_INT(AGX_OK, create(&w, "box-b"));
    teardown(&w);
}

TEST(requests_in_one_sandbox_do_not_wait_for_a_backend_that_hangs_in_another)
{
    struct whole w;

    setup(&w);
    w.f.world->hold[AGX_DO_CREATE] = true;
    ASSERT_INT(AGX_OK, create(&w, "stuck"));
    UNTIL(&w.f, world_box(w.f.world, "stuck"));
    w.f.world->hold[AGX_DO_CREATE] = false;
    ASSERT_INT(AGX_OK, create(&w, "box-a"));
    ASSERT_INT(AGX_STATE_READY, wait_for(&w, "box-a", 0));
    ASSERT_INT(AGX_STATE_PENDING, wait_for(&w, "stuck", 1U << AGX_STATE_PENDING));
    world_release(w.f.world, "stuck");
    ASSERT_INT(AGX_STATE_READY, wait_for(&w, "stuck", 0));
    teardown(&w);
}

/* Requests of agbox.v1.SandboxService: their answers, with code, message and reason. */
#include "tests/support/service.h"

#include "wire/sandbox_request.h"
#include "wire/view.h"

#include "base/banned.h"

static void as_agboxd(struct agx_service_config *c)
{
    c->compat = true;
    c->name = "agboxd";
}

static void put_create(struct service_fixture *f, const char *image, const char *id,
                       const char *yaml)
{
    struct agx_create_request q;

    agx_create_request_init(&q);
    q.has_spec = image;
    ASSERT_OK(agx_text_set(&q.spec.image, image, NULL));
    ASSERT_OK(agx_text_set(&q.sandbox_id, id, NULL));
    q.config_yaml.max = 65536;
    ASSERT_OK(agx_buf_append(&q.config_yaml, agx_str_from(yaml)));
    ASSERT_OK(agx_create_request_encode(&f->message, &q));
    agx_create_request_done(&q);
}

static void put_exec(struct service_fixture *f, const char *sandbox_id, const char *id,
                     const char *word)
{
    struct agx_exec_request q = { 0 };

    ASSERT_OK(agx_exec_init(&q.exec, id, sandbox_id, NULL));
    if (word)
        ASSERT_OK(agx_words_add(&q.exec.command, agx_str_from(word), NULL));
    ASSERT_OK(agx_exec_request_encode(&f->message, &q));
    agx_exec_request_done(&q);
}

static void check_ping(void (*change)(struct agx_service_config *c), const char *name)
{
    struct service_fixture f;
    struct agx_ping_view v;
    struct rpc_request q;

    service_setup(&f, change);
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_PING));
    ASSERT_OK(agx_ping_view_decode(&v, agx_buf_peek(&f.reply), NULL));
    ASSERT_CSTR("1.2.3", v.version);
    ASSERT_CSTR(name, v.daemon);
    agx_ping_view_done(&v);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(ping_tells_version_and_name)
{
    check_ping(NULL, "agentixd");
    check_ping(as_agboxd, "agboxd");
}

TEST(create_answers_with_the_whole_handle)
{
    struct service_fixture f;
    struct agx_sandbox_view v;
    struct rpc_request q;

    service_setup(&f, NULL);
    put_create(&f, "debian:12", "my-box", "labels: {team: a}\n");
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&f.reply), NULL, NULL));
    ASSERT_CSTR("my-box", v.id);
    ASSERT_INT(AGX_STATE_PENDING, v.state);
    ASSERT_UINT(1, v.last_sequence);
    ASSERT_CSTR("debian:12", v.spec.image);
    ASSERT_CSTR("a", agx_pairs_get(&v.spec.labels, "team"));
    ASSERT_TRUE(v.created_at_ns > 0 && v.changed_at_ns > 0);
    agx_sandbox_view_done(&v);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(create_refuses_in_the_order_of_the_checks)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "taken", NULL);
    put_create(&f, NULL, "x", "");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    service_refused(&q, AGX_INVALID_ARGUMENT, "create_spec is required", NULL, NULL, NULL);
    rpc_request_done(&q);
    put_create(&f, NULL, "x", "nothing: 1\n");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    ASSERT_NOT_NULL(strstr(q.grpc_message, "invalid config_yaml"));
    ASSERT_CSTR("", q.details);
    rpc_request_done(&q);
    put_create(&f, "", "x", "");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    service_refused(&q, AGX_INVALID_ARGUMENT, "create_spec.image is required", NULL, NULL, NULL);
    rpc_request_done(&q);
    put_create(&f, "debian:12", "x", "");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    service_refused(&q, AGX_INVALID_ARGUMENT, "sandbox_id must be at least 4 characters", NULL,
                    NULL, NULL);
    rpc_request_done(&q);
    put_create(&f, "debian:12", "taken", "");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    service_refused(&q, AGX_ALREADY_EXISTS, "sandbox_id taken already exists",
                    "SANDBOX_ID_ALREADY_EXISTS", "sandbox_id", "taken");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(create_that_cannot_be_stored_says_so_without_a_reason)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_fail(f.manager, AGX_RESOURCE_EXHAUSTED, "the disk is full");
    put_create(&f, "debian:12", NULL, "");
    (void)service_call(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    service_refused(&q, AGX_RESOURCE_EXHAUSTED, "the disk is full", NULL, NULL, NULL);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(get_tells_of_a_sandbox_until_it_is_forgotten)
{
    struct service_fixture f;
    struct agx_sandbox_view v;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "my-box", NULL);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_GET_SANDBOX, "my-box"));
    ASSERT_OK(agx_sandbox_view_decode(&v, agx_buf_peek(&f.reply), NULL, NULL));
    ASSERT_INT(AGX_STATE_READY, v.state);
    ASSERT_UINT(2, v.last_sequence);
    agx_sandbox_view_done(&v);
    rpc_request_done(&q);
    stub_purge(f.manager, "my-box");
    (void)service_call_id(&f, &q, AGX_METHOD_GET_SANDBOX, "my-box");
    service_refused(&q, AGX_NOT_FOUND, "sandbox my-box was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "my-box");
    rpc_request_done(&q);
    (void)service_call_id(&f, &q, AGX_METHOD_GET_SANDBOX, "");
    service_refused(&q, AGX_NOT_FOUND, "sandbox  was not found", "SANDBOX_NOT_FOUND", "sandbox_id",
                    "");
    rpc_request_done(&q);
    service_teardown(&f);
}

/* A name of any length, with characters of several bytes, comes back cut and in one piece. */
TEST(get_with_a_huge_id_is_refused_with_a_message_that_is_text)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    ASSERT_OK(agx_buf_append(&f.message, AGX_STR("\x0a\xc0\x84\x3d"))); /* 1,000,000 bytes */
    for (unsigned i = 0; i < 500000; i++)
        ASSERT_OK(agx_buf_append(&f.message, AGX_STR("\xc3\xbc")));
    ASSERT_INT(AGX_NOT_FOUND, service_call(&f, &q, AGX_METHOD_GET_SANDBOX));
    ASSERT_CSTR("", q.details);
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(stop_resume_and_delete_are_accepted_or_refused_by_the_state)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "my-box", NULL);
    (void)service_call_id(&f, &q, AGX_METHOD_STOP_SANDBOX, "my-box");
    service_refused(&q, AGX_FAILED_PRECONDITION, "sandbox my-box is not ready",
                    "SANDBOX_INVALID_STATE", "sandbox_id", "my-box");
    rpc_request_done(&q);
    stub_move(f.manager, "my-box", AGX_ON_DONE, AGX_DO_CREATE);
    (void)service_call_id(&f, &q, AGX_METHOD_RESUME_SANDBOX, "my-box");
    service_refused(&q, AGX_FAILED_PRECONDITION, "sandbox my-box is not stopped",
                    "SANDBOX_INVALID_STATE", "sandbox_id", "my-box");
    rpc_request_done(&q);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_STOP_SANDBOX, "my-box"));
    ASSERT_STR(AGX_STR("\x08\x01"), agx_buf_peek(&f.reply)); /* accepted: true */
    rpc_request_done(&q);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_DELETE_SANDBOX, "my-box"));
    rpc_request_done(&q);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_DELETE_SANDBOX, "my-box"));
    rpc_request_done(&q);
    (void)service_call_id(&f, &q, AGX_METHOD_DELETE_SANDBOX, "nobody");
    service_refused(&q, AGX_NOT_FOUND, "sandbox nobody was not found", "SANDBOX_NOT_FOUND",
                    "sandbox_id", "nobody");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(exec_is_created_read_and_cancelled)
{
    struct service_fixture f;
    struct agx_exec_created_view created;
    struct agx_exec_view v;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add_ready(f.manager, "my-box", NULL);
    put_exec(&f, "my-box", "my-exec", "true");
    ASSERT_INT(AGX_OK, service_call(&f, &q, AGX_METHOD_CREATE_EXEC));
    ASSERT_OK(agx_exec_created_view_decode(&created, agx_buf_peek(&f.reply), NULL));
    ASSERT_CSTR("my-exec", created.exec_id);
    ASSERT_CSTR("/logs/out", created.stdout_path);
    ASSERT_CSTR("/logs/err", created.stderr_path);
    agx_exec_created_view_done(&created);
    rpc_request_done(&q);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_CANCEL_EXEC, "my-exec"));
    rpc_request_done(&q);
    stub_exec_move(f.manager, "my-exec", AGX_EXEC_ON_REFUSED, 0);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_GET_EXEC, "my-exec"));
    ASSERT_OK(agx_exec_view_decode(&v, agx_buf_peek(&f.reply), NULL, NULL));
    ASSERT_CSTR("true", v.exec.command.items[0]);
    ASSERT_UINT(4, v.last_sequence); /* the sandbox's */
    agx_exec_view_done(&v);
    rpc_request_done(&q);
    (void)service_call_id(&f, &q, AGX_METHOD_CANCEL_EXEC, "my-exec");
    service_refused(&q, AGX_FAILED_PRECONDITION, "exec my-exec is already terminal",
                    "EXEC_ALREADY_TERMINAL", "exec_id", "my-exec");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(exec_requests_are_refused_with_their_reasons)
{
    static const struct {
        const char *sandbox_id, *id, *word;
        enum agx_code code;
        const char *message, *reason, *key, *value;
    } rows[] = {
        { "nobody", NULL, "true", AGX_NOT_FOUND, "sandbox nobody was not found",
          "SANDBOX_NOT_FOUND", "sandbox_id", "nobody" },
        { "pending", NULL, NULL, AGX_FAILED_PRECONDITION, "sandbox pending is not ready",
          "SANDBOX_NOT_READY", "sandbox_id", "pending" },
        { "ready", "x", NULL, AGX_INVALID_ARGUMENT, "command must not be empty", NULL, NULL, NULL },
        { "ready", "x", "true", AGX_INVALID_ARGUMENT, "exec_id must be at least 4 characters", NULL,
          NULL, NULL },
        { "ready", "taken", "true", AGX_ALREADY_EXISTS, "exec_id taken already exists",
          "EXEC_ID_ALREADY_EXISTS", "exec_id", "taken" },
    };
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_add(f.manager, "pending", NULL);
    stub_add_ready(f.manager, "ready", NULL);
    stub_exec_add(f.manager, "ready", "taken");
    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        put_exec(&f, rows[i].sandbox_id, rows[i].id, rows[i].word);
        (void)service_call(&f, &q, AGX_METHOD_CREATE_EXEC);
        service_refused(&q, rows[i].code, rows[i].message, rows[i].reason, rows[i].key,
                        rows[i].value);
        rpc_request_done(&q);
    }
    (void)service_call_id(&f, &q, AGX_METHOD_GET_EXEC, "nobody");
    service_refused(&q, AGX_NOT_FOUND, "exec nobody was not found", "EXEC_NOT_FOUND", "exec_id",
                    "nobody");
    rpc_request_done(&q);
    (void)service_call_id(&f, &q, AGX_METHOD_CANCEL_EXEC, "nobody");
    service_refused(&q, AGX_NOT_FOUND, "exec nobody was not found", "EXEC_NOT_FOUND", "exec_id",
                    "nobody");
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(request_whose_client_leaves_goes_on_and_its_answer_is_dropped)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_hold(f.manager, true);
    put_create(&f, "debian:12", "my-box", "");
    service_start(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    RPC_UNTIL(&f.rpc, stub_waiting(f.manager) == 1);
    service_cancel(&f, &q);
    rpc_request_done(&q);
    stub_hold(f.manager, false);
    RPC_UNTIL(&f.rpc, stub_waiting(f.manager) == 0);
    ASSERT_INT(AGX_OK, service_call_id(&f, &q, AGX_METHOD_GET_SANDBOX, "my-box"));
    rpc_request_done(&q);
    service_teardown(&f);
}

TEST(request_whose_server_stops_is_answered_by_nobody)
{
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    stub_hold(f.manager, true);
    put_create(&f, "debian:12", "my-box", "");
    service_start(&f, &q, AGX_METHOD_CREATE_SANDBOX);
    RPC_UNTIL(&f.rpc, stub_waiting(f.manager) == 1);
    rpc_request_done(&q);
    service_teardown(&f); /* the manager answers when the server is gone */
}

TEST(bytes_that_are_no_request_are_refused_everywhere)
{
    static const char *const paths[] = {
        AGX_METHOD_CREATE_SANDBOX,   AGX_METHOD_GET_SANDBOX,      AGX_METHOD_LIST_SANDBOXES,
        AGX_METHOD_RESUME_SANDBOX,   AGX_METHOD_STOP_SANDBOX,     AGX_METHOD_DELETE_SANDBOX,
        AGX_METHOD_SUBSCRIBE,        AGX_METHOD_CREATE_EXEC,      AGX_METHOD_CANCEL_EXEC,
        AGX_METHOD_GET_EXEC,         AGX_METHOD_WATCH_EVENTS,     AGX_METHOD_LIST_ACTIVE_EXECS,
        AGX_METHOD_LIST_PAGE,        AGX_METHOD_WAIT_SANDBOX,     AGX_METHOD_WAIT_EXEC,
        AGX_METHOD_DELETE_SANDBOXES, AGX_METHOD_READ_EXEC_OUTPUT, AGX_METHOD_WRITE_EXEC_INPUT,
    };
    struct service_fixture f;
    struct rpc_request q;

    service_setup(&f, NULL);
    for (size_t i = 0; i < AGX_ARRAY_LEN(paths); i++) {
        ASSERT_OK(agx_buf_append(&f.message, AGX_STR("\x0a\x7f")));
        ASSERT_INT(AGX_INVALID_ARGUMENT, service_call(&f, &q, paths[i]));
        ASSERT_TRUE(q.grpc_message[0] != '\0');
        ASSERT_CSTR("", q.details);
        rpc_request_done(&q);
    }
    service_teardown(&f);
}

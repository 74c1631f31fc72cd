#include "grpc/health.h"
#include "grpc/reflection.h"
#include "tests/support/grpc.h"

static void call(struct rpc_fixture *f, struct rpc_request *q, const char *path,
                 struct agx_str message)
{
    rpc_start(&f->client, q, path, &message);
    RPC_UNTIL(f, q->closed);
}

/* The next message of a stream that goes on. */
static void read_next(struct rpc_fixture *f, struct rpc_request *q, struct agx_buf *got)
{
    RPC_UNTIL(f, rpc_read(q, got));
}

static bool contains(const struct agx_buf *b, const char *words)
{
    return b->len > 0 && memmem(b->data, b->len, words, strlen(words));
}

TEST(health_check_tells_the_status_of_the_server_and_of_its_services)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    struct agx_grpc_health *health = NULL;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_health_new(f.server, &health, NULL));
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("a.B"), false, NULL));
    call(&f, &q, "/grpc.health.v1.Health/Check", AGX_STR(""));
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("\x08\x01"), agx_buf_peek(&got));
    rpc_request_done(&q);
    call(&f, &q, "/grpc.health.v1.Health/Check",
         AGX_STR("\x0a\x03"
                 "a.B"));
    ASSERT_TRUE(rpc_read(&q, &got));
    ASSERT_STR(AGX_STR("\x08\x02"), agx_buf_peek(&got));
    rpc_request_done(&q);
    rpc_teardown(&f);
    agx_grpc_health_free(health);
}

TEST(health_check_of_an_unknown_service_is_not_found_and_of_nonsense_invalid)
{
    struct agx_grpc_health *health = NULL;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_health_new(f.server, &health, NULL));
    call(&f, &q, "/grpc.health.v1.Health/Check", AGX_STR("\x0a\x01x"));
    ASSERT_CSTR("5", q.grpc_status);
    ASSERT_CSTR("unknown service 'x'", q.grpc_message);
    rpc_request_done(&q);
    call(&f, &q, "/grpc.health.v1.Health/Check", AGX_STR("\x0a\x05x"));
    ASSERT_CSTR("3", q.grpc_status);
    rpc_request_done(&q);
    call(&f, &q, "/grpc.health.v1.Health/Check", AGX_STR("\x0a\x01\xff"));
    ASSERT_CSTR("3", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
    agx_grpc_health_free(health);
}

TEST(health_watch_tells_each_change_once)
{
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(100);
    const struct agx_str name = AGX_STR("\x0a\x01x");
    struct agx_grpc_health *health = NULL;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_health_new(f.server, &health, NULL));
    rpc_start(&f.client, &q, "/grpc.health.v1.Health/Watch", &name);
    read_next(&f, &q, &got);
    ASSERT_STR(AGX_STR("\x08\x03"), agx_buf_peek(&got)); /* nobody knows it yet */
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("x"), true, NULL));
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("x"), true, NULL));
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("other"), false, NULL));
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("x"), false, NULL));
    read_next(&f, &q, &got);
    ASSERT_STR(AGX_STR("\x08\x01"), agx_buf_peek(&got));
    read_next(&f, &q, &got);
    ASSERT_STR(AGX_STR("\x08\x02"), agx_buf_peek(&got));
    ASSERT_INT(0, nghttp2_submit_rst_stream(f.client.session, 0, q.stream, NGHTTP2_CANCEL));
    RPC_UNTIL(&f, q.closed);
    for (int i = 0; i < 5; i++)
        rpc_turn(&f);
    ASSERT_OK(agx_grpc_health_set(health, AGX_STR("x"), true, NULL)); /* nobody listens */
    rpc_request_done(&q);
    rpc_teardown(&f);
    agx_grpc_health_free(health);
}

/* Asks one question on a call that goes on. */
static void ask(struct rpc_fixture *f, struct rpc_request *q, struct agx_str query,
                struct agx_buf *got)
{
    rpc_write(&f->client, q, query);
    read_next(f, q, got);
}

TEST(reflection_lists_services_and_gives_files_by_name_and_by_symbol)
{
    static const char *const paths[] = {
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    };
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(65536);
    struct agx_grpc_reflection *reflection = NULL;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_reflection_new(f.server, &reflection, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(paths); i++) {
        rpc_start(&f.client, &q, paths[i], NULL);
        ask(&f, &q, AGX_STR("\x3a\x00"), &got);
        ASSERT_TRUE(contains(&got, "grpc.health.v1.Health"));
        ASSERT_TRUE(contains(&got, "grpc.reflection.v1.ServerReflection"));
        ASSERT_TRUE(contains(&got, "grpc.reflection.v1alpha.ServerReflection"));
        ask(&f, &q, AGX_STR("\x22\x21grpc.health.v1.HealthCheckRequest"), &got);
        ASSERT_TRUE(contains(&got, "grpc/health/v1/health.proto"));
        ask(&f, &q, AGX_STR("\x22\x1bgrpc.health.v1.Health.Watch"), &got);
        ASSERT_TRUE(contains(&got, "grpc/health/v1/health.proto"));
        ask(&f, &q, AGX_STR("\x1a\x1bgrpc/health/v1/health.proto"), &got);
        ASSERT_TRUE(contains(&got, "HealthCheckResponse"));
        ask(&f, &q, AGX_STR("\x22\x04none"), &got);
        ASSERT_TRUE(contains(&got, "'none' is not known"));
        ask(&f, &q, AGX_STR(""), &got);
        ASSERT_TRUE(contains(&got, "the request is empty"));
        rpc_write_end(&f.client, &q);
        RPC_UNTIL(&f, q.closed);
        ASSERT_CSTR("0", q.grpc_status);
        rpc_request_done(&q);
    }
    rpc_teardown(&f);
    agx_grpc_reflection_free(reflection);
}

TEST(reflection_request_that_is_nonsense_ends_the_call_as_invalid)
{
    struct agx_grpc_reflection *reflection = NULL;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_reflection_new(f.server, &reflection, NULL));
    rpc_start(&f.client, &q, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", NULL);
    rpc_write(&f.client, &q, AGX_STR("\xff\xff"));
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("3", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
    agx_grpc_reflection_free(reflection);
}

TEST(reflection_to_a_client_that_asks_and_never_reads_is_bounded)
{
    enum { N = 3000 };
    _cleanup_buf_ struct agx_buf got = AGX_BUF_INIT(65536);
    struct agx_grpc_reflection *reflection = NULL;
    struct agx_grpc_stats stats;
    struct rpc_request q;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_reflection_new(f.server, &reflection, NULL));
    rpc_start(&f.client, &q, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", NULL);
    f.client.deaf = true;
    for (int i = 0; i < N; i++)
        rpc_write(&f.client, &q, AGX_STR("\x1a\x1bgrpc/health/v1/health.proto"));
    for (int i = 0; i < 100; i++)
        rpc_turn(&f);
    agx_grpc_server_stats(f.server, &stats);
    ASSERT_TRUE(stats.bytes < 1000000);
    f.client.deaf = false;
    for (int i = 0; i < N; i++)
        read_next(&f, &q, &got);
    rpc_write_end(&f.client, &q);
    RPC_UNTIL(&f, q.closed);
    ASSERT_CSTR("0", q.grpc_status);
    rpc_request_done(&q);
    rpc_teardown(&f);
    agx_grpc_reflection_free(reflection);
}

TEST(reflection_refuses_bytes_that_are_no_set_of_files)
{
    struct agx_grpc_reflection *reflection = NULL;
    struct agx_error *err = NULL;
    struct rpc_fixture f;

    rpc_setup(&f, NULL);
    ASSERT_OK(agx_grpc_reflection_new(f.server, &reflection, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_grpc_reflection_add(reflection, AGX_STR("\x0a\x7fshort"), &err));
    agx_error_free(err);
    rpc_teardown(&f);
    agx_grpc_reflection_free(reflection);
}

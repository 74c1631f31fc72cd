#include "tests/support/service.h"

#include "codec/grpc_meta.h"
#include "store/store_mem.h"
#include "tests/support/store.h"

#include <stdio.h>

#include "base/banned.h"

void service_setup(struct service_fixture *f, void (*change)(struct agx_service_config *c))
{
    struct agx_service_config config = AGX_SERVICE_CONFIG_INIT;

    *f = (struct service_fixture){ .message = AGX_BUF_INIT((size_t)16 << 20),
                                   .reply = AGX_BUF_INIT((size_t)64 << 20) };
    rpc_setup(&f->rpc, NULL);
    f->engine = stub_engine_open(f->rpc.loop);
    ASSERT_OK(agx_store_mem_open(f->rpc.loop, &test_store_layout, &f->store, NULL));
    config.loop = f->rpc.loop;
    config.engine = f->engine;
    config.store = f->store;
    config.server = f->rpc.server;
    config.version = "1.2.3";
    config.backend = "stub";
    config.data_dir = "/tmp";
    if (change)
        change(&config);
    ASSERT_OK(agx_service_open(&config, &f->service, NULL));
}

static void on_closed(void *user, struct agx_error *error)
{
    ASSERT_NULL(error);
    ((struct service_fixture *)user)->n_closed++;
}

void service_teardown(struct service_fixture *f)
{
    if (f->rpc.client.session)
        rpc_client_close(&f->rpc.client);
    if (f->rpc.server)
        rpc_stop(&f->rpc, 0);
    test_loop_run(f->rpc.loop);
    ASSERT_UINT(1, f->rpc.n_stopped);
    stub_engine_close(f->engine);
    test_store_close(f->store);
    agx_service_close(f->service, on_closed, f);
    test_loop_run(f->rpc.loop);
    ASSERT_UINT(1, f->n_closed);
    agx_buf_done(&f->message);
    agx_buf_done(&f->reply);
    rpc_teardown(&f->rpc);
}

void service_start(struct service_fixture *f, struct rpc_request *q, const char *path)
{
    struct agx_str message = agx_buf_peek(&f->message);

    rpc_start(&f->rpc.client, q, path, &message);
    agx_buf_clear(&f->message);
}

static enum agx_code status_of(const struct rpc_request *q)
{
    uint64_t code;

    if (!agx_parse_u64(agx_str_from(q->grpc_status), AGX_UNAUTHENTICATED, &code))
        FAIL("the call ended without a status, HTTP/2 error %u", q->error);
    return (enum agx_code)code;
}

enum agx_code service_call(struct service_fixture *f, struct rpc_request *q, const char *path)
{
    service_start(f, q, path);
    RPC_UNTIL(&f->rpc, q->closed);
    agx_buf_clear(&f->reply);
    (void)rpc_read(q, &f->reply);
    return status_of(q);
}

enum agx_code service_call_id(struct service_fixture *f, struct rpc_request *q, const char *path,
                              const char *id)
{
    /* Field 1, a string: all requests that are an id have it so. */
    ASSERT_OK(agx_buf_push(&f->message, 0x0a));
    ASSERT_TRUE(strlen(id) < 128);
    ASSERT_OK(agx_buf_push(&f->message, (uint8_t)strlen(id)));
    ASSERT_OK(agx_buf_append(&f->message, agx_str_from(id)));
    return service_call(f, q, path);
}

bool service_next(struct service_fixture *f, struct rpc_request *q)
{
    while (!rpc_read(q, &f->reply)) {
        if (q->closed)
            return false;
        rpc_turn(&f->rpc);
    }
    return true;
}

void service_refused(struct rpc_request *q, enum agx_code code, const char *message,
                     const char *reason, const char *key, const char *id)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(65536), bytes = AGX_BUF_INIT(65536);
    struct agx_str details = agx_str_from(q->details);
    struct agx_status_view v = { 0 };

    ASSERT_INT(code, status_of(q));
    ASSERT_OK(agx_grpc_message_decode(&text, agx_str_from(q->grpc_message)));
    ASSERT_STR(agx_str_from(message), agx_buf_peek(&text));
    if (!reason) {
        ASSERT_CSTR("", q->details);
        return;
    }
    ASSERT_OK(agx_grpc_bin_next(&details, &bytes, NULL));
    ASSERT_OK(agx_status_view_decode(&v, agx_buf_peek(&bytes), NULL));
    ASSERT_INT(code, v.code);
    ASSERT_CSTR(message, v.message);
    ASSERT_CSTR(reason, v.reason);
    ASSERT_CSTR("agents-sandbox", v.domain);
    ASSERT_CSTR(id, agx_pairs_get(&v.metadata, key));
    agx_status_view_done(&v);
}

void service_cancel(struct service_fixture *f, struct rpc_request *q)
{
    ASSERT_INT(0, nghttp2_submit_rst_stream(f->rpc.client.session, NGHTTP2_FLAG_NONE, q->stream,
                                            NGHTTP2_CANCEL));
    RPC_UNTIL(&f->rpc, q->closed);
    service_turns(f, 3);
}

void service_turns(struct service_fixture *f, unsigned n)
{
    while (n-- > 0)
        rpc_turn(&f->rpc);
}

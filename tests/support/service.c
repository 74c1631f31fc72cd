/* service.c: the daemon's services on a manager stub. */
#include "tests/support/service.h"

#include "store/store_mem.h"
#include "tests/support/store.h"

#include "base/banned.h"

void service_setup(struct service_fixture *f, void (*change)(struct agx_service_config *c))
{
    struct agx_service_config config = AGX_SERVICE_CONFIG_INIT;
    struct agx_grpc_config rpc = AGX_GRPC_CONFIG_INIT;

    rpc.handshake_ms = SERVICE_HANDSHAKE_MS;
    *f = (struct service_fixture){ .message = AGX_BUF_INIT((size_t)16 << 20),
                                   .reply = AGX_BUF_INIT((size_t)64 << 20) };
    rpc_setup(&f->rpc, &rpc);
    f->manager = stub_manager_open(f->rpc.loop);
    ASSERT_OK(agx_store_mem_open(f->rpc.loop, &test_store_layout, &f->store, NULL));
    config.loop = f->rpc.loop;
    config.manager = f->manager;
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
    stub_manager_close(f->manager);
    test_store_close(f->store);
    agx_service_close(f->service, on_closed, f);
    test_loop_run(f->rpc.loop);
    ASSERT_UINT(1, f->n_closed);
    agx_buf_done(&f->message);
    agx_buf_done(&f->reply);
    rpc_teardown(&f->rpc);
}

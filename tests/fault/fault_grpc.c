#include "grpc/grpc_internal.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

/* A server's edge without sockets, in which each allocation fails in turn, nghttp2's included. */

static unsigned n_started, n_ended, n_finished;

static void on_ended(void *user, enum agx_code code)
{
    (void)user;
    (void)code;
    n_ended++;
}

static const struct agx_grpc_call_ops ops = { .ended = on_ended };

static void echo(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    n_started++;
    n_finished++;
    agx_grpc_call_reply(call, request);
}

static void stream(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    n_started++;
    agx_grpc_call_watch(call, &ops, NULL);
    if (agx_grpc_call_send(call, request) < 0) {
        n_finished++;
        agx_grpc_call_finish(call, &(struct agx_grpc_status){ .code = AGX_RESOURCE_EXHAUSTED,
                                                              .message = AGX_STR("no memory") });
    }
}

static const struct agx_grpc_method methods[] = {
    { "/t.T/Echo", AGX_GRPC_UNARY, false, echo },
    { "/t.T/Stream", AGX_GRPC_SERVER_STREAM, false, stream },
};

static void wake(struct agx_grpc_link *l)
{
    (void)l;
}

/* What a client sends for one call of each method; made once, with memory to spare. */
static void client_bytes(struct agx_buf *out)
{
    static const uint8_t body[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c' };
    nghttp2_hd_deflater *deflater;

    ASSERT_INT(0, nghttp2_hd_deflate_new(&deflater, 4096));
    ASSERT_OK(agx_buf_append(out, AGX_STR(NGHTTP2_CLIENT_MAGIC "\0\0\0\4\0\0\0\0\0")));
    for (size_t i = 0; i < AGX_ARRAY_LEN(methods); i++) {
        struct agx_str fields[] = { AGX_STR(":method"),      AGX_STR("POST"),
                                    AGX_STR(":scheme"),      AGX_STR("http"),
                                    AGX_STR(":authority"),   AGX_STR("localhost"),
                                    AGX_STR(":path"),        agx_str_from(methods[i].path),
                                    AGX_STR("content-type"), AGX_STR("application/grpc"),
                                    AGX_STR("grpc-timeout"), AGX_STR("5S"),
                                    AGX_STR("x-key"),        AGX_STR("value") };
        nghttp2_nv nv[AGX_ARRAY_LEN(fields) / 2];
        uint8_t block[256];
        ssize_t n;

        for (size_t j = 0; j < AGX_ARRAY_LEN(nv); j++)
            nv[j] = (nghttp2_nv){ .name = (uint8_t *)fields[2 * j].ptr,
                                  .namelen = fields[2 * j].len,
                                  .value = (uint8_t *)fields[2 * j + 1].ptr,
                                  .valuelen = fields[2 * j + 1].len };
        n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), nv, AGX_ARRAY_LEN(nv));
        ASSERT_TRUE(n > 0);
        ASSERT_OK(agx_buf_append(
            out, agx_str_bytes((char[]){ 0, 0, (char)n, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS,
                                         0, 0, 0, (char)(2 * i + 1) },
                               9)));
        ASSERT_OK(agx_buf_append(out, agx_str_bytes(block, (size_t)n)));
        ASSERT_OK(agx_buf_append(
            out, agx_str_bytes((char[]){ 0, 0, sizeof(body), NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM,
                                         0, 0, 0, (char)(2 * i + 1) },
                               9)));
        ASSERT_OK(agx_buf_append(out, agx_str_bytes(body, sizeof(body))));
    }
    nghttp2_hd_deflate_del(deflater);
}

TEST(rpc_edge_without_memory_ends_each_call_once_and_leaks_nothing)
{
    const struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    _cleanup_buf_ struct agx_buf bytes = AGX_BUF_INIT(4096);

    client_bytes(&bytes);
    FAULT_EACH_ALLOCATION
    {
        _cleanup_buf_ struct agx_buf out = AGX_BUF_INIT(65536);
        struct agx_grpc_link *l = NULL;
        struct agx_grpc_shared h = { 0 };
        int r;

        n_started = n_ended = n_finished = 0;
        r = agx_grpc_shared_init(&h, &config, NULL);
        h.wake = wake;
        for (size_t i = 0; i < AGX_ARRAY_LEN(methods) && r == 0; i++)
            r = agx_grpc_shared_add(&h, &methods[i], NULL, NULL);
        if (r == 0)
            r = agx_grpc_link_new(&h, &(struct agx_grpc_peer){ 0 }, true, NULL, &l, NULL);
        ASSERT_TRUE(r == 0 || r == -AGX_RESOURCE_EXHAUSTED);
        if (r == 0) {
            agx_grpc_link_recv(l, agx_buf_peek(&bytes));
            (void)agx_grpc_link_send(l, &out, 65536);
            (void)agx_grpc_link_writable(l);
            if (!agx_fault_hit()) {
                ASSERT_FALSE(agx_grpc_link_is_over(l));
                ASSERT_UINT(2, n_started);
            }
        }
        l = agx_grpc_link_free(l);
        ASSERT_UINT(n_started, n_ended + n_finished);
        ASSERT_UINT(0, h.stats.bytes);
        ASSERT_UINT(0, h.stats.calls);
        agx_grpc_shared_done(&h);
    }
}

/*
 * fuzz_grpc.c: raw HTTP/2 bytes for the gRPC server's edge, without sockets. For any input, each
 * call that began ends exactly once, nothing leaks, and memory stays bounded. The first byte
 * chooses whether the client's preface comes first, and the chunks; the second chooses what the
 * handlers do.
 */
#include "base/limits.h"
#include "grpc/grpc_internal.h"
#include "tests/support/fuzz.h"

enum { CALLS = 4096, BYTES_MAX = 1 << 20 };

struct kept {
    struct agx_grpc_call *call; /* NULL: it has ended */
};

static struct kept kept[CALLS];
static size_t n_kept;
static unsigned behaviour;

static void on_ended(void *user, enum agx_code code)
{
    struct kept *k = user;

    FUZZ_CHECK(k->call && code != AGX_OK);
    k->call = NULL;
}

static void on_writable(void *user)
{
    struct kept *k = user;

    FUZZ_CHECK(k->call && agx_grpc_call_queued(k->call) < AGX_GRPC_STREAM_HIGH);
}

static void on_message(void *user, struct agx_str message)
{
    struct kept *k = user;

    FUZZ_CHECK(k->call && message.len <= 1000);
    if (agx_grpc_call_queued(k->call) < AGX_GRPC_STREAM_HIGH)
        (void)!agx_grpc_call_send(k->call, message);
    if (behaviour & 1)
        agx_grpc_call_pause(k->call);
}

static void on_half_closed(void *user)
{
    struct kept *k = user;

    FUZZ_CHECK(k->call);
    agx_grpc_call_finish(k->call, &(struct agx_grpc_status){ .code = AGX_OK });
    k->call = NULL;
}

static const struct agx_grpc_call_ops ops = { on_ended, on_writable, on_message, on_half_closed };

static void echo(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    (void)service;
    if (behaviour & 2)
        agx_grpc_call_finish(call, &(struct agx_grpc_status){ .code = AGX_ABORTED,
                                                              .message = request,
                                                              .details = request });
    else
        agx_grpc_call_reply(call, request);
}

static void hold(void *service, struct agx_grpc_call *call, struct agx_str request)
{
    static const char large[30000];

    (void)service;
    (void)request;
    if (n_kept == CALLS) {
        agx_grpc_call_finish(call, &(struct agx_grpc_status){ .code = AGX_RESOURCE_EXHAUSTED });
        return;
    }
    kept[n_kept].call = call;
    agx_grpc_call_watch(call, &ops, &kept[n_kept++]);
    if (behaviour & 4)
        (void)!agx_grpc_call_send(call, agx_str_bytes(large, sizeof(large)));
    if (behaviour & 8)
        agx_grpc_call_begin(call);
}

static const struct agx_grpc_method methods[] = {
    { "/t.T/Echo", AGX_GRPC_UNARY, false, echo },
    { "/t.T/Hold", AGX_GRPC_SERVER_STREAM, true, hold },
    { "/t.T/Collect", AGX_GRPC_CLIENT_STREAM, false, hold },
    { "/t.T/Bidi", AGX_GRPC_BIDI, false, hold },
};

static void wake(struct agx_grpc_link *l)
{
    FUZZ_CHECK(!l->busy);
}

/* What a server does after each read. */
static void turn(struct agx_grpc_link *l, struct agx_buf *out)
{
    struct agx_grpc_shared *h = l->host;

    do {
        agx_buf_clear(out);
        (void)agx_grpc_link_send(l, out, AGX_CONN_OUT_HIGH);
    } while (agx_grpc_link_writable(l));
    for (size_t i = 0; behaviour & 16 && i < n_kept; i++) {
        if (kept[i].call && kept[i].call->paused)
            agx_grpc_call_resume(kept[i].call);
    }
    if (l->later)
        agx_grpc_link_deliver(l);
    agx_grpc_shared_expire(h);
    FUZZ_CHECK(h->stats.bytes == l->bytes + l->h2_bytes);
    FUZZ_CHECK(l->h2_bytes <= BYTES_MAX && l->bytes <= BYTES_MAX + BYTES_MAX / 2);
}

static void feed(struct agx_grpc_link *l, struct agx_str bytes, size_t step, struct agx_buf *out)
{
    while (bytes.len > 0 && !agx_grpc_link_is_over(l)) {
        size_t n = AGX_MIN(step, bytes.len);

        agx_grpc_link_recv(l, (struct agx_str){ bytes.ptr, n });
        bytes = agx_str_skip(bytes, n);
        l->host->now_ms += 7;
        turn(l, out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = NGHTTP2_CLIENT_MAGIC "\0\0\0\4\0\0\0\0\0";
    struct agx_grpc_config config = AGX_GRPC_CONFIG_INIT;
    struct agx_buf out = AGX_BUF_INIT((size_t)1 << 20);
    struct agx_grpc_link *l = NULL;
    struct agx_grpc_shared h;
    size_t step;

    if (size < 2)
        return 0;
    behaviour = data[1];
    step = (size_t)(data[0] >> 1) * 16 + 1;
    config.message_max = 1000;
    config.conn_bytes_max = BYTES_MAX;
    n_kept = 0;
    if (agx_grpc_shared_init(&h, &config, NULL) < 0)
        return 0;
    h.wake = wake;
    for (size_t i = 0; i < AGX_ARRAY_LEN(methods); i++)
        FUZZ_CHECK(agx_grpc_shared_add(&h, &methods[i], NULL, NULL) == 0);
    FUZZ_CHECK(agx_grpc_link_new(&h, &(struct agx_grpc_peer){ 0 }, true, NULL, &l, NULL) == 0);
    if (data[0] & 1)
        feed(l, agx_str_bytes(preface, sizeof(preface) - 1), SIZE_MAX, &out);
    feed(l, agx_str_bytes(data + 2, size - 2), step, &out);
    if (behaviour & 32) {
        agx_grpc_link_shutdown(l);
        agx_grpc_link_end_calls(l, true);
        agx_grpc_link_drain(l);
        agx_grpc_link_end_calls(l, false);
        turn(l, &out);
    }
    l = agx_grpc_link_free(l);
    for (size_t i = 0; i < n_kept; i++)
        FUZZ_CHECK(!kept[i].call);
    FUZZ_CHECK(h.stats.bytes == 0 && h.stats.calls == 0 && h.stats.conns == 0);
    agx_grpc_shared_done(&h);
    agx_buf_done(&out);
    return 0;
}

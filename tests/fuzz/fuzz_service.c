/*
 * fuzz_service.c: hostile messages at hostile moments for the handlers of both services. There is
 * no HTTP/2: a fake call checks what the handler does with it. For any input, each call ends
 * exactly once, a refusal's details agree with its message, and nothing is left behind.
 *
 * The input is a sequence of: an operation (1 byte), a length (2, little endian), so many bytes.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "daemon/service/service.h"
#include "grpc/server.h"
#include "store/store_mem.h"
#include "tests/support/fuzz.h"
#include "tests/support/manager_stub.h"
#include "tests/support/test.h"
#include "wire/status_details.h"

enum { CALLS_MAX = 256, OPS_MAX = 512, QUEUE_HIGH = 4, INPUT_MAX = 64 << 10 };

struct agx_grpc_call {
    const struct agx_grpc_method *method;
    const struct agx_grpc_call_ops *ops;
    void *user;
    bool ended, watched, paused, half_closed;
    unsigned queued;
};

struct agx_grpc_server {
    const struct agx_grpc_method *methods[32];
    size_t n;
    void *service;
};

static struct agx_grpc_server server;
static struct agx_grpc_call calls[CALLS_MAX];
static size_t n_calls;

/* What the stub's assertions call. */
void agx_test_fail(const char *file, int line, const char *fmt, ...)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, fmt);
    abort();
}

/* grpc/server.h and grpc/call.h, as the services see them. */

int agx_grpc_server_add(struct agx_grpc_server *s, const struct agx_grpc_method *methods, size_t n,
                        void *service, struct agx_error **err)
{
    (void)err;
    for (size_t i = 0; i < n; i++) {
        FUZZ_CHECK(s->n < AGX_ARRAY_LEN(s->methods));
        s->methods[s->n++] = &methods[i];
    }
    s->service = service;
    return 0;
}

void agx_grpc_server_stats(const struct agx_grpc_server *s, struct agx_grpc_stats *ret)
{
    (void)s;
    *ret = (struct agx_grpc_stats){ 0 };
}

void agx_grpc_call_watch(struct agx_grpc_call *c, const struct agx_grpc_call_ops *ops, void *user)
{
    FUZZ_CHECK(!c->ended && ops->ended);
    c->ops = ops;
    c->user = user;
    c->watched = true;
}

void agx_grpc_call_begin(struct agx_grpc_call *c)
{
    FUZZ_CHECK(!c->ended);
}

void agx_grpc_call_reply(struct agx_grpc_call *c, struct agx_str message)
{
    (void)message;
    FUZZ_CHECK(!c->ended);
    FUZZ_CHECK(c->method->kind == AGX_GRPC_UNARY || c->method->kind == AGX_GRPC_CLIENT_STREAM);
    c->ended = true;
}

int agx_grpc_call_send(struct agx_grpc_call *c, struct agx_str message)
{
    (void)message;
    FUZZ_CHECK(!c->ended && c->method->kind == AGX_GRPC_SERVER_STREAM);
    FUZZ_CHECK(c->queued < QUEUE_HIGH); /* there was a pause when one was asked for */
    return ++c->queued >= QUEUE_HIGH;
}

void agx_grpc_call_finish(struct agx_grpc_call *c, const struct agx_grpc_status *status)
{
    struct agx_status_view v;

    FUZZ_CHECK(!c->ended);
    c->ended = true;
    FUZZ_CHECK(status->code != AGX_OK || c->method->kind == AGX_GRPC_SERVER_STREAM);
    if (status->details.len == 0)
        return;
    FUZZ_CHECK(agx_status_view_decode(&v, status->details, NULL) == 0);
    FUZZ_CHECK(v.code == (int32_t)status->code);
    FUZZ_CHECK(agx_str_eq(agx_str_from(v.message), status->message));
    FUZZ_CHECK(v.reason && v.metadata.len > 0);
    agx_status_view_done(&v);
}

void agx_grpc_call_pause(struct agx_grpc_call *c)
{
    FUZZ_CHECK(!c->ended && c->method->kind == AGX_GRPC_CLIENT_STREAM);
    c->paused = true;
}

void agx_grpc_call_resume(struct agx_grpc_call *c)
{
    FUZZ_CHECK(!c->ended && c->paused);
    c->paused = false;
}

const struct agx_grpc_peer *agx_grpc_call_peek_peer(const struct agx_grpc_call *c)
{
    static const struct agx_grpc_peer peer = { .pid = 1, .uid = 1000, .gid = 1000 };

    FUZZ_CHECK(!c->ended);
    return &peer;
}

/* What clients do. */

static void begin(size_t method, struct agx_str message)
{
    struct agx_grpc_call *c;

    if (n_calls == CALLS_MAX)
        return;
    c = &calls[n_calls++];
    *c = (struct agx_grpc_call){ .method = server.methods[method] };
    c->method->handler(server.service, c,
                       c->method->kind == AGX_GRPC_CLIENT_STREAM ? AGX_STR("") : message);
    FUZZ_CHECK(c->ended || c->watched);
    if (!c->ended && c->method->kind == AGX_GRPC_CLIENT_STREAM)
        c->ops->message(c->user, message);
}

static struct agx_grpc_call *pick(struct agx_str data)
{
    struct agx_grpc_call *c =
        n_calls > 0 && data.len > 0 ? &calls[(uint8_t)*data.ptr % n_calls] : NULL;

    return c && !c->ended ? c : NULL;
}

static void leave(struct agx_grpc_call *c)
{
    c->ended = true;
    c->ops->ended(c->user, AGX_CANCELLED);
}

static void take(struct agx_grpc_call *c)
{
    bool was_full = c->queued >= QUEUE_HIGH;

    c->queued = 0;
    if (was_full && c->ops->writable)
        c->ops->writable(c->user);
}

static void write_more(struct agx_grpc_call *c, struct agx_str message)
{
    if (c->method->kind == AGX_GRPC_CLIENT_STREAM && !c->paused && !c->half_closed)
        c->ops->message(c->user, message);
}

static void write_end(struct agx_grpc_call *c)
{
    if (c->method->kind != AGX_GRPC_CLIENT_STREAM || c->paused || c->half_closed)
        return;
    c->half_closed = true;
    c->ops->half_closed(c->user);
}

/* What happens in the daemon. */

static void happen(struct agx_manager *e, unsigned what)
{
    const struct agx_sandbox *sb;

    if (what < 2) {
        stub_hold(e, what);
        return;
    }
    if (what < 4) {
        stub_hold_input(e, what % 2);
        return;
    }
    if (agx_manager_find(e, "box-a", &sb, NULL) < 0)
        return;
    if (what == 4)
        stub_purge(e, "box-a");
    if (what == 5 && sb->life.running != AGX_DO_NONE && sb->life.active_execs == 0)
        stub_move(e, "box-a", AGX_ON_DONE, sb->life.running);
    if (what == 6)
        stub_exec_print(e, "exec-1", AGX_STR("some output"), false);
    if (what == 7)
        stub_exec_move(e, "exec-1", AGX_EXEC_ON_BEGUN, 0);
    if (what == 8)
        stub_exec_move(e, "exec-1", AGX_EXEC_ON_EXITED, 1);
}

static void one(struct agx_loop *l, struct agx_manager *e, unsigned op, struct agx_str data)
{
    struct agx_grpc_call *c = pick(data);
    unsigned n = (unsigned)server.n;

    if (op < n)
        begin(op, data);
    else if (op < n + 9)
        happen(e, op - n);
    else if (op == n + 9 && c)
        leave(c);
    else if (op == n + 10 && c)
        take(c);
    else if (op == n + 11 && c)
        write_more(c, agx_str_skip(data, 1));
    else if (op == n + 12 && c)
        write_end(c);
    else
        (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
}

static void run(struct agx_loop *l, struct agx_manager *e, struct agx_str in)
{
    for (unsigned i = 0; i < OPS_MAX && in.len >= 3; i++) {
        const uint8_t *p = (const uint8_t *)in.ptr;
        size_t len = AGX_MIN((size_t)p[1] | (size_t)p[2] << 8, in.len - 3);

        one(l, e, p[0], (struct agx_str){ in.ptr + 3, len });
        in = agx_str_skip(in, 3 + len);
    }
}

static const char *const tables[] = { "records" };
static const struct agx_store_layout layout = { .tables = tables, .n_tables = 1, .version = 1 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_service_config config = AGX_SERVICE_CONFIG_INIT;
    struct agx_service *service = NULL;
    struct agx_store *store = NULL;
    struct agx_loop *l = NULL;
    struct agx_manager *e;

    if (size > INPUT_MAX)
        return 0;
    server = (struct agx_grpc_server){ .n = 0 };
    n_calls = 0;
    FUZZ_CHECK(agx_loop_open(&l, NULL) == 0);
    FUZZ_CHECK(agx_store_mem_open(l, &layout, &store, NULL) == 0);
    e = stub_manager_open(l);
    stub_add_ready(e, "box-a", "team=a");
    stub_add(e, "box-b", NULL);
    stub_exec_add(e, "box-a", "exec-1");
    config.loop = l;
    config.manager = e;
    config.store = store;
    config.server = &server;
    config.version = config.backend = "fuzz";
    config.data_dir = "/tmp";
    FUZZ_CHECK(agx_service_open(&config, &service, NULL) == 0);
    run(l, e, agx_str_bytes(data, size));
    for (size_t i = 0; i < n_calls; i++) {
        if (!calls[i].ended)
            leave(&calls[i]);
    }
    stub_hold(e, false);
    stub_hold_input(e, false);
    (void)uv_run(agx_loop_uv(l), UV_RUN_NOWAIT);
    stub_manager_close(e);
    agx_store_close(store, NULL, NULL);
    agx_loop_run(l);
    agx_service_close(service, NULL, NULL);
    agx_loop_run(l);
    FUZZ_CHECK(agx_loop_close(l, NULL) == 0);
    return 0;
}

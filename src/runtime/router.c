/* router.c: clients, sessions and deadlines. router_internal.h has the invariants. */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "base/mem.h"
#include "base/uuid.h"

#include <assert.h>

/* A guessable session would let others take its results, so abort instead. */
static void random_or_die(void *out, size_t n)
{
    if (agx_random_bytes(out, n, NULL) < 0)
        abort();
}

struct agx_router *agx_router_new(const struct agx_router_config *config,
                                  const struct agx_router_io *io, void *user)
{
    struct agx_router *rt = agx_new(struct agx_router);

    rt->config = *config;
    rt->io = *io;
    rt->user = user;
    random_or_die(&rt->seed, sizeof(rt->seed));
    agx_map_init(&rt->sessions, rt->seed);
    agx_map_init(&rt->by_id, rt->seed);
    rt->hints = agx_lane_hints_new(rt->seed);
    /* An answer repeats a call_id that may be as long as a message, and adds more. */
    rt->scratch = (struct agx_buf)AGX_BUF_INIT(2 * config->max_message);
    return rt;
}

/*
 * Iterates over all calls of a map while each is removed: start with *at 0; NULL at the end. Checks
 * the slot of the last call again, since a removal may move another entry there.
 */
static struct agx_router_call *next_call(struct agx_map *m, size_t *at)
{
    void *call = NULL;

    *at -= *at > 0;
    (void)agx_map_next(m, at, NULL, &call);
    return call;
}

static void client_free(struct agx_router *rt, struct agx_client *c)
{
    struct agx_router_call *call;
    size_t at = 0;

    while ((call = next_call(&c->calls, &at))) {
        if (!call->done && call->worker_owes)
            agx_router_send_cancel(rt, call);
        agx_router_call_forget(rt, call);
    }
    agx_map_done(&c->calls);
    agx_heap_remove(&rt->windows, &c->away);
    if (c->proto1)
        (void)agx_map_remove(&rt->sessions, agx_str_from(c->session));
    agx_list_remove(&c->node);
    free(c);
}

struct agx_router *agx_router_free(struct agx_router *rt)
{
    struct agx_client *c;
    struct agx_router_call *call;
    size_t at = 0;

    if (!rt)
        return NULL;
    while ((call = next_call(&rt->by_id, &at))) {
        call->done = true; /* nobody is told */
        agx_router_call_worker_done(rt, call);
    }
    while ((c = AGX_LIST_FIRST(&rt->clients, struct agx_client, node)))
        client_free(rt, c);
    agx_map_done(&rt->by_id);
    agx_map_done(&rt->sessions);
    agx_heap_done(&rt->deadlines);
    agx_heap_done(&rt->windows);
    agx_lane_hints_free(rt->hints);
    agx_buf_done(&rt->scratch);
    free(rt);
    return NULL;
}

static struct agx_client *client_new(struct agx_router *rt, const struct agx_client_hello *hello)
{
    struct agx_client *c = agx_new(struct agx_client);
    uint8_t secret[16];

    c->proto1 = hello->proto1;
    agx_map_init(&c->calls, rt->seed);
    if (c->proto1) {
        random_or_die(secret, sizeof(secret));
        for (size_t i = 0; i < sizeof(secret); i++)
            (void)snprintf(c->session + 2 * i, 3, "%02x", secret[i]);
        if (agx_map_put(&rt->sessions, agx_str_from(c->session), c, NULL) < 0)
            abort();
    }
    agx_list_push_front(&rt->clients, &c->node);
    return c;
}

struct agx_client *agx_router_connect(struct agx_router *rt, const struct agx_client_hello *hello,
                                      void *conn, bool *ret_resumed, void **ret_old_conn)
{
    struct agx_client *c = NULL;

    if (hello->proto1 && hello->session.len > 0)
        c = agx_map_get(&rt->sessions, hello->session);
    *ret_resumed = c != NULL;
    *ret_old_conn = c ? c->conn : NULL;
    if (c)
        agx_unacked_disconnected(rt, c);
    if (!c)
        c = client_new(rt, hello);
    c->holding = *ret_resumed;
    c->conn = conn;
    agx_heap_remove(&rt->windows, &c->away);
    c->max_message = hello->max_message > 0 ? AGX_MIN(hello->max_message, rt->config.max_message)
                                            : rt->config.legacy_message;
    return c;
}

const char *agx_client_peek_session(const struct agx_client *c)
{
    return c->proto1 ? c->session : NULL;
}

void agx_router_disconnect(struct agx_router *rt, struct agx_client *c, uint64_t now_ms)
{
    c->conn = NULL;
    if (!c->proto1) {
        client_free(rt, c);
        return;
    }
    agx_unacked_disconnected(rt, c);
    if (agx_heap_put(&rt->windows, &c->away, now_ms + rt->config.resume_ms) < 0)
        abort();
}

void agx_router_leave(struct agx_router *rt, struct agx_client *c)
{
    client_free(rt, c);
}

void agx_router_drained(struct agx_router *rt, struct agx_client *c)
{
    void *call;

    agx_unacked_pump(rt, c);
    if (!c->starving)
        return;
    c->starving = false;
    for (size_t at = 0; agx_map_next(&c->calls, &at, NULL, &call);) {
        if (((struct agx_router_call *)call)->starved)
            agx_router_call_grant(rt, call);
    }
}

uint64_t agx_router_tick(struct agx_router *rt, uint64_t now_ms)
{
    struct agx_heap_node *n;
    uint64_t next_ms = UINT64_MAX;

    while ((n = agx_heap_peek(&rt->windows)) && n->key <= now_ms)
        client_free(rt, container_of(n, struct agx_client, away));
    if (n)
        next_ms = n->key;
    while ((n = agx_heap_peek(&rt->deadlines)) && n->key <= now_ms)
        agx_router_call_abort(rt, container_of(n, struct agx_router_call, deadline),
                              AGX_STR("CallTimeout"), "the call's time is over");
    return n ? AGX_MIN(next_ms, n->key) : next_ms;
}

void agx_router_worker_gone(struct agx_router *rt, struct agx_str type, const char *message,
                            int returncode)
{
    struct agx_router_call *call;
    size_t at = 0;

    while ((call = next_call(&rt->by_id, &at))) {
        _cleanup_buf_ struct agx_buf error = AGX_BUF_INIT(rt->config.max_message);
        struct agx_mp_writer w;

        if (!call->done) {
            agx_mp_writer_init(&w, &error);
            agx_router_write_error(&w, type, message, returncode);
            if (agx_mp_writer_end(&w, NULL) < 0)
                abort();
            agx_router_call_error(rt, call, agx_buf_peek(&error));
        }
        agx_router_call_worker_done(rt, call);
    }
}

void agx_router_drain(struct agx_router *rt)
{
    rt->draining = true;
}

void agx_router_end_all(struct agx_router *rt, struct agx_str type, const char *message)
{
    void *value;

    for (size_t at = 0; agx_map_next(&rt->by_id, &at, NULL, &value);) {
        struct agx_router_call *call = value;

        /* The worker still owes the end, so the entry stays and the iteration may continue. */
        if (!call->done)
            agx_router_call_abort(rt, call, type, message);
    }
}

size_t agx_router_running(const struct agx_router *rt)
{
    return rt->by_id.len;
}

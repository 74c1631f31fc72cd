/*
 * router_call.c: one call: what it sends, what of that is kept, and when it is over. The states are
 * drawn in router_internal.h.
 */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "base/mem.h"
#include "codec/frame.h"

#include <assert.h>
#include <stdarg.h>

struct agx_call *agx_call_new(struct agx_router *rt, struct agx_client *c, struct agx_str call_id,
                              enum agx_rpc_kind kind)
{
    struct agx_call *call = agx_new(struct agx_call);
    char *copy = agx_str_dup(call_id);

    if (!copy || agx_map_put(&c->calls, call_id, call, NULL) < 0) {
        free(copy);
        free(call);
        return NULL;
    }
    call->call_id = agx_str_bytes(copy, call_id.len);
    call->id = ++rt->last_id;
    if (agx_map_put(&rt->by_id, agx_id_key(&call->id), call, NULL) < 0)
        abort();
    call->client = c;
    call->kind = kind;
    call->worker_owes = true;
    call->out_granted = (struct agx_window){ AGX_CREDIT_ITEMS, AGX_CREDIT_BYTES };
    call->in_granted = call->out_granted;
    call->kept_last = &call->kept;
    return call;
}

struct agx_call *agx_call_find(struct agx_router *rt, uint64_t id)
{
    return agx_map_get(&rt->by_id, agx_id_key(&id));
}

static void list_ended(struct agx_client *c, struct agx_call *call)
{
    call->ended_prev = c->ended_last;
    if (c->ended_last)
        c->ended_last->ended_next = call;
    else
        c->ended = call;
    c->ended_last = call;
    c->n_ended++;
}

static bool is_listed(const struct agx_client *c, const struct agx_call *call)
{
    return call->ended_prev || c->ended == call;
}

static void unlist_ended(struct agx_client *c, struct agx_call *call)
{
    if (!is_listed(c, call))
        return;
    if (call->ended_prev)
        call->ended_prev->ended_next = call->ended_next;
    else
        c->ended = call->ended_next;
    if (call->ended_next)
        call->ended_next->ended_prev = call->ended_prev;
    else
        c->ended_last = call->ended_prev;
    call->ended_prev = call->ended_next = NULL;
    c->n_ended--;
}

/* Drops what is kept up to and with `seq`. */
static void drop_kept(struct agx_call *call, uint64_t seq)
{
    while (call->kept && call->kept->seq <= seq) {
        struct agx_kept *k = call->kept;

        call->kept = k->next;
        call->kept_bytes -= k->len;
        call->client->kept_bytes -= k->len;
        free(k);
    }
    if (!call->kept)
        call->kept_last = &call->kept;
}

static void free_if_over(struct agx_call *call)
{
    if (call->client || call->worker_owes)
        return;
    assert(!call->kept);
    free((char *)call->call_id.ptr);
    free(call);
}

void agx_call_forget(struct agx_router *rt, struct agx_call *call)
{
    struct agx_client *c = call->client;

    agx_heap_remove(&rt->deadlines, &call->deadline);
    unlist_ended(c, call);
    drop_kept(call, UINT64_MAX);
    (void)agx_map_remove(&c->calls, call->call_id);
    call->client = NULL;
    call->done = true;
    free_if_over(call);
}

void agx_call_worker_done(struct agx_router *rt, struct agx_call *call)
{
    (void)agx_map_remove(&rt->by_id, agx_id_key(&call->id));
    call->worker_owes = false;
    free_if_over(call);
}

/* Keeps an event until it is acknowledged; where that cannot be, the call's answer is lost to a
 * resume. */
static void keep(struct agx_router *rt, struct agx_call *call, enum agx_rpc_event ev,
                 const struct agx_str *parts, size_t n)
{
    struct agx_kept *k;
    size_t len = 0, at = 0;

    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    k = len <= rt->config.kept_bytes_max ? malloc(sizeof(*k) + len) : NULL;
    if (!k) {
        drop_kept(call, UINT64_MAX);
        call->lost_seq = call->seq;
        return;
    }
    *k = (struct agx_kept){ .seq = call->seq, .ev = ev, .len = len };
    for (size_t i = 0; i < n; i++) {
        memcpy(k->payload + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    *call->kept_last = k;
    call->kept_last = &k->next;
    call->kept_bytes += len;
    call->client->kept_bytes += len;
}

/* Forgets answers, the oldest first, until the session is within its bounds. */
static void trim_kept(struct agx_router *rt, struct agx_client *c)
{
    while (c->ended &&
           (c->n_ended > rt->config.kept_calls_max || c->kept_bytes > rt->config.kept_bytes_max)) {
        struct agx_call *oldest = c->ended;

        unlist_ended(c, oldest);
        drop_kept(oldest, UINT64_MAX);
        oldest->lost_seq = oldest->seq;
    }
}

/* Composes {call_id[, seq][, key: value]} and sends it; `value` is raw msgpack, not looked into. */
static void output(struct agx_router *rt, struct agx_call *call, enum agx_rpc_event ev,
                   struct agx_str key, struct agx_str value)
{
    struct agx_client *c = call->client;
    struct agx_mp_writer w;
    struct agx_str parts[2];

    call->seq++;
    agx_buf_clear(&rt->scratch);
    agx_mp_writer_init(&w, &rt->scratch);
    agx_mp_write_map(&w, 1 + (size_t)c->proto1 + (key.len > 0));
    agx_mp_write_str(&w, AGX_STR("call_id"));
    agx_mp_write_str(&w, call->call_id);
    if (c->proto1) {
        agx_mp_write_str(&w, AGX_STR("seq"));
        agx_mp_write_uint(&w, call->seq);
    }
    if (key.len > 0)
        agx_mp_write_str(&w, key);
    if (agx_mp_writer_end(&w, NULL) < 0)
        abort(); /* call_id and two short keys: bounded by the request that brought the call_id */
    parts[0] = agx_buf_peek(&rt->scratch);
    parts[1] = value;
    if (c->proto1)
        keep(rt, call, ev, parts, key.len > 0 ? 2 : 1);
    if (c->conn && !c->holding)
        rt->io.emit(rt->user, c->conn, ev, parts, key.len > 0 ? 2 : 1);
}

/* The one place that ends a call towards its client. */
static void terminal(struct agx_router *rt, struct agx_call *call, enum agx_rpc_event ev,
                     struct agx_str key, struct agx_str value)
{
    struct agx_client *c = call->client;

    if (call->done)
        return;
    call->done = true;
    agx_heap_remove(&rt->deadlines, &call->deadline);
    output(rt, call, ev, key, value);
    if (!c->proto1) {
        agx_call_forget(rt, call);
        return;
    }
    if (call->kept)
        list_ended(c, call);
    trim_kept(rt, c);
}

void agx_call_value(struct agx_router *rt, struct agx_call *call, struct agx_str value)
{
    enum agx_rpc_event ev = agx_rpc_value_event(call->kind);
    size_t room = 64 + call->call_id.len; /* keys, sequence, headers */

    if (call->done)
        return;
    if (value.len + room > call->client->max_message) {
        char text[160];

        (void)snprintf(text, sizeof(text), "a value of %zu bytes; the client takes messages of %zu",
                       value.len, call->client->max_message);
        agx_call_abort(rt, call, AGX_STR("MessageTooLarge"), text);
        return;
    }
    if (call->kind == AGX_RPC_UNARY)
        terminal(rt, call, ev, AGX_STR("value"), value);
    else
        output(rt, call, ev, AGX_STR("value"), value);
}

void agx_call_end(struct agx_router *rt, struct agx_call *call)
{
    terminal(rt, call, agx_rpc_end_event(call->kind), AGX_STR(""), AGX_STR(""));
}

void agx_call_error(struct agx_router *rt, struct agx_call *call, struct agx_str error)
{
    terminal(rt, call, agx_rpc_error_event(call->kind), AGX_STR("error"), error);
}

void agx_call_fail(struct agx_router *rt, struct agx_call *call, struct agx_str type,
                   const char *fmt, ...)
{
    _cleanup_buf_ struct agx_buf error = AGX_BUF_INIT(4096);
    struct agx_mp_writer w;
    char message[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    agx_mp_writer_init(&w, &error);
    agx_router_write_error(&w, type, message, INT_MIN);
    if (agx_mp_writer_end(&w, NULL) < 0)
        abort();
    agx_call_error(rt, call, agx_buf_peek(&error));
}

void agx_call_abort(struct agx_router *rt, struct agx_call *call, struct agx_str type,
                    const char *message)
{
    if (call->worker_owes)
        agx_router_send_cancel(rt, call);
    agx_call_fail(rt, call, type, "%s", message);
}

void agx_call_ack(struct agx_router *rt, struct agx_call *call, uint64_t seq)
{
    drop_kept(call, seq);
    if (call->lost_seq <= seq)
        call->lost_seq = 0;
    if (call->done && seq >= call->seq)
        agx_call_forget(rt, call);
}

void agx_call_replay(struct agx_router *rt, struct agx_call *call)
{
    static const char why[] = "an event was not kept until the client came back";

    if (call->lost_seq > 0 && !call->done) {
        agx_call_abort(rt, call, AGX_STR("ResultUnavailable"), why);
        return;
    }
    if (call->lost_seq > 0) {
        /* Once more the terminal event, under its own number, so that its acknowledgement ends the
         * call. */
        drop_kept(call, UINT64_MAX);
        unlist_ended(call->client, call);
        call->lost_seq = 0;
        call->seq--;
        call->done = false;
        agx_call_fail(rt, call, AGX_STR("ResultUnavailable"), "%s", why);
        return;
    }
    for (struct agx_kept *k = call->kept; k; k = k->next) {
        struct agx_str payload = agx_str_bytes(k->payload, k->len);

        rt->io.emit(rt->user, call->client->conn, k->ev, &payload, 1);
    }
    /* A credit that was lost with the connection, or given while there was none. */
    if (call->kind == AGX_RPC_BIDI && !call->done)
        agx_router_send_input_credit(rt, call);
}

void agx_call_grant(struct agx_router *rt, struct agx_call *call)
{
    struct agx_client *c = call->client;

    call->starved = false;
    if (call->done || c->proto1 || call->kind == AGX_RPC_UNARY)
        return;
    if (call->out_granted.n - AGX_MIN(call->out.n, call->out_granted.n) > AGX_CREDIT_ITEMS / 2 &&
        call->out_granted.bytes - AGX_MIN(call->out.bytes, call->out_granted.bytes) >
            AGX_CREDIT_BYTES / 2)
        return;
    if (c->conn && rt->io.queued(rt->user, c->conn) > rt->config.queue_high) {
        call->starved = true;
        c->starving = true;
        return;
    }
    call->out_granted.n = call->out.n + AGX_CREDIT_ITEMS;
    call->out_granted.bytes = call->out.bytes + AGX_CREDIT_BYTES;
    agx_router_send_credit(rt, call);
}

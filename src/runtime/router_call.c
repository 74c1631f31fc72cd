/*
 * router_call.c: one call: its output, what is kept of it, and its end. router_internal.h has the
 * state diagram.
 */
#include "runtime/router_internal.h"

#include "base/banned.h"
#include "base/mem.h"
#include "codec/frame.h"

#include <assert.h>
#include <stdarg.h>

struct agx_router_call *agx_router_call_new(struct agx_router *rt, struct agx_client *c,
                                            struct agx_str call_id, enum agx_remote_kind kind)
{
    struct agx_router_call *call = agx_new(struct agx_router_call);
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
    call->out_granted = (struct agx_credit)AGX_CREDIT_INIT;
    call->in_granted = call->out_granted;
    return call;
}

struct agx_router_call *agx_router_call_find(struct agx_router *rt, uint64_t id)
{
    return agx_map_get(&rt->by_id, agx_id_key(&id));
}

static void free_if_over(struct agx_router_call *call)
{
    if (call->client || call->worker_owes)
        return;
    assert(agx_list_is_empty(&call->unacked));
    free((char *)call->call_id.ptr);
    free(call);
}

void agx_router_call_forget(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_client *c = call->client;

    agx_heap_remove(&rt->deadlines, &call->deadline);
    agx_unacked_unlist(call);
    agx_unacked_drop(call, UINT64_MAX);
    (void)agx_map_remove(&c->calls, call->call_id);
    call->client = NULL;
    call->done = true;
    free_if_over(call);
}

void agx_router_call_worker_done(struct agx_router *rt, struct agx_router_call *call)
{
    (void)agx_map_remove(&rt->by_id, agx_id_key(&call->id));
    call->worker_owes = false;
    free_if_over(call);
}

/* Composes {call_id[, seq][, key: value]} and sends it; `value` is raw msgpack, not looked into. */
static void output(struct agx_router *rt, struct agx_router_call *call, enum agx_remote_event ev,
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
        abort(); /* cannot happen: call_id and two short keys are bounded by the request */
    parts[0] = agx_buf_peek(&rt->scratch);
    parts[1] = value;
    if (c->proto1)
        agx_unacked_output(rt, call, ev, parts, key.len > 0 ? 2 : 1);
    else if (c->conn)
        rt->io.emit(rt->user, c->conn, ev, parts, key.len > 0 ? 2 : 1);
}

/* The one place that ends a call towards its client. */
static void terminal(struct agx_router *rt, struct agx_router_call *call, enum agx_remote_event ev,
                     struct agx_str key, struct agx_str value)
{
    struct agx_client *c = call->client;

    if (call->done)
        return;
    call->done = true;
    agx_heap_remove(&rt->deadlines, &call->deadline);
    output(rt, call, ev, key, value);
    if (!c->proto1) {
        agx_router_call_forget(rt, call);
        return;
    }
    agx_unacked_ended(rt, call);
}

void agx_router_call_value(struct agx_router *rt, struct agx_router_call *call,
                           struct agx_str value)
{
    enum agx_remote_event ev = agx_remote_value_event(call->kind);
    size_t room = 64 + call->call_id.len; /* keys, sequence, headers */

    if (call->done)
        return;
    if (value.len + room > call->client->max_message) {
        char text[160];

        (void)snprintf(text, sizeof(text), "a value of %zu bytes; the client takes messages of %zu",
                       value.len, call->client->max_message);
        agx_router_call_abort(rt, call, AGX_STR("MessageTooLarge"), text);
        return;
    }
    if (call->kind == AGX_REMOTE_UNARY)
        terminal(rt, call, ev, AGX_STR("value"), value);
    else
        output(rt, call, ev, AGX_STR("value"), value);
}

void agx_router_call_end(struct agx_router *rt, struct agx_router_call *call)
{
    terminal(rt, call, agx_remote_end_event(call->kind), AGX_STR(""), AGX_STR(""));
}

void agx_router_call_error(struct agx_router *rt, struct agx_router_call *call,
                           struct agx_str error)
{
    terminal(rt, call, agx_remote_error_event(call->kind), AGX_STR("error"), error);
}

void agx_router_call_fail(struct agx_router *rt, struct agx_router_call *call, struct agx_str type,
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
    agx_router_call_error(rt, call, agx_buf_peek(&error));
}

void agx_router_call_abort(struct agx_router *rt, struct agx_router_call *call, struct agx_str type,
                           const char *message)
{
    if (call->worker_owes)
        agx_router_send_cancel(rt, call);
    agx_router_call_fail(rt, call, type, "%s", message);
}

void agx_router_call_ack(struct agx_router *rt, struct agx_router_call *call, uint64_t seq)
{
    agx_unacked_drop(call, seq);
    if (call->lost_seq <= seq)
        call->lost_seq = 0;
    if (call->done && seq >= call->seq)
        agx_router_call_forget(rt, call);
}

void agx_router_call_replay(struct agx_router *rt, struct agx_router_call *call)
{
    static const char why[] = "an event was not kept until the client came back";

    if (call->lost_seq > 0 && !call->done) {
        agx_router_call_abort(rt, call, AGX_STR("ResultUnavailable"), why);
        return;
    }
    if (call->lost_seq > 0) {
        /* Send the terminal event again, under its own number, so that its acknowledgement ends the
         * call. */
        agx_unacked_drop(call, UINT64_MAX);
        agx_unacked_unlist(call);
        call->lost_seq = 0;
        call->seq--;
        call->done = false;
        agx_router_call_fail(rt, call, AGX_STR("ResultUnavailable"), "%s", why);
        return;
    }
    agx_unacked_unsend(call);
    /* A credit that was lost with the connection, or given while there was none. */
    if (call->kind == AGX_REMOTE_BIDI && !call->done)
        agx_router_send_input_credit(rt, call);
}

void agx_router_call_grant(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_client *c = call->client;

    call->starved = false;
    if (call->done || c->proto1 || call->kind == AGX_REMOTE_UNARY)
        return;
    if (!agx_credit_due(&call->out_granted, &call->out, AGX_CREDIT_ITEMS))
        return;
    if (c->conn && rt->io.queued(rt->user, c->conn) > rt->config.queue_high) {
        call->starved = true;
        c->starving = true;
        return;
    }
    agx_credit_grant(&call->out_granted, &call->out, AGX_CREDIT_ITEMS);
    agx_router_send_credit(rt, call);
}

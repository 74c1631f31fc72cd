/*
 * router_unacked.c: the unacknowledged output of a session: kept because the client may lose its
 * connection, and sent as fast as the connection allows.
 *
 * The credit of running calls limits what is kept, and the session's limits do for ended calls. A
 * connection with a full queue gets no items: they wait here, where they are kept anyway, instead
 * of also in the queue.
 */
#include "runtime/router_internal.h"

#include "base/banned.h"

/* -------- ended calls, the oldest first -------- */

static void list_ended(struct agx_client *c, struct agx_router_call *call)
{
    agx_list_push_back(&c->ended, &call->ended);
    c->n_ended++;
}

void agx_unacked_unlist(struct agx_router_call *call)
{
    if (!agx_list_has(&call->ended))
        return;
    agx_list_remove(&call->ended);
    call->client->n_ended--;
}

/* -------- calls with something unsent, in turn -------- */

static struct agx_router_call *first_behind(const struct agx_client *c)
{
    return AGX_LIST_FIRST(&c->behind, struct agx_router_call, behind);
}

/* The only place that moves `unsent`: the list follows it. */
static void set_unsent(struct agx_router_call *call, struct agx_unacked *k)
{
    agx_list_remove(&call->behind);
    call->unsent = k;
    if (k)
        agx_list_push_back(&call->client->behind, &call->behind);
}

/* -------- what is kept -------- */

void agx_unacked_drop(struct agx_router_call *call, uint64_t seq)
{
    struct agx_unacked *k;

    while ((k = AGX_LIST_FIRST(&call->unacked, struct agx_unacked, node)) && k->seq <= seq) {
        if (k == call->unsent)
            set_unsent(call, AGX_LIST_NEXT(&call->unacked, k, node));
        agx_list_remove(&k->node);
        call->client->unacked_bytes -= k->len;
        free(k);
    }
}

static size_t total(const struct agx_str *parts, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

/* NULL: it cannot be kept. */
static struct agx_unacked *router_unacked_keep(struct agx_router_call *call,
                                               enum agx_remote_event ev,
                                               const struct agx_str *parts, size_t n)
{
    size_t len = total(parts, n), at = 0;
    struct agx_unacked *k = malloc(sizeof(*k) + len);

    if (!k)
        return NULL;
    *k = (struct agx_unacked){ .seq = call->seq, .ev = ev, .len = len };
    for (size_t i = 0; i < n; i++) {
        memcpy(k->payload + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    agx_list_push_back(&call->unacked, &k->node);
    call->client->unacked_bytes += len;
    return k;
}

void agx_unacked_ended(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_client *c = call->client;
    struct agx_router_call *oldest;

    /* What is unsent must not be forgotten: it is listed when it has been sent. */
    if (!agx_list_is_empty(&call->unacked) && !call->unsent && !agx_list_has(&call->ended))
        list_ended(c, call);
    while ((oldest = AGX_LIST_FIRST(&c->ended, struct agx_router_call, ended)) &&
           (c->n_ended > rt->config.unacked_calls_max ||
            c->unacked_bytes > rt->config.unacked_bytes_max)) {
        agx_unacked_unlist(oldest);
        agx_unacked_drop(oldest, UINT64_MAX);
        oldest->lost_seq = oldest->seq;
    }
}

/* -------- what is sent -------- */

/* The first of what is unsent. */
static void send_next(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_unacked *k = call->unsent;
    struct agx_str payload = agx_str_bytes(k->payload, k->len);

    rt->io.emit(rt->user, call->client->conn, k->ev, &payload, 1);
    call->sent_seq = AGX_MAX(call->sent_seq, k->seq); /* after a resume, older ones go once more */
    set_unsent(call, AGX_LIST_NEXT(&call->unacked, k, node));
}

static bool has_room(const struct agx_router *rt, const struct agx_client *c)
{
    return rt->io.queued(rt->user, c->conn) <= rt->config.queue_high;
}

static bool is_item(enum agx_remote_event ev)
{
    return ev == AGX_EV_STREAM_ITEM || ev == AGX_EV_BIDI_OUT;
}

void agx_unacked_output(struct agx_router *rt, struct agx_router_call *call,
                        enum agx_remote_event ev, const struct agx_str *parts, size_t n)
{
    struct agx_client *c = call->client;
    bool sends = c->conn && !c->holding;
    struct agx_unacked *k = NULL;

    if (call->unsent || total(parts, n) <= rt->config.unacked_bytes_max)
        k = router_unacked_keep(call, ev, parts, n);
    if (!k) {
        /* Too much to keep for a resume, but a connected client still gets it. */
        while (sends && call->unsent)
            send_next(rt, call);
        agx_unacked_drop(call, UINT64_MAX);
        call->lost_seq = call->seq;
    } else if (call->unsent) {
        return; /* earlier events go first */
    } else if (sends && is_item(ev) && !has_room(rt, c)) {
        set_unsent(call, k);
        return;
    }
    if (!sends)
        return;
    rt->io.emit(rt->user, c->conn, ev, parts, n);
    call->sent_seq = call->seq;
}

void agx_unacked_unsend(struct agx_router_call *call)
{
    if (agx_list_is_empty(&call->unacked))
        return;
    agx_unacked_unlist(call);
    set_unsent(call, AGX_LIST_FIRST(&call->unacked, struct agx_unacked, node));
}

void agx_unacked_pump(struct agx_router *rt, struct agx_client *c)
{
    struct agx_router_call *call;

    while ((call = first_behind(c)) && c->conn && !c->holding && has_room(rt, c)) {
        send_next(rt, call);
        if (!call->unsent && call->done)
            agx_unacked_ended(rt, call);
    }
}

void agx_unacked_disconnected(struct agx_router *rt, struct agx_client *c)
{
    struct agx_router_call *call;

    while ((call = first_behind(c))) {
        set_unsent(call, NULL);
        if (call->done)
            agx_unacked_ended(rt, call);
    }
}

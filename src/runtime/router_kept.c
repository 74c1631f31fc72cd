/*
 * router_kept.c: the output of a session: kept until it is acknowledged, for its client may lose
 * the connection, and sent as fast as that takes it.
 *
 * What is kept is bounded by the credit of the calls in progress, and by the session's bounds for
 * ended ones. A connection whose queue is full gets no items: they wait here, where they are
 * anyway, instead of a second time in the queue.
 */
#include "runtime/router_internal.h"

#include "base/banned.h"

/* -------- ended calls, the oldest first -------- */

static bool is_listed(const struct agx_router_call *call)
{
    return call->ended_prev || call->client->ended == call;
}

static void list_ended(struct agx_client *c, struct agx_router_call *call)
{
    call->ended_prev = c->ended_last;
    if (c->ended_last)
        c->ended_last->ended_next = call;
    else
        c->ended = call;
    c->ended_last = call;
    c->n_ended++;
}

void agx_kept_unlist(struct agx_router_call *call)
{
    struct agx_client *c = call->client;

    if (!is_listed(call))
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

/* -------- calls with something unsent, in turn -------- */

static void list_behind(struct agx_client *c, struct agx_router_call *call)
{
    call->behind_prev = c->behind_last;
    call->behind_next = NULL;
    if (c->behind_last)
        c->behind_last->behind_next = call;
    else
        c->behind = call;
    c->behind_last = call;
}

static void unlist_behind(struct agx_client *c, struct agx_router_call *call)
{
    if (call->behind_prev)
        call->behind_prev->behind_next = call->behind_next;
    else
        c->behind = call->behind_next;
    if (call->behind_next)
        call->behind_next->behind_prev = call->behind_prev;
    else
        c->behind_last = call->behind_prev;
}

/* The only place that moves `unsent`: the list follows it. */
static void set_unsent(struct agx_router_call *call, struct agx_kept *k)
{
    if (call->unsent)
        unlist_behind(call->client, call);
    call->unsent = k;
    if (k)
        list_behind(call->client, call);
}

/* -------- what is kept -------- */

void agx_kept_drop(struct agx_router_call *call, uint64_t seq)
{
    while (call->kept && call->kept->seq <= seq) {
        struct agx_kept *k = call->kept;

        if (k == call->unsent)
            set_unsent(call, k->next);
        call->kept = k->next;
        call->client->kept_bytes -= k->len;
        free(k);
    }
    if (!call->kept)
        call->kept_last = &call->kept;
}

static size_t total(const struct agx_str *parts, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

/* NULL: it cannot be kept. */
static struct agx_kept *keep(struct agx_router_call *call, enum agx_remote_event ev,
                             const struct agx_str *parts, size_t n)
{
    size_t len = total(parts, n), at = 0;
    struct agx_kept *k = malloc(sizeof(*k) + len);

    if (!k)
        return NULL;
    *k = (struct agx_kept){ .seq = call->seq, .ev = ev, .len = len };
    for (size_t i = 0; i < n; i++) {
        memcpy(k->payload + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    *call->kept_last = k;
    call->kept_last = &k->next;
    call->client->kept_bytes += len;
    return k;
}

void agx_kept_ended(struct agx_router *rt, struct agx_router_call *call)
{
    struct agx_client *c = call->client;

    /* What is unsent must not be forgotten: it is listed when it has been sent. */
    if (call->kept && !call->unsent && !is_listed(call))
        list_ended(c, call);
    while (c->ended &&
           (c->n_ended > rt->config.kept_calls_max || c->kept_bytes > rt->config.kept_bytes_max)) {
        struct agx_router_call *oldest = c->ended;

        agx_kept_unlist(oldest);
        agx_kept_drop(oldest, UINT64_MAX);
        oldest->lost_seq = oldest->seq;
    }
}

/* -------- what is sent -------- */

/* The first of what is unsent. */
static void send_next(struct agx_router *rt, struct agx_router_call *call)
{
    const struct agx_kept *k = call->unsent;
    struct agx_str payload = agx_str_bytes(k->payload, k->len);

    rt->io.emit(rt->user, call->client->conn, k->ev, &payload, 1);
    call->sent_seq = AGX_MAX(call->sent_seq, k->seq); /* after a resume, older ones go once more */
    set_unsent(call, k->next);
}

static bool has_room(const struct agx_router *rt, const struct agx_client *c)
{
    return rt->io.queued(rt->user, c->conn) <= rt->config.queue_high;
}

static bool is_item(enum agx_remote_event ev)
{
    return ev == AGX_EV_STREAM_ITEM || ev == AGX_EV_BIDI_OUT;
}

void agx_kept_output(struct agx_router *rt, struct agx_router_call *call, enum agx_remote_event ev,
                     const struct agx_str *parts, size_t n)
{
    struct agx_client *c = call->client;
    bool sends = c->conn && !c->holding;
    struct agx_kept *k = NULL;

    if (call->unsent || total(parts, n) <= rt->config.kept_bytes_max)
        k = keep(call, ev, parts, n);
    if (!k) {
        /* Lost to a resume, but not to a client that is there. */
        while (sends && call->unsent)
            send_next(rt, call);
        agx_kept_drop(call, UINT64_MAX);
        call->lost_seq = call->seq;
    } else if (call->unsent) {
        return; /* its turn comes after what is before it */
    } else if (sends && is_item(ev) && !has_room(rt, c)) {
        set_unsent(call, k);
        return;
    }
    if (!sends)
        return;
    rt->io.emit(rt->user, c->conn, ev, parts, n);
    call->sent_seq = call->seq;
}

void agx_kept_unsend(struct agx_router_call *call)
{
    if (!call->kept)
        return;
    agx_kept_unlist(call);
    set_unsent(call, call->kept);
}

void agx_kept_pump(struct agx_router *rt, struct agx_client *c)
{
    while (c->behind && c->conn && !c->holding && has_room(rt, c)) {
        struct agx_router_call *call = c->behind;

        send_next(rt, call);
        if (!call->unsent && call->done)
            agx_kept_ended(rt, call);
    }
}

void agx_kept_disconnected(struct agx_router *rt, struct agx_client *c)
{
    while (c->behind) {
        struct agx_router_call *call = c->behind;

        set_unsent(call, NULL);
        if (call->done)
            agx_kept_ended(rt, call);
    }
}

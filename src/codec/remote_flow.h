/*
 * remote_flow.h: the counters of the client of a remote call, and the rules that follow from them:
 * the order of events, what may be sent, what is sent again after a lost connection
 * (docs/design/runtime-protocol.md, 2.1 and 2.2). This code has numbers only; the client keeps
 * items, requests and pieces of input, in any form.
 *
 * Invariants:
 *  (1) an event is accepted once: `seq` ascends, and nothing is accepted after the terminal event;
 *  (2) in_acked <= in_sent <= in_queued: numbers of pieces of input (1, 2, ...: the items, then the
 *      end). The server has those up to in_acked, those up to in_sent were sent on this connection,
 *      and the client holds the ones from in_acked + 1 to in_queued.
 */
#ifndef AGX_CODEC_REMOTE_FLOW_H
#define AGX_CODEC_REMOTE_FLOW_H

#include "base/limits.h"
#include "codec/credit.h"
#include "codec/remote_call.h"

/* What an event of the server means to the client of its call. */
enum agx_flow_event {
    AGX_FLOW_NOTHING, /* for another kind of call, a repetition, or after the end */
    AGX_FLOW_ITEM,
    AGX_FLOW_RESULT, /* a value, and the end as well */
    AGX_FLOW_END,
    AGX_FLOW_ERROR,
    /* The server is broken: the order of its events cannot be trusted. */
    AGX_FLOW_DISORDER,
    AGX_FLOW_EXCESS,
};

struct agx_remote_flow {
    enum agx_remote_kind kind;
    bool known;   /* the server has sent something about it, so it has the request */
    bool closed;  /* the server sends no more about it */
    uint64_t seq; /* (1): of the last received event */
    struct agx_credit received, taken, granted; /* of items */

    uint64_t in_acked, in_sent, in_queued; /* (2) */
    struct agx_credit in, in_granted;
    bool in_ended; /* the end of the input is queued */
};

void agx_remote_flow_init(struct agx_remote_flow *f, enum agx_remote_kind kind);

/* What an event means by its name alone, for servers that do not number their events. */
enum agx_flow_event agx_flow_meaning(enum agx_remote_kind kind, enum agx_remote_event ev);

/*
 * An event has come, with that number and, for an item, that many bytes of raw value. The event is
 * counted unless the answer is one of the last two; a terminal event closes the call.
 */
enum agx_flow_event agx_remote_flow_event(struct agx_remote_flow *f, enum agx_remote_event ev,
                                          uint64_t seq, size_t size);

/* The error text for AGX_FLOW_DISORDER and _EXCESS ("the server sent ..."); NULL for all others. */
const char *agx_flow_fault(enum agx_flow_event e);

/* The user has taken items. True: a credit is due; `granted` already has its totals. */
static inline bool agx_remote_flow_grant(struct agx_remote_flow *f)
{
    if (!agx_credit_due(&f->granted, &f->taken, AGX_CREDIT_ITEMS_GROWN))
        return false;
    agx_credit_grant(&f->granted, &f->taken, AGX_CREDIT_ITEMS_GROWN);
    return true;
}

/* ---- input ---- */

static inline bool agx_remote_flow_may_send(const struct agx_remote_flow *f)
{
    return agx_credit_left(&f->in_granted, &f->in);
}

/* Counts a piece of input to be sent; its number is in_queued + 1, as it was before the call. */
void agx_remote_flow_queue_item(struct agx_remote_flow *f, size_t size);
void agx_remote_flow_queue_end(struct agx_remote_flow *f);

/*
 * These return how many of the oldest pieces can be dropped. A number past what was sent is a
 * mistake of the server, and must not lose input.
 */
/* The server has the input up to `seq`. */
size_t agx_remote_flow_acked(struct agx_remote_flow *f, uint64_t seq);
/* The server accepts more input, and has the input up to `seq`. */
size_t agx_remote_flow_credit(struct agx_remote_flow *f, uint64_t n, uint64_t bytes, uint64_t seq);
/* On a new connection: the server knows the call and has its input up to `seq`; send the rest. */
size_t agx_remote_flow_known(struct agx_remote_flow *f, uint64_t seq);

/* On a new connection: the server does not know the call. True: it never did, so send the request
 * again; false: it has forgotten it, and the function may have run. */
bool agx_remote_flow_unknown(const struct agx_remote_flow *f);

/* The request is sent: all input must follow it. */
void agx_remote_flow_begin(struct agx_remote_flow *f);

/* ---- acknowledgements ---- */

/* The weight of an event towards the next acknowledgement: 1, and 1 more for each
 * AGX_CLIENT_ACK_WEIGHT bytes, because the server keeps them until then. */
static inline size_t agx_ack_weight(size_t bytes)
{
    return 1 + bytes / AGX_CLIENT_ACK_WEIGHT;
}

/* Acknowledge at once, rather than AGX_CLIENT_ACK_MS after the first event? */
static inline bool agx_ack_due(size_t weight)
{
    return weight >= AGX_CLIENT_ACK_EVENTS;
}

#endif

/*
 * remote_flow.h: what the client of a remote call counts, and the rules that follow from the
 * counts: which event may follow which, what may be sent, what is sent again after a lost
 * connection (docs/design/runtime-protocol.md, 2.1 and 2.2). Numbers only: items, requests and
 * pieces of input are the client's, in whatever form it holds them.
 *
 * Invariants:
 *  (1) an event is taken once: `seq` ascends, and nothing is taken after the terminal event;
 *  (2) in_acked <= in_sent <= in_queued: numbers of pieces of input (1, 2, ...: the items, then the
 *      end). The server has those up to in_acked, those up to in_sent went out on this connection,
 *      and the client holds the ones from in_acked + 1 to in_queued.
 */
#ifndef AGX_CODEC_REMOTE_FLOW_H
#define AGX_CODEC_REMOTE_FLOW_H

#include "base/limits.h"
#include "codec/credit.h"
#include "codec/remote_call.h"

/* What an event of the server means to the client of its call. */
enum agx_flow_event {
    AGX_FLOW_NOTHING, /* for another kind of call, or it was here before, or comes after the end */
    AGX_FLOW_ITEM,
    AGX_FLOW_RESULT, /* a value and the end at once */
    AGX_FLOW_END,
    AGX_FLOW_ERROR,
    /* The server is broken: nothing of what it says can be trusted to be in its place. */
    AGX_FLOW_DISORDER,
    AGX_FLOW_EXCESS,
};

struct agx_remote_flow {
    enum agx_remote_kind kind;
    bool known;   /* the server has said something about it: it has the request */
    bool closed;  /* the server says no more about it */
    uint64_t seq; /* (1): of the last event that came */
    struct agx_credit received, taken, granted; /* of items */

    uint64_t in_acked, in_sent, in_queued; /* (2) */
    struct agx_credit in, in_granted;
    bool in_ended; /* the end of the input is queued */
};

void agx_remote_flow_init(struct agx_remote_flow *f, enum agx_remote_kind kind);

/* What an event means by its name alone; all there is to know of a server that does not number. */
enum agx_flow_event agx_flow_meaning(enum agx_remote_kind kind, enum agx_remote_event ev);

/*
 * An event has come, with that number and, for an item, that many bytes of raw value. All but the
 * last two answers stand: a terminal event has closed the call.
 */
enum agx_flow_event agx_remote_flow_event(struct agx_remote_flow *f, enum agx_remote_event ev,
                                          uint64_t seq, size_t size);

/* What to say of a server whose event was AGX_FLOW_DISORDER or _EXCESS; NULL for all others. */
const char *agx_flow_fault(enum agx_flow_event e);

/* The user has taken items: true when a credit has become due, which `granted` already shows. */
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

/* A piece of input is to be sent, under the number in_queued + 1 that it had until now. */
void agx_remote_flow_queue_item(struct agx_remote_flow *f, size_t size);
void agx_remote_flow_queue_end(struct agx_remote_flow *f);

/*
 * These say how many of the oldest pieces can be dropped. A number that is past what went out is
 * the server's mistake, and must not lose input.
 */
/* The server has the input up to `seq`. */
size_t agx_remote_flow_acked(struct agx_remote_flow *f, uint64_t seq);
/* It takes more input, and has what came up to `seq`. */
size_t agx_remote_flow_credit(struct agx_remote_flow *f, uint64_t n, uint64_t bytes, uint64_t seq);
/* On a new connection: it knows the call and has its input up to `seq`; the rest is to be sent. */
size_t agx_remote_flow_known(struct agx_remote_flow *f, uint64_t seq);

/* On a new connection: it does not know the call. True: it never did, so the request is to be sent
 * again; false: it has forgotten it, and the function may have run. */
bool agx_remote_flow_unknown(const struct agx_remote_flow *f);

/* The request goes out: all input is to follow it. */
void agx_remote_flow_begin(struct agx_remote_flow *f);

/* ---- acknowledgements ---- */

/* What an event counts towards the next acknowledgement: once more for each so many bytes, for the
 * server keeps them until then. */
static inline size_t agx_ack_weight(size_t bytes)
{
    return 1 + bytes / AGX_CLIENT_ACK_WEIGHT;
}

/* Whether to acknowledge at once rather than AGX_CLIENT_ACK_MS after the first event. */
static inline bool agx_ack_due(size_t weight)
{
    return weight >= AGX_CLIENT_ACK_EVENTS;
}

#endif

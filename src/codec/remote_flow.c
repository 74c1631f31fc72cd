/* remote_flow.c: the rules of a call's numbers. */
#include "codec/remote_flow.h"

#include "base/macros.h"

#include "base/banned.h"

void agx_remote_flow_init(struct agx_remote_flow *f, enum agx_remote_kind kind)
{
    *f = (struct agx_remote_flow){ .kind = kind,
                                   .granted = AGX_CREDIT_INIT,
                                   .in_granted = AGX_CREDIT_INIT };
}

enum agx_flow_event agx_flow_meaning(enum agx_remote_kind kind, enum agx_remote_event ev)
{
    static const uint8_t meanings[][AGX_EV_COUNT] = {
        [AGX_REMOTE_UNARY] = { [AGX_EV_UNARY_RESULT] = AGX_FLOW_RESULT,
                               [AGX_EV_UNARY_ERROR] = AGX_FLOW_ERROR },
        [AGX_REMOTE_STREAM] = { [AGX_EV_STREAM_ITEM] = AGX_FLOW_ITEM,
                                [AGX_EV_STREAM_END] = AGX_FLOW_END,
                                [AGX_EV_STREAM_ERROR] = AGX_FLOW_ERROR },
        [AGX_REMOTE_BIDI] = { [AGX_EV_BIDI_OUT] = AGX_FLOW_ITEM,
                              [AGX_EV_BIDI_END] = AGX_FLOW_END,
                              [AGX_EV_BIDI_ERROR] = AGX_FLOW_ERROR },
    };

    return (enum agx_flow_event)meanings[kind][ev];
}

/* An error may skip numbers: it reports that events before it are lost. */
static bool is_in_order(const struct agx_remote_flow *f, enum agx_flow_event e, uint64_t seq)
{
    return seq == f->seq + 1 || (e == AGX_FLOW_ERROR && seq > f->seq);
}

enum agx_flow_event agx_remote_flow_event(struct agx_remote_flow *f, enum agx_remote_event ev,
                                          uint64_t seq, size_t size)
{
    enum agx_flow_event e = agx_flow_meaning(f->kind, ev);

    /* Ignores events that the server sends again after a resume. */
    if (e == AGX_FLOW_NOTHING || f->closed || (seq > 0 && seq <= f->seq))
        return AGX_FLOW_NOTHING;
    if (!is_in_order(f, e, seq))
        return AGX_FLOW_DISORDER;
    if (e == AGX_FLOW_ITEM && !agx_credit_left(&f->granted, &f->received))
        return AGX_FLOW_EXCESS;
    f->seq = seq;
    f->known = true;
    if (e == AGX_FLOW_ITEM)
        agx_credit_count(&f->received, size);
    else
        f->closed = true;
    return e;
}

const char *agx_flow_fault(enum agx_flow_event e)
{
    if (e == AGX_FLOW_DISORDER)
        return "an event out of order";
    return e == AGX_FLOW_EXCESS ? "more items than were granted" : NULL;
}

void agx_remote_flow_queue_item(struct agx_remote_flow *f, size_t size)
{
    f->in_queued++;
    agx_credit_count(&f->in, size);
}

void agx_remote_flow_queue_end(struct agx_remote_flow *f)
{
    f->in_queued++;
    f->in_ended = true;
}

size_t agx_remote_flow_acked(struct agx_remote_flow *f, uint64_t seq)
{
    uint64_t before = f->in_acked;

    seq = AGX_MIN(seq, f->in_sent);
    f->in_acked = AGX_MAX(seq, before);
    return (size_t)(f->in_acked - before);
}

size_t agx_remote_flow_credit(struct agx_remote_flow *f, uint64_t n, uint64_t bytes, uint64_t seq)
{
    f->known = true;
    (void)agx_credit_raise(&f->in_granted, n, bytes);
    return agx_remote_flow_acked(f, seq);
}

size_t agx_remote_flow_known(struct agx_remote_flow *f, uint64_t seq)
{
    size_t dropped;

    f->known = true;
    dropped = agx_remote_flow_acked(f, seq);
    f->in_sent = f->in_acked;
    return dropped;
}

bool agx_remote_flow_unknown(const struct agx_remote_flow *f)
{
    return !f->known;
}

void agx_remote_flow_begin(struct agx_remote_flow *f)
{
    f->in_sent = f->in_acked;
}

/*
 * fuzz_remote_flow.c: any events of a server about one call, in any order, mixed with any actions
 * of the client. The invariants of codec/remote_flow.h hold, the number of dropped input items is
 * the one that it reports, and it accepts nothing after the end.
 */
#include "codec/remote_flow.h"
#include "tests/support/fuzz.h"

static void check_event(struct agx_remote_flow *f, uint64_t seq, size_t size, uint8_t ev)
{
    struct agx_remote_flow before = *f;
    enum agx_flow_event e =
        agx_remote_flow_event(f, (enum agx_remote_event)(ev % AGX_EV_COUNT), seq, size);

    if (e == AGX_FLOW_NOTHING || agx_flow_fault(e)) {
        FUZZ_CHECK(f->seq == before.seq && f->closed == before.closed);
        FUZZ_CHECK(f->received.n == before.received.n);
        return;
    }
    FUZZ_CHECK(!before.closed && f->known && f->seq == seq && seq > before.seq);
    FUZZ_CHECK(f->closed == (e != AGX_FLOW_ITEM));
    if (e != AGX_FLOW_ERROR)
        FUZZ_CHECK(seq == before.seq + 1);
    if (e == AGX_FLOW_ITEM)
        FUZZ_CHECK(f->received.n <= f->granted.n);
}

/* The user takes what has come. */
static void take(struct agx_remote_flow *f, size_t size)
{
    struct agx_credit before = f->granted;

    if (f->taken.n == f->received.n)
        return;
    agx_credit_count(&f->taken, size);
    (void)agx_remote_flow_grant(f);
    FUZZ_CHECK(f->granted.n >= before.n && f->granted.bytes >= before.bytes);
    FUZZ_CHECK(f->granted.n > f->taken.n + AGX_CREDIT_ITEMS / 2 - 1);
}

static void check_dropped(const struct agx_remote_flow *f, uint64_t acked, size_t dropped)
{
    FUZZ_CHECK(f->in_acked == acked + dropped);
}

static void step(struct agx_remote_flow *f, uint8_t op, uint8_t a, uint8_t b)
{
    uint64_t acked = f->in_acked;

    switch (op % 8) {
    case 0:
        check_event(f, a, b, op >> 3);
        break;
    case 1: /* the next event, which the one before rarely is */
        check_event(f, f->seq + 1, b, op >> 3);
        break;
    case 2:
        take(f, a);
        break;
    case 3:
        check_dropped(f, acked, agx_remote_flow_credit(f, a, (uint64_t)b << 10, b));
        break;
    case 4:
        check_dropped(f, acked, agx_remote_flow_known(f, a));
        FUZZ_CHECK(f->in_sent == f->in_acked && !agx_remote_flow_unknown(f));
        break;
    case 5:
        if (!f->in_ended && agx_remote_flow_may_send(f))
            agx_remote_flow_queue_item(f, b);
        else if (!f->in_ended)
            agx_remote_flow_queue_end(f);
        break;
    case 6:
        if (f->in_sent < f->in_queued)
            f->in_sent++;
        break;
    default:
        agx_remote_flow_begin(f);
    }
    FUZZ_CHECK(f->in_acked <= f->in_sent && f->in_sent <= f->in_queued);
    FUZZ_CHECK(f->in_acked >= acked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_remote_flow f;

    if (size == 0)
        return 0;
    agx_remote_flow_init(&f, (enum agx_remote_kind)(data[0] % 3));
    for (size_t i = 1; i + 3 <= size; i += 3)
        step(&f, data[i], data[i + 1], data[i + 2]);
    return 0;
}

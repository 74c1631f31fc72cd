/*
 * guard.h: how often a peer may do what costs us more than it: a bucket of tokens that fills with
 * time. Time is an argument.
 */
#ifndef AGX_RPC_GUARD_H
#define AGX_RPC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct agx_rpc_guard {
    uint32_t burst; /* so often at once */
    uint32_t per_s; /* and so often a second in the long run */
    uint64_t milli; /* thousandths of a token that are left */
    uint64_t at_ms; /* when they were counted */
};

void agx_rpc_guard_init(struct agx_rpc_guard *g, uint32_t burst, uint32_t per_s, uint64_t now_ms);

/* False: that was one too many. */
bool agx_rpc_guard_spend(struct agx_rpc_guard *g, uint64_t now_ms);

/* Gives one back: we did something that makes another one likely. */
void agx_rpc_guard_refund(struct agx_rpc_guard *g);

#endif

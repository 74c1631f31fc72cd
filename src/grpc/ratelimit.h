/*
 * ratelimit.h: a rate limit for operations that cost us more than the peer: a token bucket that
 * refills with time. Time is an argument.
 */
#ifndef AGX_GRPC_RATELIMIT_H
#define AGX_GRPC_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

struct agx_grpc_ratelimit {
    uint32_t burst; /* capacity: operations at once */
    uint32_t per_s; /* operations per second in the long run */
    uint64_t milli; /* remaining tokens, in thousandths */
    uint64_t at_ms; /* time of the last refill */
};

void agx_grpc_ratelimit_init(struct agx_grpc_ratelimit *g, uint32_t burst, uint32_t per_s,
                             uint64_t now_ms);

/* Takes a token. False: none was left. */
bool agx_grpc_ratelimit_spend(struct agx_grpc_ratelimit *g, uint64_t now_ms);

/* Returns a token, when we did something that provokes another operation. */
void agx_grpc_ratelimit_refund(struct agx_grpc_ratelimit *g);

#endif

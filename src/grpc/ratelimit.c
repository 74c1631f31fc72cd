/* ratelimit.c: a token bucket. Invariant: milli <= burst * 1000. */
#include "grpc/ratelimit.h"

#include "base/macros.h"

#include "base/banned.h"

enum { TOKEN = 1000 };

void agx_grpc_ratelimit_init(struct agx_grpc_ratelimit *g, uint32_t burst, uint32_t per_s,
                             uint64_t now_ms)
{
    *g = (struct agx_grpc_ratelimit){
        .burst = burst, .per_s = per_s, .milli = (uint64_t)burst * TOKEN, .at_ms = now_ms
    };
}

static void ratelimit_add(struct agx_grpc_ratelimit *g, uint64_t milli)
{
    uint64_t room = (uint64_t)g->burst * TOKEN - g->milli;

    g->milli += AGX_MIN(milli, room);
}

bool agx_grpc_ratelimit_spend(struct agx_grpc_ratelimit *g, uint64_t now_ms)
{
    uint64_t passed = AGX_MIN(now_ms - g->at_ms, UINT32_MAX); /* no overflow below */

    ratelimit_add(g, passed * g->per_s); /* N tokens per second are N millitokens per millisecond */
    g->at_ms = now_ms;
    if (g->milli < TOKEN)
        return false;
    g->milli -= TOKEN;
    return true;
}

void agx_grpc_ratelimit_refund(struct agx_grpc_ratelimit *g)
{
    ratelimit_add(g, TOKEN);
}

/*
 * fence_legacy.h: what fence_pass.h does, on hosts whose engine keeps its rules in the older packet
 * filter (ip_tables). nftables does not show that one, and what it accepts does not count there: so
 * the program that such a host has for it is run.
 */
#ifndef AGX_BACKEND_FENCE_LEGACY_H
#define AGX_BACKEND_FENCE_LEGACY_H

#include "base/error.h"

/* Both rules stand in the chain of that filter, or none when they are not `wanted`. Nothing is done
 * where there is no such chain. Blocks; any thread. */
int agx_fence_legacy_set(const char *mark, bool wanted, struct agx_error **err) AGX_MUST_CHECK;

#endif

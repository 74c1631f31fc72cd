/*
 * fence_pass.h: the way through an engine's packet filter, for members that no engine routes for.
 *
 * Docker lets nothing be forwarded but what its own rules name, and keeps a chain for the rules of
 * others, DOCKER-USER. Where that chain is, two rules of ours stand at its head: what comes from
 * our links and what goes to them is accepted there. That ends Docker's table alone: our own has
 * its say as before. Our rules are known by their comment, the name of our table.
 */
#ifndef AGX_BACKEND_FENCE_PASS_H
#define AGX_BACKEND_FENCE_PASS_H

#include "base/error.h"

#include <stdint.h>

/* Where the rules are. */
#define AGX_FENCE_PASS_TABLE "filter"
#define AGX_FENCE_PASS_CHAIN "DOCKER-USER"

struct nft_ctx;

/* Both rules stand, or none when they are not `wanted`. Without the chain the older packet filter
 * is looked at (fence_legacy.h); where it is not there either, there is nothing to do.
 * Blocks; for the thread that owns `nft`. */
int agx_fence_pass_set(struct nft_ctx *nft, const char *mark, bool wanted,
                       struct agx_error **err) AGX_MUST_CHECK;

/* The handles of the rules with that mark in the JSON of the chain, at most `max`; how many there
 * are. */
size_t agx_fence_pass_find(const char *json, const char *mark, uint64_t *ret, size_t max);

#endif

/* fence_nft.h: commands to libnftables, and what it says to them. */
#ifndef AGX_BACKEND_FENCE_NFT_H
#define AGX_BACKEND_FENCE_NFT_H

#include <stdbool.h>

struct nft_ctx;

/*
 * Runs the commands: one transaction, all of it or nothing. NULL, or the library's complaint, which
 * lives until its next use.
 *
 * The library first reads what there is. Where somebody else changes rules at that moment it gives
 * up, before it has asked for anything: then it is tried again, AGX_FENCE_NFT_TRIES times in all.
 */
const char *agx_fence_nft_run(struct nft_ctx *nft, const char *script);

/* Whether a complaint is that: nothing is known of what was asked for. */
bool agx_fence_nft_is_busy(const char *complaint);

#endif

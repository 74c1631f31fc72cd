/* firewall_nft.h: runs libnftables commands and returns its messages. */
#ifndef AGX_BACKEND_NET_FIREWALL_NFT_H
#define AGX_BACKEND_NET_FIREWALL_NFT_H

#include <stdbool.h>

struct nft_ctx;

/*
 * Runs the commands as one transaction, in full or not at all. Returns NULL, or the library's error
 * text, which is valid until the next call.
 *
 * The library first reads the existing rules. If another program changes rules at that moment, it
 * gives up before it has sent anything; the commands are then tried again, AGX_FIREWALL_NFT_TRIES
 * times in all.
 */
const char *agx_firewall_nft_run(struct nft_ctx *nft, const char *script);

/* Whether an error text means just that: the outcome of the commands is then unknown. */
bool agx_firewall_nft_is_busy(const char *complaint);

#endif

/* firewall_nft.c: the one place that runs nftables commands. */
#include "backend/net/firewall_nft.h"

#include "base/limits.h"

#include <nftables/libnftables.h>
#include <string.h>

#include "base/banned.h"

static const char *firewall_nft_run(struct nft_ctx *nft, const char *script)
{
    const char *text;

    if (nft_run_cmd_from_buffer(nft, script) == 0)
        return NULL;
    text = nft_ctx_get_error_buffer(nft);
    return text ? text : "";
}

bool agx_firewall_nft_is_busy(const char *complaint)
{
    return strstr(complaint, "cache initialization failed") != NULL;
}

const char *agx_firewall_nft_run(struct nft_ctx *nft, const char *script)
{
    const char *complaint = firewall_nft_run(nft, script);

    for (int i = 1; i < AGX_FIREWALL_NFT_TRIES && complaint; i++) {
        if (!agx_firewall_nft_is_busy(complaint))
            break;
        complaint = firewall_nft_run(nft, script);
    }
    return complaint;
}

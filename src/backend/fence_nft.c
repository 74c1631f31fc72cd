/* fence_nft.c: the one place that runs nftables commands. */
#include "backend/fence_nft.h"

#include "base/limits.h"

#include <nftables/libnftables.h>
#include <string.h>

#include "base/banned.h"

static const char *run(struct nft_ctx *nft, const char *script)
{
    const char *text;

    if (nft_run_cmd_from_buffer(nft, script) == 0)
        return NULL;
    text = nft_ctx_get_error_buffer(nft);
    return text ? text : "";
}

bool agx_fence_nft_is_busy(const char *complaint)
{
    return strstr(complaint, "cache initialization failed") != NULL;
}

const char *agx_fence_nft_run(struct nft_ctx *nft, const char *script)
{
    const char *complaint = run(nft, script);

    for (int i = 1; i < AGX_FENCE_NFT_TRIES && complaint; i++) {
        if (!agx_fence_nft_is_busy(complaint))
            break;
        complaint = run(nft, script);
    }
    return complaint;
}

/* firewall_docker_user.c: reads the chain as JSON, adds missing rules and deletes surplus ones. */
#include "backend/net/firewall_docker_user.h"

#include "backend/net/firewall_legacy.h"
#include "backend/net/firewall_nft.h"
#include "base/buf.h"

#include <jansson.h>
#include <nftables/libnftables.h>

#include "base/banned.h"

/* Our own rules, and some duplicates from a restored copy; more are deleted at the next check. The
 * commands for that are short. */
enum { OURS = 2, RULES_MAX = 16, TEXT_MAX = 4096 };

#define CHAIN "ip " AGX_FIREWALL_PASS_TABLE " " AGX_FIREWALL_PASS_CHAIN

size_t agx_firewall_docker_user_find(const char *json, const char *mark, uint64_t *ret, size_t max)
{
    json_t *root = json_loads(json, 0, NULL);
    const json_t *list = json_object_get(root, "nftables"), *each;
    size_t i, n = 0;

    json_array_foreach(list, i, each)
    {
        const json_t *rule = json_object_get(each, "rule");
        const char *comment = json_string_value(json_object_get(rule, "comment"));

        if (comment && strcmp(comment, mark) == 0 && n < max)
            ret[n++] = (uint64_t)json_integer_value(json_object_get(rule, "handle"));
    }
    json_decref(root);
    return n;
}

/* 1 when there is such a chain; 0 when there is none, also where the kernel has no such filter. A
 * chain that could not be read does not count as missing: no later event would tell us that it
 * exists. */
static int list_ours(struct nft_ctx *nft, const char *mark, uint64_t *ret, size_t *ret_n,
                     struct agx_error **err)
{
    unsigned flags = nft_ctx_output_get_flags(nft);
    const char *complaint;
    int r = 0;

    nft_ctx_output_set_flags(nft, NFT_CTX_OUTPUT_JSON | NFT_CTX_OUTPUT_HANDLE);
    complaint = agx_firewall_nft_run(nft, "list chain " CHAIN);
    if (!complaint) {
        *ret_n =
            agx_firewall_docker_user_find(nft_ctx_get_output_buffer(nft), mark, ret, RULES_MAX);
        r = 1;
    } else if (agx_firewall_nft_is_busy(complaint)) {
        r = agx_error_set(err, AGX_UNAVAILABLE,
                          "read the chain '" AGX_FIREWALL_PASS_CHAIN "' of the packet filter: it "
                          "changed each time");
    }
    nft_ctx_output_set_flags(nft, flags);
    return r;
}

int agx_firewall_docker_user_set(struct nft_ctx *nft, const char *mark, bool wanted,
                                 struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(TEXT_MAX);
    _cleanup_free_ char *script = NULL;
    uint64_t handles[RULES_MAX];
    const char *complaint;
    size_t n = 0;
    int r = list_ours(nft, mark, handles, &n, err);

    if (r <= 0)
        return r < 0 ? r : agx_firewall_legacy_set(mark, wanted, err);
    r = 0;
    if (n == (wanted ? OURS : 0))
        return 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = agx_buf_printf(&text, "delete rule " CHAIN " handle %llu\n",
                           (unsigned long long)handles[i]);
    if (r == 0 && wanted)
        r = agx_buf_printf(&text,
                           "insert rule " CHAIN " oifname \"agx*\" counter accept comment \"%s\"\n"
                           "insert rule " CHAIN " iifname \"agx*\" counter accept comment \"%s\"\n",
                           mark, mark);
    script = r == 0 ? agx_buf_take_cstr(&text) : NULL;
    if (!script)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "no memory for rules");
    complaint = agx_firewall_nft_run(nft, script);
    return complaint ? agx_error_set(err, AGX_INTERNAL,
                                     "let packets of sandboxes through the chain "
                                     "'" AGX_FIREWALL_PASS_CHAIN "' of the packet filter: %s",
                                     complaint)
                     : 0;
}

/* Commands to libnftables; this program defines its functions, which are scripted. */
#include "backend/net/firewall_nft.h"

#include "backend/net/firewall_docker_user.h"
#include "base/limits.h"
#include "tests/support/test.h"

#include <nftables/libnftables.h>

#include "base/banned.h"

#define INTERRUPTED "Error: cache initialization failed: Interrupted system call\n"

static struct {
    int interrupted;   /* so many times somebody else changes rules */
    const char *fault; /* and then this; NULL: it works */
    int runs;
    const char *said;
} script;

int nft_run_cmd_from_buffer(struct nft_ctx *nft, const char *buf)
{
    ASSERT_NULL(nft);
    ASSERT_NOT_NULL(strstr(buf, "list "));
    script.said = script.runs++ < script.interrupted ? INTERRUPTED : script.fault;
    return script.said ? -1 : 0;
}

const char *nft_ctx_get_error_buffer(struct nft_ctx *nft)
{
    ASSERT_NULL(nft);
    return script.said;
}

unsigned nft_ctx_output_get_flags(struct nft_ctx *nft)
{
    ASSERT_NULL(nft);
    return 0;
}

void nft_ctx_output_set_flags(struct nft_ctx *nft, unsigned flags)
{
    ASSERT_NULL(nft);
    (void)flags;
}

static const char *run(int interrupted, const char *fault)
{
    script.interrupted = interrupted;
    script.fault = fault;
    script.runs = 0;
    return agx_firewall_nft_run(NULL, "list tables");
}

TEST(what_works_is_done_once)
{
    ASSERT_NULL(run(0, NULL));
    ASSERT_INT(1, script.runs);
}

TEST(what_others_interrupted_is_tried_again)
{
    ASSERT_NULL(run(1, NULL));
    ASSERT_INT(2, script.runs);
    ASSERT_CSTR("Error: syntax error", run(1, "Error: syntax error"));
    ASSERT_INT(2, script.runs);
}

TEST(a_fault_is_told_at_once)
{
    ASSERT_CSTR("Error: Operation not permitted", run(0, "Error: Operation not permitted"));
    ASSERT_INT(1, script.runs);
}

TEST(who_is_always_interrupted_is_told_so)
{
    ASSERT_CSTR(INTERRUPTED, run(1000, NULL));
    ASSERT_INT(AGX_FIREWALL_NFT_TRIES, script.runs);
}

TEST(a_chain_that_could_not_be_read_is_not_taken_for_missing)
{
    struct agx_error *err = NULL;

    script.interrupted = 1000;
    script.runs = 0;
    ASSERT_INT(-AGX_UNAVAILABLE, agx_firewall_docker_user_set(NULL, "mark", true, &err));
    ASSERT_INT(AGX_FIREWALL_NFT_TRIES, script.runs);
    agx_error_free(err);
}

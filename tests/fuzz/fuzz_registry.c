/*
 * fuzz_registry.c: answers of a registry. The first byte chooses the kind: an authentication
 * challenge, a manifest, or a redirect address. Callers may use the accepted parts without further
 * checks: digests are digests, addresses cannot inject a header, and a choice is in the index.
 */
#include "image/challenge.h"
#include "image/manifest.h"
#include "image/weburl.h"
#include "tests/support/fuzz.h"

#include <stdlib.h>

static void check_descriptor(const struct agx_descriptor *d)
{
    FUZZ_CHECK(d->digest && strlen(d->digest) == 71 && !strpbrk(d->digest, "/.%?#"));
    FUZZ_CHECK(d->size <= INT64_MAX);
}

static void fuzz_manifest(struct agx_str text)
{
    static const struct agx_platform platform = { "linux", "arm64", "v8" };
    struct agx_manifest m;

    if (agx_manifest_parse(&m, text, &platform, NULL) < 0) {
        FUZZ_CHECK(!m.layers && !m.config.digest && !m.chosen.digest);
        return;
    }
    if (m.is_index) {
        check_descriptor(&m.chosen);
    } else {
        check_descriptor(&m.config);
        for (size_t i = 0; i < m.n_layers; i++)
            check_descriptor(&m.layers[i]);
    }
    agx_manifest_done(&m);
}

static void fuzz_challenge(struct agx_str text)
{
    struct agx_challenge c;

    if (agx_challenge_parse(&c, text, NULL) < 0)
        return;
    FUZZ_CHECK(c.kind == AGX_CHALLENGE_BEARER || (!c.realm && !c.service && !c.scope));
    FUZZ_CHECK(!c.realm || !strpbrk(c.realm, "\r\n"));
    agx_challenge_done(&c);
}

static void fuzz_address(struct agx_str text)
{
    struct agx_weburl from, to;
    char *url;

    FUZZ_CHECK(agx_weburl_parse(&from, AGX_STR("https://a.example/v2/")));
    url = agx_weburl_resolve(&from, text);
    if (!url)
        return;
    FUZZ_CHECK(agx_weburl_parse(&to, agx_str_from(url)));
    FUZZ_CHECK(to.server.len > 0 && !strpbrk(url, " \r\n\t#\\"));
    FUZZ_CHECK(agx_str_find(to.server, '@') == to.server.len);
    free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct agx_str rest = agx_str_bytes(data, size);

    if (size == 0)
        return 0;
    rest = agx_str_skip(rest, 1);
    if (data[0] == 'm')
        fuzz_manifest(rest);
    else if (data[0] == 'c')
        fuzz_challenge(rest);
    else
        fuzz_address(rest);
    return 0;
}

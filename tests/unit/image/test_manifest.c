#include "image/manifest.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "sha256:cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

#define CONFIG                                                                                     \
    "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\",\"digest\":\"" A       \
    "\",\"size\":7}"
#define LAYER(type, digest) "{\"mediaType\":\"" type "\",\"digest\":\"" digest "\",\"size\":9}"
#define TARGZ "application/vnd.oci.image.layer.v1.tar+gzip"

static const struct agx_platform amd64 = { "linux", "amd64", NULL };
static const struct agx_platform arm64 = { "linux", "arm64", "v8" };

static void refuse(enum agx_code code, const char *words, const char *text)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_manifest m;

    ASSERT_CODE(code, agx_manifest_parse(&m, agx_str_from(text), &amd64, &err));
    if (!strstr(err->message, words))
        FAIL("'%s' is not in '%s'", words, err->message);
    ASSERT_NULL(m.layers);
}

TEST(manifest_names_its_configuration_and_its_layers)
{
    struct agx_manifest m;

    ASSERT_OK(agx_manifest_parse(
        &m,
        AGX_STR("{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER(TARGZ, B) "," LAYER(
            "application/vnd.docker.image.rootfs.diff.tar.gzip", C) "]}"),
        &amd64, NULL));
    ASSERT_FALSE(m.is_index);
    ASSERT_CSTR(A, m.config.digest);
    ASSERT_UINT(7, m.config.size);
    ASSERT_UINT(2, m.n_layers);
    ASSERT_CSTR(B, m.layers[0].digest);
    ASSERT_CSTR(C, m.layers[1].digest);
    ASSERT_UINT(9, m.layers[1].size);
    agx_manifest_done(&m);
    ASSERT_OK(agx_manifest_parse(&m, AGX_STR("{\"schemaVersion\":2," CONFIG ",\"layers\":[]}"),
                                 &amd64, NULL));
    ASSERT_UINT(0, m.n_layers);
    agx_manifest_done(&m);
}

#define ENTRY(digest, platform)                                                                    \
    "{\"mediaType\":\"application/"                                                                \
    "vnd.oci.image.manifest.v1+json\",\"size\":5,\"digest\":\"" digest "\",\"platform\":" platform \
    "}"

static void check_choice(const char *want, const struct agx_platform *platform, const char *text)
{
    struct agx_manifest m;

    ASSERT_OK(agx_manifest_parse(&m, agx_str_from(text), platform, NULL));
    ASSERT_TRUE(m.is_index);
    ASSERT_CSTR(want, m.chosen.digest);
    agx_manifest_done(&m);
}

TEST(index_gives_the_manifest_of_the_platform)
{
    static const char all[] = "{\"schemaVersion\":2,\"manifests\":[" ENTRY(
        A,
        "{\"os\":\"windows\",\"architecture\":"
        "\"amd64\"}") "," ENTRY(B,
                                "{\"os\":\"linux\",\"architecture\":\"amd64\"}") "," ENTRY(C,
                                                                                           "{\"os\""
                                                                                           ":\"linu"
                                                                                           "x\","
                                                                                           "\"archi"
                                                                                           "tecture"
                                                                                           "\":"
                                                                                           "\"arm64"
                                                                                           "\","
                                                                                           "\"varia"
                                                                                           "nt\":"
                                                                                           "\"v8\""
                                                                                           "}") "]"
                                                                                                "}";
    static const char variants[] = "{\"schemaVersion\":2,\"manifests\":[" ENTRY(
        A,
        "{\"os\":\"linux\",\"architecture\":"
        "\"amd64\",\"variant\":\"v3\"}") "," ENTRY(B,
                                                   "{\"os\":\"linux\",\"architecture\":"
                                                   "\"arm64\"}") "," ENTRY(C, "{\"os\":\"linux\","
                                                                              "\"architecture\":"
                                                                              "\"amd64\","
                                                                              "\"variant\":"
                                                                              "\"v1\"}") "]}";

    check_choice(B, &amd64, all);
    check_choice(C, &arm64, all);
    check_choice(C, &amd64, variants);
    check_choice(B, &arm64, variants);
}

TEST(index_without_the_platform_says_which_there_are)
{
    refuse(AGX_FAILED_PRECONDITION, "none for linux/amd64, only for: linux/arm64/v8, windows/amd64",
           "{\"schemaVersion\":2,\"manifests\":[" ENTRY(
               A,
               "{\"os\":\"linux\",\"architecture\":"
               "\"arm64\",\"variant\":\"v8\"}") "," ENTRY(B,
                                                          "{\"os\":\"unknown\",\"architecture\":"
                                                          "\"unknown\"}") ",5," ENTRY(C, "{\"os\":"
                                                                                         "\"windows"
                                                                                         "\","
                                                                                         "\"archite"
                                                                                         "cture\":"
                                                                                         "\"amd64\""
                                                                                         "}") "]}");
    refuse(AGX_FAILED_PRECONDITION, "none for", "{\"schemaVersion\":2,\"manifests\":[]}");
}

TEST(manifest_that_we_cannot_use_is_refused_by_name)
{
    refuse(AGX_FAILED_PRECONDITION, "schema 1",
           "{\"schemaVersion\":1,\"fsLayers\":[],\"history\":[]}");
    refuse(AGX_FAILED_PRECONDITION, "'application/vnd.cncf.helm.config.v1+json'",
           "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/"
           "vnd.cncf.helm.config.v1+json\","
           "\"digest\":\"" A "\",\"size\":1},\"layers\":[]}");
    refuse(AGX_FAILED_PRECONDITION, "layer 1 is a 'application/vnd.docker.image.rootfs.foreign",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER(
               "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", B) "]}");
    refuse(AGX_FAILED_PRECONDITION, "not a SHA-256 digest",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER(TARGZ, "sha512:ab") "]}");
    refuse(AGX_FAILED_PRECONDITION, "not a SHA-256 digest",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER(TARGZ, "../../x") "]}");
}

TEST(manifest_that_is_none_is_refused)
{
    refuse(AGX_DATA_LOSS, "malformed", "");
    refuse(AGX_DATA_LOSS, "malformed", "<html>");
    refuse(AGX_DATA_LOSS, "malformed", "[]");
    refuse(AGX_DATA_LOSS, "malformed", "{}");
    refuse(AGX_DATA_LOSS, "malformed", "{\"schemaVersion\":2,\"manifests\":{}}");
    refuse(AGX_DATA_LOSS, "malformed", "{\"schemaVersion\":2,\"config\":5,\"layers\":[]}");
    /* Two readings under one digest. */
    refuse(AGX_DATA_LOSS, "malformed",
           "{\"schemaVersion\":2,\"manifests\":[]," CONFIG ",\"layers\":[]}");
    refuse(AGX_DATA_LOSS, "no digest or no size",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"size\":1}]}");
    refuse(AGX_DATA_LOSS, "no digest or no size",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[{\"digest\":\"" A "\",\"size\":-1}]}");
    refuse(AGX_DATA_LOSS, "no digest or no size",
           "{\"schemaVersion\":2," CONFIG ",\"layers\":[7]}");
}

TEST(manifest_of_too_many_layers_is_refused)
{
    size_t size = 64000;
    char *text = malloc(size);
    int at = snprintf(text, size, "{\"schemaVersion\":2," CONFIG ",\"layers\":[");

    for (int i = 0; i < 128; i++)
        at += snprintf(text + at, size - (size_t)at, "%s" LAYER(TARGZ, B), i ? "," : "");
    (void)snprintf(text + at, size - (size_t)at, "]}");
    refuse(AGX_RESOURCE_EXHAUSTED, "128 layers", text);
    free(text);
}

TEST(descriptor_fits_the_bytes_of_its_digest_only)
{
    static const char digest[] =
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    ASSERT_INT(1, agx_descriptor_fits(digest, AGX_STR("abc"), NULL));
    ASSERT_INT(0, agx_descriptor_fits(digest, AGX_STR("abd"), NULL));
    ASSERT_INT(0, agx_descriptor_fits(digest + 7, AGX_STR("abc"), NULL));
}

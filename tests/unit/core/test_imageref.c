#include "core/imageref.h"
#include "tests/support/test.h"

#include <stdio.h>

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void check(const char *text, const char *whole)
{
    struct agx_imageref r;
    _cleanup_free_ char *got = NULL;

    ASSERT_OK(agx_imageref_parse(&r, agx_str_from(text), NULL));
    got = agx_imageref_text(&r);
    ASSERT_CSTR(whole, got);
    agx_imageref_done(&r);
}

TEST(imageref_has_one_form_for_all_spellings)
{
    check("python", "docker.io/library/python:latest");
    check("python:3.11", "docker.io/library/python:3.11");
    check("library/python", "docker.io/library/python:latest");
    check("docker.io/python", "docker.io/library/python:latest");
    check("index.docker.io/library/python:latest", "docker.io/library/python:latest");
    check("team/tool", "docker.io/team/tool:latest");
    check("registry:5000/tool", "registry:5000/tool:latest");
    check("registry:5000/a/b__c.d-e---f/g:V1.0_x-y", "registry:5000/a/b__c.d-e---f/g:V1.0_x-y");
    check("localhost/tool", "localhost/tool:latest");
    check("ghcr.io/x/y@sha256:" HEX64, "ghcr.io/x/y@sha256:" HEX64);
    check("x:1@sha256:" HEX64, "docker.io/library/x:1@sha256:" HEX64);
    check("[::1]:5000/x", "[::1]:5000/x:latest");
}

TEST(imageref_of_an_id_is_an_id)
{
    struct agx_imageref r;

    check("sha256:" HEX64, "sha256:" HEX64);
    check(HEX64, HEX64);
    ASSERT_OK(agx_imageref_parse(&r, AGX_STR("sha256:" HEX64), NULL));
    ASSERT_CSTR("sha256:" HEX64, r.id);
    ASSERT_NULL(r.registry);
    agx_imageref_done(&r);
}

TEST(imageref_of_what_is_no_name_is_refused)
{
    static const char *const bad[] = {
        "",
        "Python",
        "a//b",
        "/a",
        "a/",
        "a:",
        "a:-x",
        "a b",
        "a..b",
        "a___b",
        "-a",
        "a-",
        "a@",
        "a@sha256:1",
        "a@sha256",
        ("a@:" HEX64),
        "a:b:c",
        ":tag",
        ("@sha256:" HEX64),
        "reg.io:/x",
        "reg.io:x/y",
        "-reg.io/x",
        "[::1/x",
        "a:\xc3\xa9",
        "..",
        "a/../b",
        "http://a.b/c",
        "a:1/b?c",
        "reg.io:99999/x",
    };
    char tag[200], name[300];

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_imageref r;

        if (agx_imageref_parse(&r, agx_str_from(bad[i]), &err) != -AGX_INVALID_ARGUMENT)
            FAIL("'%s' was taken", bad[i]);
        ASSERT_MESSAGE(err, "image");
    }
    (void)snprintf(name, sizeof(name), "%0248d", 0); /* "library/" is not there yet */
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_imageref_parse(&(struct agx_imageref){ 0 }, agx_str_from(name), NULL));
    (void)snprintf(tag, sizeof(tag), "a:%0129d", 0);
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_imageref_parse(&(struct agx_imageref){ 0 }, agx_str_from(tag), NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT,
                agx_imageref_parse(&(struct agx_imageref){ 0 }, AGX_STR("a\0b"), NULL));
}

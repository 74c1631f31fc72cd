#include "image/challenge.h"
#include "tests/support/test.h"

static void check(const char *text, enum agx_challenge_kind kind, const char *realm,
                  const char *service, const char *scope)
{
    struct agx_challenge c;

    ASSERT_OK(agx_challenge_parse(&c, agx_str_from(text), NULL));
    ASSERT_INT(kind, c.kind);
    ASSERT_CSTR(realm, c.realm ? c.realm : "-");
    ASSERT_CSTR(service, c.service ? c.service : "-");
    ASSERT_CSTR(scope, c.scope ? c.scope : "-");
    agx_challenge_done(&c);
    ASSERT_NULL(c.realm);
}

TEST(challenge_of_a_token_says_where_and_for_what)
{
    check("Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\","
          "scope=\"repository:library/python:pull\"",
          AGX_CHALLENGE_BEARER, "https://auth.docker.io/token", "registry.docker.io",
          "repository:library/python:pull");
    check("bearer  REALM = \"x\" , error=\"invalid_token\"", AGX_CHALLENGE_BEARER, "x", "-", "-");
    check("Bearer realm=plain,scope=\"a\\\"b\\\\c, d\"", AGX_CHALLENGE_BEARER, "plain", "-",
          "a\"b\\c, d");
    check("Bearer", AGX_CHALLENGE_BEARER, "-", "-", "-");
    check("Bearer realm=\"1\", realm=\"2\"", AGX_CHALLENGE_BEARER, "1", "-", "-");
}

TEST(challenge_of_several_is_the_best_that_we_can_meet)
{
    check("Basic realm=\"b\"", AGX_CHALLENGE_BASIC, "-", "-", "-");
    check("Basic realm=\"b\", Bearer realm=\"t\"", AGX_CHALLENGE_BEARER, "t", "-", "-");
    check("Bearer realm=\"t\", Basic realm=\"b\", service=\"s\"", AGX_CHALLENGE_BEARER, "t", "-",
          "-");
    check("Negotiate, Basic realm=\"b\"", AGX_CHALLENGE_BASIC, "-", "-", "-");
    check("Negotiate YWJj/+==, Bearer realm=\"t\"", AGX_CHALLENGE_BEARER, "t", "-", "-");
    check("Bearer realm=\"t\", Bearer realm=\"u\", scope=\"s\"", AGX_CHALLENGE_BEARER, "t", "-",
          "-");
    check("Digest realm=\"d\", nonce=\"n\"", AGX_CHALLENGE_NONE, "-", "-", "-");
}

TEST(challenge_that_is_none_is_refused)
{
    static const char *const bad[] = {
        "",      " , ",        "realm=\"x\"",        "Bearer realm=\"x",
        "\"x\"", "Bearer (x)", "Bearer realm=\"x\\", "Bearer realm=\"a\x01\""
    };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_challenge c;

    for (size_t i = 0; i < AGX_ARRAY_LEN(bad); i++)
        ASSERT_CODE(AGX_DATA_LOSS, agx_challenge_parse(&c, agx_str_from(bad[i]), NULL));
    ASSERT_CODE(AGX_DATA_LOSS, agx_challenge_parse(&c, AGX_STR("Bearer realm=\"a\0b\""), &err));
    ASSERT_NOT_NULL(err->message);
}

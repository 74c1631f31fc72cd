#include "backend/docker/api/auth.h"
#include "tests/support/test.h"

#include <stdlib.h>

TEST(auth_of_a_user_is_json_in_the_base64_of_urls)
{
    /* Its usual base64 has both characters that URLs do not take. */
    char *auth = agx_docker_auth(&(struct agx_credentials){ "r:5000", "a", "~~~???" });

    ASSERT_CSTR(
        "eyJ1c2VybmFtZSI6ImEiLCJwYXNzd29yZCI6In5-fj8_PyIsInNlcnZlcmFkZHJlc3MiOiJyOjUwMDAifQ==",
        auth);
    free(auth);
}

TEST(auth_of_a_token_names_it)
{
    char *auth = agx_docker_auth(&(struct agx_credentials){ "reg.io", NULL, "t" });

    ASSERT_CSTR("eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJyZWcuaW8ifQ==", auth);
    free(auth);
}

TEST(auth_that_would_be_too_long_is_none)
{
    char *secret = malloc(AGX_CREDENTIALS_MAX + 1);

    memset(secret, 'x', AGX_CREDENTIALS_MAX);
    secret[AGX_CREDENTIALS_MAX] = '\0';
    ASSERT_NULL(agx_docker_auth(&(struct agx_credentials){ "reg.io", "a", secret }));
    free(secret);
}

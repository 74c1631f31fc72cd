/* The backend for a choice such as "docker:HOST". */
#include "backend/target.h"
#include "tests/fake/fake.h"
#include "tests/support/loop.h"

static const struct agx_backend_kind *const two[] = {
    &agx_backend_kind_native,
    &agx_backend_kind_docker,
    NULL,
};
static const struct agx_backend_kind *const three[] = {
    &agx_backend_kind_native,
    &agx_backend_kind_docker,
    &agx_backend_kind_fake,
    NULL,
};

TEST(a_backend_is_opened_by_its_name)
{
    struct agx_loop *l = test_loop_open();
    struct agx_backend *b = NULL;
    struct agx_error *err = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, three, "podman:x", NULL, &b, &err));
    ASSERT_MESSAGE(err,
                   "there is no backend 'podman:x'; there are: native, docker[:HOST], fake:DIR");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, three, "fake", NULL, &b, &err));
    ASSERT_MESSAGE(err, "needs a directory");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, three, "fake:relative", NULL, &b, NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, three, NULL, NULL, &b, &err));
    ASSERT_MESSAGE(err, "there is no backend ''; there are: native");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, three, "docker", NULL, &b, &err));
    ASSERT_MESSAGE(err, "not set up");
    err = agx_error_free(err);
    ASSERT_CODE(AGX_NOT_FOUND, agx_backend_open(l, three, "fake:/nonexistent/dir", NULL, &b, NULL));
    ASSERT_NULL(b);
    test_loop_close(l);
}

TEST(a_backend_that_the_program_does_not_have_is_none)
{
    struct agx_loop *l = test_loop_open();
    struct agx_backend *b = NULL;
    struct agx_error *err = NULL;

    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_backend_open(l, two, "fake:/x", NULL, &b, &err));
    ASSERT_CSTR("there is no backend 'fake:/x'; there are: native, docker[:HOST]", err->message);
    err = agx_error_free(err);
    ASSERT_NULL(b);
    test_loop_close(l);
}

TEST(a_choice_names_a_backend_and_maybe_a_target)
{
    const char *target = "";

    ASSERT_TRUE(agx_backend_chosen("docker", "docker", &target));
    ASSERT_NULL(target);
    ASSERT_TRUE(agx_backend_chosen("docker:unix:///x", "docker", &target));
    ASSERT_CSTR("unix:///x", target);
    ASSERT_FALSE(agx_backend_chosen("dockers", "docker", &target));
    ASSERT_FALSE(agx_backend_chosen("dock", "docker", &target));
    ASSERT_FALSE(agx_backend_chosen(NULL, "docker", &target));
}

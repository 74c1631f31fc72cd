#include "daemon/docker_setup.h"
#include "tests/support/test.h"

static void backend(struct agx_config *c, const char *choice)
{
    ASSERT_OK(agx_config_set(c, "backend", choice, NULL));
}

TEST(docker_setup_is_empty_for_other_backends)
{
    const struct agx_docker_env env = { .host = "ssh://not-looked-at" };
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_docker_setup s;

    ASSERT_OK(agx_docker_setup_init(&s, &c, &env, NULL));
    ASSERT_FALSE(s.used);
    ASSERT_OK(agx_docker_setup_complete(&s, NULL));
    backend(&c, "fake:/x");
    ASSERT_OK(agx_docker_setup_init(&s, &c, &env, NULL));
    ASSERT_FALSE(s.used);
    agx_docker_setup_done(&s);
    agx_config_done(&c);
}

TEST(docker_setup_takes_keys_and_environment)
{
    const struct agx_docker_env env = { .path = "/bin" };
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_docker_setup s;

    ASSERT_OK(agx_config_read(&c,
                              AGX_STR("backend: docker\n"
                                      "docker: {control: stdio, isolation: off, pool_prefix: 24,\n"
                                      "         networks_ready: 3, pids: 9}\n"),
                              "f", NULL));
    ASSERT_OK(agx_docker_setup_init(&s, &c, &env, NULL));
    ASSERT_TRUE(s.used && s.is_local);
    ASSERT_INT(AGX_DOCKER_CONTROL_STDIO, s.config.control);
    ASSERT_INT(AGX_DOCKER_ISOLATION_OFF, s.config.isolation);
    ASSERT_CSTR(AGX_SUBNETS_POOL, s.config.pool);
    ASSERT_UINT(24, s.config.pool_prefix);
    ASSERT_UINT(3, s.config.networks_ready);
    ASSERT_UINT(9, s.config.pids);
    ASSERT_CSTR("/bin", s.config.env.path);
    agx_docker_setup_done(&s);
    agx_config_done(&c);
}

TEST(docker_setup_of_an_engine_elsewhere_needs_neither_init_nor_rights)
{
    const struct agx_docker_env env = { .host = "tcp://10.0.0.1:2375" };
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_docker_setup s;

    backend(&c, "docker");
    ASSERT_OK(agx_docker_setup_init(&s, &c, &env, NULL));
    ASSERT_TRUE(s.used && !s.is_local);
    ASSERT_OK(agx_docker_setup_complete(&s, NULL));
    ASSERT_NULL(s.config.init_path);
    agx_docker_setup_done(&s);
    agx_config_done(&c);
}

TEST(docker_setup_refuses_a_host_that_is_none_and_an_init_that_is_not_there)
{
    const struct agx_docker_env env = { 0 };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL, *no_init = NULL;
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_docker_setup s;

    backend(&c, "docker:ssh://elsewhere");
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_docker_setup_init(&s, &c, &env, &err));
    ASSERT_MESSAGE(err, "ssh://");
    ASSERT_OK(agx_config_read(&c, AGX_STR("docker: {isolation: off, init: /nonexistent/init}\n"),
                              "f", NULL));
    backend(&c, "docker:unix:///run/other.sock");
    ASSERT_OK(agx_docker_setup_init(&s, &c, &env, NULL));
    ASSERT_CSTR("/run/other.sock", s.engine_socket);
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_docker_setup_complete(&s, &no_init));
    ASSERT_MESSAGE(no_init, "/nonexistent/init");
    agx_docker_setup_done(&s);
    agx_docker_setup_done(NULL);
    agx_config_done(&c);
}

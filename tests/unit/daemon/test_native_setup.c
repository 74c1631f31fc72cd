#include "daemon/native_setup.h"
#include "tests/support/test.h"

static void backend(struct agx_config *c, const char *choice)
{
    ASSERT_OK(agx_config_set(c, "backend", choice, NULL));
}

TEST(native_setup_is_empty_for_other_backends)
{
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_native_setup s;

    backend(&c, "docker");
    ASSERT_OK(agx_native_setup_init(&s, &c, NULL));
    ASSERT_FALSE(s.used);
    ASSERT_OK(agx_native_setup_complete(&s, NULL));
    agx_native_setup_done(&s);
    agx_config_done(&c);
}

TEST(native_setup_takes_keys)
{
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_native_setup s;

    ASSERT_OK(agx_config_read(&c,
                              AGX_STR("backend: native\n"
                                      "native: {pool: 10.99.0.0/16, id_base: 100000, ready: 3,\n"
                                      "         pids: 9}\n"),
                              "f", NULL));
    ASSERT_OK(agx_native_setup_init(&s, &c, NULL));
    ASSERT_TRUE(s.used);
    ASSERT_CSTR("10.99.0.0/16", s.config.pool);
    ASSERT_UINT(100000, s.config.id_base);
    ASSERT_UINT(3, s.config.ready);
    ASSERT_UINT(9, s.config.pids);
    agx_native_setup_done(&s);
    agx_config_done(&c);
}

static void refused(const char *yaml, const char *words)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_native_setup s;

    ASSERT_OK(agx_config_read(&c, agx_str_from(yaml), "f", NULL));
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_native_setup_init(&s, &c, &err));
    ASSERT_MESSAGE(err, words);
    agx_native_setup_done(&s);
    agx_config_done(&c);
}

TEST(native_setup_refuses_a_target_and_a_pool_that_is_none)
{
    refused("backend: 'native:x'\n", "takes no target");
    refused("{backend: native, native: {pool: here}}\n", "native.pool");
}

TEST(native_setup_needs_its_programs)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_native_setup s;

    ASSERT_OK(
        agx_config_read(&c, AGX_STR("{backend: native, native: {init: /nowhere}}\n"), "f", NULL));
    ASSERT_OK(agx_native_setup_init(&s, &c, NULL));
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_native_setup_complete(&s, &err));
    agx_native_setup_done(&s);
    agx_config_done(&c);
}

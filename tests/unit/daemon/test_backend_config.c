#include "daemon/backend_config.h"
#include "tests/support/test.h"

static const struct agx_backend_env env = { .home = "/home/me",
                                            .ssh_auth_sock = "/run/agent",
                                            .runtime_dir = "/run/user/7" };

TEST(backend_config_by_default_blocks_nothing_and_is_our_own)
{
    struct agx_config c = AGX_CONFIG_INIT;
    const struct agx_backend_config b = agx_backend_config_make(&c, &env);

    ASSERT_FALSE(b.compat || b.tools.compat || b.lan_blocked || b.tools.layers);
    ASSERT_NULL(b.sources);
    agx_config_done(&c);
}

TEST(backend_config_takes_keys_and_environment)
{
    struct agx_config c = AGX_CONFIG_INIT;
    struct agx_backend_config b;

    ASSERT_OK(agx_config_read(&c, AGX_STR("network: {lan: block}\ncompat: agbox\n"), "f", NULL));
    b = agx_backend_config_make(&c, &env);
    ASSERT_TRUE(b.compat && b.tools.compat && b.lan_blocked);
    ASSERT_UINT(geteuid(), b.host_uid);
    ASSERT_UINT(getegid(), b.host_gid);
    ASSERT_UINT(geteuid(), b.tools.uid);
    ASSERT_CSTR("/home/me", b.tools.home);
    ASSERT_CSTR("/run/agent", b.tools.ssh_auth_sock);
    ASSERT_CSTR("/run/user/7", b.tools.runtime_dir);
    agx_config_done(&c);
}

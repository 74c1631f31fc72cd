#include "daemon/file_layout.h"
#include "tests/support/test.h"

TEST(file_layout_of_a_user_are_in_the_xdg_directories)
{
    const struct agx_xdg x = { .runtime_dir = "/run/user/7", .home = "/home/me", .uid = 7 };
    struct agx_file_layout p;

    ASSERT_OK(agx_file_layout_init(&p, &x, NULL));
    ASSERT_TRUE(p.run_dir_ours);
    ASSERT_CSTR("/run/user/7/agentix", p.run_dir);
    ASSERT_CSTR("/run/user/7/agentix/agentixd.sock", p.socket);
    ASSERT_CSTR("/run/user/7/agentix/agentixd.lock", p.lock);
    ASSERT_CSTR("/home/me/.local/share/agentix", p.data_dir);
    ASSERT_CSTR("/home/me/.local/share/agentix/store", p.store_dir);
    ASSERT_CSTR("/home/me/.local/share/agentix/images", p.images_dir);
    ASSERT_CSTR("/home/me/.local/share/agentix/images-shifted", p.shifted_images_dir);
    ASSERT_CSTR("/home/me/.local/share/agentix/exec-logs", p.exec_log_dir);
    ASSERT_CSTR("/home/me/.local/share/agentix/agentixd.log", p.log_file);
    ASSERT_CSTR("/home/me/.config/agentix/config.yaml", p.config_file);
    agx_file_layout_done(&p);
}

TEST(file_layout_of_root_without_variables_are_the_systems)
{
    const struct agx_xdg x = { .uid = 0, .home = "/root" };
    struct agx_file_layout p;

    ASSERT_OK(agx_file_layout_init(&p, &x, NULL));
    ASSERT_CSTR("/run/agentix/agentixd.sock", p.socket);
    ASSERT_CSTR("/var/lib/agentix", p.data_dir);
    ASSERT_CSTR("/etc/agentix/config.yaml", p.config_file);
    agx_file_layout_done(&p);
}

TEST(file_layout_of_a_named_socket_are_beside_it)
{
    struct agx_xdg x = { .uid = 7, .home = "/h", .socket = "/tmp/x/a.sock" };
    struct agx_file_layout p;

    ASSERT_OK(agx_file_layout_init(&p, &x, NULL));
    ASSERT_FALSE(p.run_dir_ours);
    ASSERT_CSTR("/tmp/x/a.sock", p.socket);
    ASSERT_CSTR("/tmp/x/a.sock.lock", p.lock);
    ASSERT_CSTR("/tmp/x", p.run_dir);
    agx_file_layout_done(&p);
    x.socket = "/a.sock";
    ASSERT_OK(agx_file_layout_init(&p, &x, NULL));
    ASSERT_CSTR("/", p.run_dir);
    agx_file_layout_done(&p);
}

TEST(file_layout_that_cannot_be_found_name_the_variable_and_hold_nothing)
{
    const struct {
        struct agx_xdg x;
        const char *words;
    } rows[] = {
        { { .uid = 7, .home = "/h" }, "XDG_RUNTIME_DIR" },
        { { .uid = 7, .runtime_dir = "/run" }, "HOME" },
        { { .uid = 7, .home = "/h", .socket = "a.sock" }, "AGENTIX_SOCKET" },
        { { .uid = 7, .home = "/h", .socket = "/tmp/" }, "directory" },
        { { .uid = 7, .home = "/h", .runtime_dir = "/run", .data_home = "d" }, "XDG_DATA_HOME" },
        { { .uid = 7, .home = "/h", .runtime_dir = "/run", .config_home = "c" }, "XDG_CONFIG" },
    };

    for (size_t i = 0; i < AGX_ARRAY_LEN(rows); i++) {
        _cleanup_(agx_error_freep) struct agx_error *err = NULL;
        struct agx_file_layout p;

        ASSERT_TRUE(agx_file_layout_init(&p, &rows[i].x, &err) < 0);
        ASSERT_MESSAGE(err, rows[i].words);
        ASSERT_NULL(p.socket);
        ASSERT_NULL(p.data_dir);
    }
}

TEST(file_layout_of_agbox_are_a_users_for_root_too)
{
    struct agx_xdg x = { .uid = 0, .runtime_dir = "/run/user/0", .home = "/root" };
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    struct agx_file_layout_agbox p;

    ASSERT_OK(agx_file_layout_agbox_init(&p, &x, NULL));
    ASSERT_CSTR("/run/user/0/agbox/agboxd.sock", p.socket);
    ASSERT_CSTR("/run/user/0/agbox/agboxd.lock", p.lock);
    ASSERT_CSTR("/root/.local/share/agents-sandbox/exec-logs", p.exec_log_dir);
    ASSERT_CSTR("/root/.config/agents-sandbox/config.toml", p.config_file);
    agx_file_layout_agbox_done(&p);
    x.runtime_dir = NULL;
    ASSERT_CODE(AGX_FAILED_PRECONDITION, agx_file_layout_agbox_init(&p, &x, &err));
    ASSERT_MESSAGE(err, "XDG_RUNTIME_DIR");
    ASSERT_NULL(p.run_dir);
    agx_file_layout_done(NULL);
    agx_file_layout_agbox_done(NULL);
}

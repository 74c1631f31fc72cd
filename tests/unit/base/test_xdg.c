/* test_xdg.c: the paths by which programs find each other, and of their files. */
#include "base/xdg.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static const struct agx_xdg user = { .runtime_dir = "/run/user/7", .home = "/home/u", .uid = 7 };

static void expect(const struct agx_xdg *x, enum agx_xdg_base base, const char *want)
{
    struct agx_error *err = NULL;
    char *path = NULL;

    ASSERT_OK(agx_xdg_path(x, base, "a/b", &path, &err));
    ASSERT_CSTR(want, path);
    free(path);
}

static void expect_error(const struct agx_xdg *x, enum agx_xdg_base base, enum agx_code code,
                         const char *says)
{
    struct agx_error *err = NULL;
    char *path = NULL, text[256];

    ASSERT_CODE(code, agx_xdg_path(x, base, "a/b", &path, &err));
    ASSERT_NULL(path);
    ASSERT_TRUE(strstr(agx_error_format(err, text, sizeof(text)), says) != NULL);
    agx_error_free(err);
}

TEST(xdg_path_is_below_the_variable)
{
    const struct agx_xdg x = { .runtime_dir = "/r", .data_home = "/d", .config_home = "/c" };

    expect(&x, AGX_XDG_RUNTIME, "/r/a/b");
    expect(&x, AGX_XDG_DATA, "/d/a/b");
    expect(&x, AGX_XDG_CONFIG, "/c/a/b");
}

TEST(xdg_path_without_the_variable_is_below_home)
{
    expect(&user, AGX_XDG_DATA, "/home/u/.local/share/a/b");
    expect(&user, AGX_XDG_CONFIG, "/home/u/.config/a/b");
}

TEST(xdg_path_of_root_without_the_variable_is_the_system_s)
{
    const struct agx_xdg x = { .home = "/root", .data_home = "", .uid = 0 };

    expect(&x, AGX_XDG_RUNTIME, "/run/a/b");
    expect(&x, AGX_XDG_DATA, "/var/lib/a/b");
    expect(&x, AGX_XDG_CONFIG, "/etc/a/b");
}

TEST(xdg_path_without_any_directory_says_what_to_set)
{
    const struct agx_xdg x = { .home = "", .uid = 7 };

    expect_error(&x, AGX_XDG_RUNTIME, AGX_FAILED_PRECONDITION, "XDG_RUNTIME_DIR is not set");
    expect_error(&x, AGX_XDG_DATA, AGX_FAILED_PRECONDITION, "neither XDG_DATA_HOME nor HOME");
}

TEST(xdg_path_of_a_relative_variable_is_refused)
{
    const struct agx_xdg x = { .runtime_dir = "r", .home = "h", .uid = 7 };

    expect_error(&x, AGX_XDG_RUNTIME, AGX_INVALID_ARGUMENT, "XDG_RUNTIME_DIR is 'r'");
    expect_error(&x, AGX_XDG_CONFIG, AGX_INVALID_ARGUMENT, "HOME is 'h'");
}

TEST(xdg_socket_is_the_one_that_is_named_or_the_usual_one)
{
    struct agx_xdg x = user;
    struct agx_error *err = NULL;
    char *path = NULL;

    ASSERT_OK(agx_xdg_socket(&x, &path, &err));
    ASSERT_CSTR("/run/user/7/agentix/agentixd.sock", path);
    free(path);
    x.socket = "/tmp/s";
    ASSERT_OK(agx_xdg_socket(&x, &path, &err));
    ASSERT_CSTR("/tmp/s", path);
    free(path);
    x.socket = "s";
    ASSERT_CODE(AGX_INVALID_ARGUMENT, agx_xdg_socket(&x, &path, &err));
    agx_error_free(err);
}

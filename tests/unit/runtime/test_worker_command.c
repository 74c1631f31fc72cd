/* test_worker_command.c: the choice of the worker's program, and the environment it inherits. */
#include "runtime/worker_command.h"
#include "tests/support/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The value of a variable of the worker; NULL: it has none. */
static const char *value_of(const struct agx_worker_command *cmd, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; cmd->env[i]; i++) {
        if (strncmp(cmd->env[i], name, n) == 0 && cmd->env[i][n] == '=')
            return cmd->env[i] + n + 1;
    }
    return NULL;
}

TEST(command_of_a_named_python_runs_the_module_isolated)
{
    struct agx_worker_options o = { .python = "/bin/sh" };
    char *env[] = { NULL };
    struct agx_worker_command cmd;

    ASSERT_OK(agx_worker_command_init(&cmd, &o, env, NULL));
    ASSERT_CSTR("/bin/sh", cmd.argv[0]);
    ASSERT_CSTR("-I", cmd.argv[1]);
    ASSERT_CSTR("-m", cmd.argv[2]);
    ASSERT_CSTR("agentix.runtime.server.worker", cmd.argv[3]);
    ASSERT_NULL(cmd.argv[4]);
    agx_worker_command_done(&cmd);
}

TEST(command_with_a_package_boots_from_its_directory)
{
    struct agx_worker_options o = { .python = "sh", .package = "/pkg" };
    char *env[] = { NULL };
    struct agx_worker_command cmd;

    ASSERT_OK(agx_worker_command_init(&cmd, &o, env, NULL));
    ASSERT_TRUE(cmd.argv[0][0] == '/'); /* looked up */
    ASSERT_CSTR("-I", cmd.argv[1]);
    ASSERT_CSTR("/pkg/agentix/runtime/server/_boot.py", cmd.argv[2]);
    ASSERT_NULL(cmd.argv[3]);
    agx_worker_command_done(&cmd);
}

TEST(command_of_another_program_has_no_arguments)
{
    struct agx_worker_options o = { .program = "/bin/sh", .python = "/nonexistent" };
    char *env[] = { NULL };
    struct agx_worker_command cmd;

    ASSERT_OK(agx_worker_command_init(&cmd, &o, env, NULL));
    ASSERT_CSTR("/bin/sh", cmd.argv[0]);
    ASSERT_NULL(cmd.argv[1]);
    agx_worker_command_done(&cmd);
}

static void assert_not_found(const struct agx_worker_options *o, const char *name)
{
    _cleanup_(agx_error_freep) struct agx_error *err = NULL;
    char *env[] = { NULL };
    struct agx_worker_command cmd;
    char text[300];

    ASSERT_CODE(AGX_NOT_FOUND, agx_worker_command_init(&cmd, o, env, &err));
    ASSERT_NOT_NULL(strstr(agx_error_format(err, text, sizeof(text)), name));
    agx_worker_command_done(&cmd);
}

TEST(command_without_its_program_is_an_error_that_names_it)
{
    assert_not_found(&(struct agx_worker_options){ .python = "/nonexistent/python" },
                     "/nonexistent/python");
    assert_not_found(&(struct agx_worker_options){ .python = "no-such-python" }, "no-such-python");
    assert_not_found(&(struct agx_worker_options){ .program = "/etc/passwd" }, "/etc/passwd");
}

/* PATH as it is; owned. */
static char *path_now(void)
{
    const char *path = getenv("PATH");

    ASSERT_NOT_NULL(path);
    return strdup(path);
}

TEST(command_without_any_python_says_how_to_name_one)
{
    _cleanup_free_ char *path = path_now();

    ASSERT_INT(0, setenv("PATH", "/nonexistent", 1));
    assert_not_found(&(struct agx_worker_options){ 0 }, "--python");
    ASSERT_INT(0, setenv("PATH", path, 1));
}

TEST(command_never_takes_a_program_from_the_working_directory)
{
    _cleanup_free_ char *path = path_now();
    char dir[] = "/tmp/agx-test-XXXXXX", before[PATH_MAX], program[64];

    ASSERT_NOT_NULL(mkdtemp(dir));
    ASSERT_NOT_NULL(getcwd(before, sizeof(before)));
    ASSERT_INT(0, chdir(dir));
    (void)snprintf(program, sizeof(program), "%s/python3", dir);
    ASSERT_INT(0, symlink("/bin/sh", program));
    ASSERT_INT(0, setenv("PATH", "::/nonexistent:", 1));
    assert_not_found(&(struct agx_worker_options){ .python = "python3" }, "python3");
    ASSERT_INT(0, setenv("PATH", path, 1));
    ASSERT_INT(0, chdir(before));
    ASSERT_INT(0, unlink(program));
    ASSERT_INT(0, rmdir(dir));
}

TEST(environment_loses_what_must_not_reach_the_worker_and_keeps_the_rest)
{
    struct agx_worker_options o = { .program = "/bin/sh", .path = "/code" };
    char *env[] = { "LD_PRELOAD=/x",
                    "LD_LIBRARY_PATH=/x",
                    "PYTHONPATH=/x",
                    "PYTHONSTARTUP=/x",
                    "LOCALE_ARCHIVE=/x",
                    "SSL_CERT_FILE=/x",
                    "NIX_PATH=/x",
                    "FONTCONFIG_FILE=/x",
                    "AGENTIX_TOKEN=secret",
                    "AGENTIX_PATH=/old",
                    "AGENTIX_WORKER_FDS=9",
                    "PATH=/elsewhere",
                    "LDFLAGS=kept",
                    "SSL_CERT_DIR=kept",
                    "HOME=/root",
                    "AGENTIX_LOG_DIR=/l",
                    NULL };
    static const char *const gone[] = { "LD_PRELOAD",        "LD_LIBRARY_PATH", "PYTHONPATH",
                                        "PYTHONSTARTUP",     "LOCALE_ARCHIVE",  "SSL_CERT_FILE",
                                        "NIX_PATH",          "FONTCONFIG_FILE", "AGENTIX_TOKEN",
                                        "AGENTIX_WORKER_FDS" };
    struct agx_worker_command cmd;
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

    ASSERT_TRUE(n > 0);
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    ASSERT_OK(agx_worker_command_init(&cmd, &o, env, NULL));
    for (size_t i = 0; i < AGX_ARRAY_LEN(gone); i++)
        ASSERT_NULL(value_of(&cmd, gone[i]));
    ASSERT_CSTR("/code", value_of(&cmd, "AGENTIX_PATH"));
    ASSERT_CSTR("kept", value_of(&cmd, "LDFLAGS"));
    ASSERT_CSTR("kept", value_of(&cmd, "SSL_CERT_DIR"));
    ASSERT_CSTR("/root", value_of(&cmd, "HOME"));
    /* Our own directory in front, then the PATH that we were started with. */
    ASSERT_INT(0, strncmp(value_of(&cmd, "PATH"), own, strlen(own)));
    ASSERT_CSTR(getenv("PATH"), value_of(&cmd, "PATH") + strlen(own) + 1);
    agx_worker_command_done(&cmd);
}

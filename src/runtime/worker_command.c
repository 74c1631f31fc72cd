/* worker_command.c: finds the worker's program and makes its environment. */
#include "runtime/worker_command.h"

#include "base/banned.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

/* Variables that the worker must not inherit; a trailing '*' stands for any rest. */
static const char *const dropped[] = { "LD_*",          "PYTHON*",      "LOCALE_ARCHIVE",
                                       "SSL_CERT_FILE", "NIX_*",        "FONTCONFIG_*",
                                       "AGENTIX_TOKEN", "AGENTIX_PATH", "AGENTIX_WORKER_FDS" };

static char *format(const char *fmt, ...) AGX_PRINTF(1, 2);

static char *format(const char *fmt, ...)
{
    char *out = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&out, fmt, ap) < 0)
        abort();
    va_end(ap);
    return out;
}

/* The directory of our own program, without a trailing slash; empty if unknown.
 */
static void own_dir(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    char *slash;

    out[n > 0 ? n : 0] = '\0';
    slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
}

static char *if_executable(char *path)
{
    if (path && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* A program on PATH, or NULL. */
static char *on_path(const char *name)
{
    const char *path = getenv("PATH");
    struct agx_str rest = agx_str_from(path ? path : "/usr/local/bin:/usr/bin:/bin"), dir;

    while (agx_str_split(&rest, ':', &dir)) {
        char *found;

        /* An empty entry means the working directory, from which we never run programs. */
        if (dir.len == 0)
            continue;
        found = if_executable(format("%.*s/%s", AGX_STR_ARG(dir), name));
        if (found)
            return found;
    }
    return NULL;
}

static char *find_python(const char *dir)
{
    /* First, because a common bin directory such as /usr/local/bin may contain any python3. */
    char *found = if_executable(format("%s/../lib/agentix/venv/bin/python", dir));

    if (!found)
        found = if_executable(format("%s/python3", dir));
    if (!found)
        found = if_executable(format("%s/python", dir));
    return found ? found : on_path("python3");
}

/* `python` is a path, or a name to look up. */
static char *resolve(const char *python)
{
    return strchr(python, '/') ? if_executable(format("%s", python)) : on_path(python);
}

/* Isolated: no working directory, no user packages, no variables; the package by its own directory
 * if one is given. */
static char **python_argv(char *take_python, const char *package)
{
    char **argv = agx_alloc(6 * sizeof(char *));

    argv[0] = take_python;
    argv[1] = format("-I");
    if (package) {
        argv[2] = format("%s/agentix/runtime/server/_boot.py", package);
    } else {
        argv[2] = format("-m");
        argv[3] = format("agentix.runtime.server.worker");
    }
    return argv;
}

static int make_argv(struct agx_worker_command *cmd, const struct agx_worker_options *o,
                     const char *dir, struct agx_error **err)
{
    char *program = o->program  ? resolve(o->program)
                    : o->python ? resolve(o->python)
                                : find_python(dir);

    if (!program && (o->program || o->python))
        return agx_error_set(err, AGX_NOT_FOUND, "'%s' is not an executable program",
                             o->program ? o->program : o->python);
    if (program && !o->program) {
        cmd->argv = python_argv(program, o->package);
        return 0;
    }
    if (!program)
        program = if_executable(format("%s/agentix-worker", dir));
    if (!program)
        return agx_error_set(err, AGX_NOT_FOUND,
                             "no python3 and no agentix-worker was found; name one with --python");
    cmd->argv = agx_alloc(2 * sizeof(char *));
    cmd->argv[0] = program;
    return 0;
}

static bool is_dropped(const char *variable)
{
    for (size_t i = 0; i < AGX_ARRAY_LEN(dropped); i++) {
        size_t n = strlen(dropped[i]);
        bool any = dropped[i][n - 1] == '*';

        if (strncmp(variable, dropped[i], any ? n - 1 : n) == 0 && (any || variable[n] == '='))
            return true;
    }
    return strncmp(variable, "PATH=", 5) == 0; /* ours follows */
}

static void make_env(struct agx_worker_command *cmd, const struct agx_worker_options *o,
                     char *const *environ_, const char *dir)
{
    const char *path = getenv("PATH");
    size_t n = 0, at = 0;

    while (environ_[n])
        n++;
    cmd->env = agx_alloc((n + 3) * sizeof(char *));
    cmd->env[at++] = format("PATH=%s:%s", dir, path ? path : "/usr/local/bin:/usr/bin:/bin");
    if (o->path)
        cmd->env[at++] = format("AGENTIX_PATH=%s", o->path);
    for (size_t i = 0; i < n; i++) {
        if (!is_dropped(environ_[i]))
            cmd->env[at++] = format("%s", environ_[i]);
    }
}

int agx_worker_command_init(struct agx_worker_command *cmd,
                            const struct agx_worker_options *options, char *const *environ_,
                            struct agx_error **err)
{
    char dir[PATH_MAX];
    int r;

    *cmd = (struct agx_worker_command){ 0 };
    own_dir(dir);
    r = make_argv(cmd, options, dir, err);
    if (r < 0)
        return agx_error_wrap(err, r, "find the worker's program");
    make_env(cmd, options, environ_, dir);
    return 0;
}

static void free_strings(char **strings)
{
    for (size_t i = 0; strings && strings[i]; i++)
        free(strings[i]);
    free(strings);
}

void agx_worker_command_done(struct agx_worker_command *cmd)
{
    free_strings(cmd->argv);
    free_strings(cmd->env);
    *cmd = (struct agx_worker_command){ 0 };
}

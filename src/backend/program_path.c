/* program_path.c: tries a few places in order. */
#include "backend/program_path.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR) != 0;
}

static int resolve(const char *path, char **ret_path, struct agx_error **err)
{
    *ret_path = realpath(path, NULL);
    return *ret_path ? 0 : agx_error_errno(err, errno, "resolve '%s'", path);
}

static int own_program(char out[PATH_MAX], struct agx_error **err)
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

    if (n < 0)
        return agx_error_errno(err, errno, "find our own program");
    out[n] = '\0';
    return 0;
}

int agx_program_path_find(const char *name, const char *named, const char *program, char **ret_path,
                          struct agx_error **err)
{
    static const char *const places[] = { "", "../lib/agentix/", "../init/", "../image/",
                                          "../forward/" };
    char self[PATH_MAX], path[PATH_MAX];
    const char *slash;
    int r, n;

    if (named && *named)
        return is_program(named)
                   ? resolve(named, ret_path, err)
                   : agx_error_set(err, AGX_FAILED_PRECONDITION, "'%s' is not a program", named);
    if (!program) {
        r = own_program(self, err);
        if (r < 0)
            return r;
        program = self;
    }
    slash = strrchr(program, '/');
    for (size_t i = 0; slash && i < AGX_ARRAY_LEN(places); i++) {
        n = snprintf(path, sizeof(path), "%.*s/%s%s", (int)(slash - program), program, places[i],
                     name);
        if (n > 0 && (size_t)n < sizeof(path) && is_program(path))
            return resolve(path, ret_path, err);
    }
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "%s was found neither beside '%s' nor in ../lib/agentix from there: "
                         "install it, or name it in the configuration",
                         name, program);
}

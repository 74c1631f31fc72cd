/* gpus.c: finds device nodes by name. */
#include "backend/files/gpus.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

static int gpus_add(struct agx_gpus *g, uint32_t group, struct agx_error **err)
{
    size_t at = 0;

    while (at < g->len && g->groups[at] < group)
        at++;
    if (at < g->len && g->groups[at] == group)
        return 0;
    if (g->len == AGX_GPU_GROUPS_MAX)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "GPU devices of more than %d groups",
                             AGX_GPU_GROUPS_MAX);
    memmove(&g->groups[at + 1], &g->groups[at], (g->len - at) * sizeof(g->groups[0]));
    g->groups[at] = group;
    g->len++;
    return 0;
}

static int add_matches(struct agx_gpus *g, const glob_t *found, struct agx_error **err)
{
    struct stat st;
    int r = 0;

    for (size_t i = 0; r == 0 && i < found->gl_pathc; i++) {
        if (stat(found->gl_pathv[i], &st) < 0)
            return agx_error_errno(err, errno, "look at device '%s'", found->gl_pathv[i]);
        if (S_ISCHR(st.st_mode)) /* nvidia-caps is a directory */
            r = gpus_add(g, st.st_gid, err);
    }
    return r;
}

int agx_gpus_find(struct agx_gpus *ret, const char *dev, struct agx_error **err)
{
    static const char *const patterns[] = { "nvidia*", "dri/renderD*" };
    struct agx_gpus g = { 0 };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(patterns); i++) {
        char pattern[PATH_MAX];
        glob_t found = { 0 };
        int n = snprintf(pattern, sizeof(pattern), "%s/%s", dev, patterns[i]);

        if (n < 0 || (size_t)n >= sizeof(pattern))
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "'%s' is too long a path", dev);
        n = glob(pattern, 0, NULL, &found);
        if (n == 0)
            r = add_matches(&g, &found, err);
        else if (n != GLOB_NOMATCH)
            r = agx_error_set(err, AGX_INTERNAL, "look for devices '%s'", pattern);
        globfree(&found);
    }
    if (r == 0)
        *ret = g;
    return r;
}

/* sources.c: lstat(2), and a comparison with what nobody may have: by name and by identity. */
#include "backend/sources.h"

#include <limits.h>
#include <sys/stat.h>

#include "base/banned.h"

/* Where engines listen. Whoever may talk to one is root. */
static const char *const engine_paths[] = {
    "/run/docker.sock",        "/var/run/docker.sock",
    "/run/podman/podman.sock", "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",     "/run/buildkit/buildkitd.sock",
};

static enum agx_path_kind kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return AGX_PATH_FILE;
    case S_IFDIR:
        return AGX_PATH_DIRECTORY;
    case S_IFSOCK:
        return AGX_PATH_SOCKET;
    case S_IFLNK:
        return AGX_PATH_SYMLINK;
    default:
        return AGX_PATH_OTHER;
    }
}

/* For "%.*s": a path as long as people read. */
#define PATH_SHOWN(path) agx_text_cut(agx_str_from(path), 512), (path)

/* Is `path` that one, or beneath it? Both are resolved. */
static bool is_within(const char *path, const char *top)
{
    size_t len = strlen(top);

    return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static bool is_private(const char *resolved, const struct stat *st, const char *top)
{
    char top_resolved[PATH_MAX];
    struct stat top_st;

    if (stat(top, &top_st) == 0 && top_st.st_dev == st->st_dev && top_st.st_ino == st->st_ino)
        return true;
    return realpath(top, top_resolved) && is_within(resolved, top_resolved);
}

int agx_sources_look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    const struct agx_sources *s = user;
    char resolved[PATH_MAX];
    struct stat st;
    bool refused = false;

    if (lstat(path, &st) < 0)
        return agx_error_errno(err, errno, "lstat %.*s", PATH_SHOWN(path));
    *ret = kind_of(st.st_mode);
    if (*ret == AGX_PATH_SYMLINK)
        return 0; /* refused by the rules anyway */
    if (!realpath(path, resolved))
        return agx_error_errno(err, errno, "resolve %.*s", PATH_SHOWN(path));
    for (size_t i = 0; i < AGX_ARRAY_LEN(engine_paths) && !refused; i++)
        refused = is_private(resolved, &st, engine_paths[i]);
    for (size_t i = 0; i < s->private_paths_len && !refused; i++)
        refused = is_private(resolved, &st, s->private_paths[i]);
    if (refused)
        return agx_error_set(
            err, AGX_INVALID_ARGUMENT,
            "'%.*s' belongs to the daemon or to a container engine and is not given "
            "to sandboxes",
            PATH_SHOWN(path));
    return 0;
}

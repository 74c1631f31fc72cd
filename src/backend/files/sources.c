/* sources.c: a path walk that compares the identity of every component with the private paths. */
#include "backend/files/sources.h"

#include "base/fd.h"
#include "core/text.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { UNMAPPED = 65534 }; /* the kernel's default */

/* Where engines listen. Access to such a socket is as good as root. */
static const char *const engine_paths[] = {
    "/run/docker.sock",        "/var/run/docker.sock",
    "/run/podman/podman.sock", "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",     "/run/buildkit/buildkitd.sock",
};

struct agx_sources {
    atomic_uint refs;
    struct agx_words private_paths;
    uid_t unmapped;
    struct agx_writables writables;
};

/* For "%.*s": a path, cut to a readable length. */
#define PATH_QUOTED_MAX(path) agx_text_cut(agx_str_from(path), 512), (path)

static uid_t read_unmapped(void)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(32);
    uint64_t uid;

    if (agx_fd_read_file(AT_FDCWD, "/proc/sys/kernel/overflowuid", &text, NULL) < 0 ||
        !agx_parse_u64(agx_str_trim(agx_buf_peek(&text)), UINT32_MAX, &uid))
        return UNMAPPED;
    return (uid_t)uid;
}

int agx_sources_new(const struct agx_sources_config *c, struct agx_sources **ret_sources,
                    struct agx_error **err)
{
    struct agx_sources *s = calloc(1, sizeof(*s));
    int r;

    if (!s)
        return agx_error_no_memory(err);
    r = agx_writables_init(&s->writables, err);
    if (r < 0) {
        free(s);
        return r;
    }
    atomic_init(&s->refs, 1);
    s->unmapped = c->mapped ? read_unmapped() : 0;
    for (size_t i = 0; r == 0 && i < AGX_ARRAY_LEN(engine_paths); i++)
        r = agx_words_add(&s->private_paths, agx_str_from(engine_paths[i]), err);
    for (size_t i = 0; r == 0 && i < c->n_private_paths; i++)
        r = agx_words_add(&s->private_paths, agx_str_from(c->private_paths[i]), err);
    if (r < 0)
        agx_sources_unref(s);
    else
        *ret_sources = s;
    return r;
}

struct agx_sources *agx_sources_ref(struct agx_sources *s)
{
    if (s)
        atomic_fetch_add(&s->refs, 1);
    return s;
}

struct agx_sources *agx_sources_unref(struct agx_sources *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
        return NULL;
    agx_words_done(&s->private_paths);
    agx_writables_done(&s->writables);
    free(s);
    return NULL;
}

struct agx_writables *agx_sources_writables(struct agx_sources *s)
{
    return s ? &s->writables : NULL;
}

enum agx_path_kind agx_sources_kind(mode_t mode)
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

/* Identifies the private paths as they are now; returns how many exist. */
static size_t find_private(const struct agx_sources *s, struct agx_file_id *out)
{
    size_t n = 0;

    for (size_t i = 0; i < s->private_paths.len; i++) {
        _cleanup_close_ int fd = open(s->private_paths.items[i], O_PATH | O_CLOEXEC);

        if (fd >= 0 && agx_hostpath_identify(fd, &out[n]) == 0)
            n++;
    }
    return n;
}

int agx_sources_open(const struct agx_sources_asker *asker, const char *path, bool follow_last,
                     struct agx_hostpath *ret, struct agx_error **err)
{
    struct agx_sources *s = asker->sources;
    _cleanup_free_ struct agx_file_id *private =
        calloc(s ? s->private_paths.len : 1, sizeof(*private));
    struct agx_hostpath_rules rules = { .caller = asker->uid,
                                        .unmapped = s ? s->unmapped : 0,
                                        .writables = agx_sources_writables(s),
                                        .marks = private,
                                        .follow_last = follow_last };
    int r;

    if (!private)
        return agx_error_no_memory(err);
    rules.n_marks = s ? find_private(s, private) : 0;
    r = agx_hostpath_open(path, &rules, ret, err);
    if (r < 0 || !ret->marked)
        return r;
    agx_hostpath_done(ret);
    return agx_error_set(err, AGX_INVALID_ARGUMENT,
                         "'%.*s' belongs to the daemon or to a container engine and is not given "
                         "to sandboxes",
                         PATH_QUOTED_MAX(path));
}

int agx_sources_look(void *user, const char *path, enum agx_path_kind *ret, struct agx_error **err)
{
    struct agx_hostpath found = AGX_HOSTPATH_INIT;
    int r = agx_sources_open(user, path, false, &found, err);

    if (r == 0)
        *ret = agx_sources_kind(found.mode);
    agx_hostpath_done(&found);
    return r;
}

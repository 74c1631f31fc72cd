/*
 * unpack_parent.c: finds or makes the directory of an entry.
 *
 * Only we write a layer's own tree: a symlink on the way can only have come from the tar, and is
 * refused. An existing root may have symlinks of its image: the kernel resolves those as if the
 * root were "/" (RESOLVE_IN_ROOT), so they cannot lead out.
 */
#include "image/unpack_internal.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"

/* ---- names ---- */

static int unpack_parent_refuse(const char *name, const char *why, struct agx_error **err)
{
    return agx_error_set(err, AGX_INVALID_ARGUMENT, "entry '%.200s' is refused: %s", name, why);
}

/* Appends a component: the last one becomes part of the parent. */
static int unpack_parent_push(struct unpack_name *n, size_t *parent_len, struct agx_str part)
{
    size_t last = strlen(n->last);

    if (part.len > NAME_MAX || *parent_len + last + part.len + 2 >= sizeof(n->parent))
        return -1;
    if (last > 0) {
        if (*parent_len > 0)
            n->parent[(*parent_len)++] = '/';
        memcpy(n->parent + *parent_len, n->last, last);
        *parent_len += last;
        n->parent[*parent_len] = '\0';
    }
    memcpy(n->last, part.ptr, part.len);
    n->last[part.len] = '\0';
    return 0;
}

int unpack_name_cut(const struct unpacking *u, const char *text, struct unpack_name *ret,
                    struct agx_error **err)
{
    struct agx_str rest = agx_str_from(text), part;
    size_t len = 0;
    unsigned depth = 0;

    ret->parent[0] = ret->last[0] = '\0';
    if (!text || !*text)
        return unpack_parent_refuse("", "it has no name", err);
    if (*text == '/')
        return unpack_parent_refuse(text, "its name is absolute", err);
    while (agx_str_split(&rest, '/', &part)) {
        if (part.len == 0 || agx_str_eq(part, AGX_STR(".")))
            continue;
        if (agx_str_eq(part, AGX_STR("..")))
            return unpack_parent_refuse(text, "its name has '..' in it", err);
        if (++depth > u->p->limits.depth)
            return unpack_parent_refuse(text, "its name has too many components", err);
        if (unpack_parent_push(ret, &len, part) < 0)
            return unpack_parent_refuse(text, "its name is too long", err);
    }
    return 0;
}

/* ---- directories ---- */

/* -1 and errno. The kernel reports EAGAIN when something is renamed meanwhile. */
static int open_resolved(const struct unpacking *u, const char *path)
{
    struct open_how how = {
        .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_NO_MAGICLINKS |
                   (u->p->into ? RESOLVE_IN_ROOT : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS),
    };
    int fd;

    do
        fd = (int)syscall(SYS_openat2, u->root, *path ? path : ".", &how, sizeof(how));
    while (fd < 0 && errno == EAGAIN);
    return fd;
}

/* The path in the root: params.into comes first. */
static int whole_path(const struct unpacking *u, const char *path, char out[PATH_MAX],
                      struct agx_error **err)
{
    const char *into = u->p->into;
    int n = snprintf(out, PATH_MAX, "%s%s%s", into ? into : "", into ? "/" : "", path);

    return n < 0 || n >= PATH_MAX ? unpack_parent_refuse(path, "its name is too long", err) : 0;
}

static int no_dir(const char *path, struct agx_error **err)
{
    if (errno == ELOOP || errno == ENOTDIR)
        return agx_error_set(err, AGX_INVALID_ARGUMENT,
                             "its directory '%.200s' is refused: it leads through %s", path,
                             errno == ELOOP ? "a symlink" : "something that is not a directory");
    return agx_error_errno(err, errno, "make directory '%.200s'", path);
}

int unpack_open_dir(struct unpacking *u, const char *path, struct agx_error **err)
{
    char whole[PATH_MAX];
    int fd, r = whole_path(u, path, whole, err);

    if (r < 0)
        return r;
    fd = open_resolved(u, whole);
    return fd < 0 ? agx_error_errno(err, errno, "open directory '%.200s'", whole) : fd;
}

/* Gives it to the sandbox's root: where ids are shifted, we are another user there. */
static int give_to_root(const struct unpacking *u, int fd)
{
    if (!u->p->idmap.on)
        return 0;
    return fchownat(fd, "", agx_idmap_outer(u->p->idmap.uid, 0),
                    agx_idmap_outer(u->p->idmap.gid, 0), AT_EMPTY_PATH);
}

/* Makes a directory that the tar does not list, as other programs do. */
static int make_dir(const struct unpacking *u, int at, const char *name, const char *path)
{
    _cleanup_close_ int fd = -1;

    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return -1;
    fd = open_resolved(u, path);
    if (fd < 0 || give_to_root(u, fd) < 0 || fchmod(fd, 0755) < 0) /* the umask does not apply to
                                                                    * the tar */
        return -1;
    return AGX_TAKE_FD(fd);
}

/* Opens the directory at `path`, making missing ones on the way. */
static int open_or_make(const struct unpacking *u, char *path, struct agx_error **err)
{
    _cleanup_close_ int held = open_resolved(u, path);
    char *end;

    if (held >= 0)
        return AGX_TAKE_FD(held);
    held = open_resolved(u, u->p->into ? "/" : ".");
    for (char *at = path; held >= 0 && *at; at = end) {
        int next;
        char was;

        at += strspn(at, "/");
        end = strchrnul(at, '/');
        if (end == at)
            break;
        was = *end;
        *end = '\0';
        next = open_resolved(u, path);
        if (next < 0 && errno == ENOENT)
            next = make_dir(u, held, at, path);
        if (next < 0)
            return no_dir(path, err);
        *end = was;
        agx_closep(&held);
        held = next;
    }
    return held < 0 ? agx_error_errno(err, errno, "open the root") : AGX_TAKE_FD(held);
}

int unpack_parent(struct unpacking *u, const char *parent, struct agx_error **err)
{
    char whole[PATH_MAX];
    int fd, r;

    if (u->parent_fd >= 0 && strcmp(u->parent, parent) == 0)
        return u->parent_fd;
    unpack_forget_parent(u);
    r = whole_path(u, parent, whole, err);
    if (r < 0)
        return r;
    fd = open_or_make(u, whole, err);
    if (fd < 0)
        return fd;
    (void)snprintf(u->parent, sizeof(u->parent), "%s", parent);
    u->parent_fd = fd;
    return fd;
}

void unpack_forget_parent(struct unpacking *u)
{
    agx_closep(&u->parent_fd);
    u->parent_fd = -1;
}

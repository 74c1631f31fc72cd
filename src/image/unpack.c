/*
 * unpack.c: walks through a tar, and sets modes and times of directories at the end. The parts:
 * tarstream.c reads, unpack_parent.c finds the place, unpack_entry.c writes.
 *
 * Whiteouts only affect the layers below. If this layer itself has the name, that hides what is
 * below: a directory becomes opaque and a file stays as it is, in whichever order the two come.
 */
#include "image/unpack_internal.h"

#include "base/path.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/banned.h"

#define WHITEOUT ".wh."
#define WHITEOUT_META WHITEOUT WHITEOUT /* metadata of the storage driver, not a file */
#define WHITEOUT_OPAQUE WHITEOUT_META ".opq"

/* ---- whiteouts ---- */

bool unpack_is_whiteout(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

/* Native sandboxes mount with `userxattr`, which uses this attribute. The other is for mounts by
 * root, and not every user may set it. */
int unpack_set_opaque(int dir, struct agx_error **err)
{
    if (fsetxattr(dir, "user.overlay.opaque", "y", 1, 0) < 0)
        return agx_error_errno(err, errno, "mark a directory as opaque");
    (void)!fsetxattr(dir, "trusted.overlay.opaque", "y", 1, 0);
    return 0;
}

static int make_whiteout(int parent, const char *hidden, struct agx_error **err)
{
    _cleanup_close_ int dir = -1;
    struct stat st;

    if (fstatat(parent, hidden, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        if (mknodat(parent, hidden, S_IFCHR, makedev(0, 0)) < 0)
            return agx_error_errno(err, errno, "make the whiteout");
        return 0;
    }
    if (!S_ISDIR(st.st_mode))
        return 0;
    dir = openat(parent, hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return dir < 0 ? agx_error_errno(err, errno, "open the directory")
                   : unpack_set_opaque(dir, err);
}

int unpack_whiteout(struct unpacking *u, const struct unpack_name *name, struct agx_error **err)
{
    const char *hidden = name->last + strlen(WHITEOUT);
    bool is_opaque = strcmp(name->last, WHITEOUT_OPAQUE) == 0;
    int parent;

    if (!is_opaque && agx_str_starts(agx_str_from(name->last), AGX_STR(WHITEOUT_META)))
        return 0;
    if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "it hides no name");
    parent = unpack_parent(u, name->parent, err);
    if (parent < 0)
        return parent;
    return is_opaque ? unpack_set_opaque(parent, err) : make_whiteout(parent, hidden, err);
}

/* ---- what entries share ---- */

int unpack_clear(struct unpacking *u, int parent, const char *name, struct agx_error **err)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return agx_error_errno(err, errno, "replace what is there");
    if (u->p->into)
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "there is a directory of that name");
    return agx_path_remove_tree(parent, name, err);
}

/* Those that a layer may set. overlayfs's own would redirect it. */
static bool is_kept(struct agx_str name)
{
    return agx_str_eq(name, AGX_STR("security.capability")) ||
           (agx_str_starts(name, AGX_STR("user.")) &&
            !agx_str_starts(name, AGX_STR("user.overlay.")));
}

int unpack_xattrs(struct unpacking *u, int fd, struct archive_entry *e, struct agx_error **err)
{
    const char *name;
    const void *value;
    size_t n;

    (void)archive_entry_xattr_reset(e);
    while (archive_entry_xattr_next(e, &name, &value, &n) == ARCHIVE_OK) {
        if (!name || !is_kept(agx_str_from(name)) || fsetxattr(fd, name, value, n, 0) == 0)
            continue;
        /* The file system has none, or the user may not set it: the file is still usable. */
        if (errno == ENOTSUP || (errno == EPERM && !u->p->owners))
            continue;
        return agx_error_errno(err, errno, "set its attribute '%.100s'", name);
    }
    return 0;
}

/* ---- the tar ---- */

static int take_entry(struct unpacking *u, struct archive_entry *e, struct agx_error **err)
{
    const char *text = archive_entry_pathname(e);
    struct unpack_name name;
    int r = 0;

    if (++u->result.entries > u->p->limits.entries)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "the tar has more than %llu entries, the limit",
                             (unsigned long long)u->p->limits.entries);
    r = unpack_name_cut(u, text, &name, err);
    if (r < 0)
        return r;
    if (u->p->whiteouts && agx_str_starts(agx_str_from(name.last), AGX_STR(WHITEOUT)))
        r = unpack_whiteout(u, &name, err);
    else
        r = unpack_entry(u, e, &name, err);
    return r < 0 ? agx_error_wrap(err, r, "unpack '%.200s'", text) : 0;
}

/* In the order of the tar: for a directory that occurs twice the last one counts. One that a later
 * entry replaced is not a directory any more, and is skipped. */
static int finish_dirs(struct unpacking *u, struct agx_error **err)
{
    for (size_t at = 0; at < u->dirs.len;) {
        _cleanup_close_ int fd = -1;
        struct late_dir d;
        const char *path = (const char *)u->dirs.data + at + sizeof(d);

        memcpy(&d, u->dirs.data + at, sizeof(d));
        at += sizeof(d) + d.path_len;
        fd = unpack_open_dir(u, path, NULL);
        if (fd < 0)
            continue;
        if (fchmod(fd, d.mode) < 0 ||
            futimens(fd, (struct timespec[2]){ { .tv_nsec = UTIME_OMIT }, d.mtime }) < 0)
            return agx_error_errno(err, errno, "set mode and time of '%.200s'", path);
    }
    return 0;
}

static int unpack_all(struct unpacking *u, struct agx_error **err)
{
    struct archive_entry *e = NULL;
    int r;

    while ((r = agx_tarstream_next(u->tar, &e, err)) > 0) {
        r = take_entry(u, e, err);
        if (r < 0)
            return r;
    }
    if (r == 0)
        r = finish_dirs(u, err);
    if (r == 0)
        r = agx_tarstream_digest(u->tar, u->result.diff_id, err);
    return r;
}

int agx_unpack(int root, const struct agx_unpack_params *p, struct agx_unpack_result *ret,
               struct agx_error **err)
{
    struct unpacking u = {
        .root = root, .p = p, .parent_fd = -1, .dirs = AGX_BUF_INIT(AGX_UNPACK_DIRS_BYTES)
    };
    int r = agx_tarstream_open(p, &u.tar, err);

    if (r == 0)
        r = unpack_all(&u, err);
    if (r == 0)
        *ret = u.result;
    u.tar = agx_tarstream_close(u.tar);
    unpack_forget_parent(&u);
    agx_buf_done(&u.dirs);
    return r;
}

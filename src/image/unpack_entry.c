/*
 * unpack_entry.c: one entry of a tar as a file.
 *
 * An existing file at its name is removed first, and the new one is made exclusively (O_EXCL):
 * nothing is ever written through what an earlier entry left there. Owner before mode, because
 * changing the owner clears setuid; both before the attributes, because it also clears file
 * capabilities; the time last.
 */
#include "image/unpack_internal.h"

#include "base/fd.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { NS_MAX = 999999999 };

static struct timespec mtime_of(struct archive_entry *e)
{
    struct timespec t = { .tv_sec = archive_entry_mtime(e),
                          .tv_nsec = archive_entry_mtime_nsec(e) };

    if (t.tv_nsec < 0 || t.tv_nsec > NS_MAX)
        t.tv_nsec = 0;
    return t;
}

static mode_t mode_of(struct archive_entry *e)
{
    return archive_entry_mode(e) & 07777;
}

static int owner_of(struct archive_entry *e, uid_t *ret_uid, gid_t *ret_gid, struct agx_error **err)
{
    la_int64_t uid = archive_entry_uid(e), gid = archive_entry_gid(e);

    /* All ones mean "unchanged". */
    if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "its owner %lld:%lld is invalid",
                             (long long)uid, (long long)gid);
    *ret_uid = (uid_t)uid;
    *ret_gid = (gid_t)gid;
    return 0;
}

/* Sets the owner of `name` in `at` (or, with an empty name, of `at` itself). Follows no symlink. */
static int set_owner(const struct unpacking *u, int at, const char *name, struct archive_entry *e,
                     struct agx_error **err)
{
    uid_t uid = 0;
    gid_t gid = 0;
    int r = owner_of(e, &uid, &gid, err);

    if (r < 0 || !u->p->owners)
        return r;
    if (u->p->idmap.on) {
        uid = agx_idmap_outer(u->p->idmap.uid, uid);
        gid = agx_idmap_outer(u->p->idmap.gid, gid);
    }
    if (fchownat(at, name, uid, gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0)
        return agx_error_errno(err, errno, "give it to %u:%u", uid, gid);
    return 0;
}

/* ---- regular files ---- */

/* Counts bytes of files before they are written. */
static int count_bytes(struct unpacking *u, uint64_t n, struct agx_error **err)
{
    if (n > u->p->limits.bytes || u->result.bytes > u->p->limits.bytes - n)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "the files have more than %llu bytes, the limit",
                             (unsigned long long)u->p->limits.bytes);
    u->result.bytes += n;
    return 0;
}

static int write_at(int fd, struct agx_str bytes, uint64_t offset, struct agx_error **err)
{
    while (bytes.len > 0) {
        ssize_t n = pwrite(fd, bytes.ptr, bytes.len, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return agx_error_errno(err, errno, "write");
        bytes = agx_str_skip(bytes, (size_t)n);
        offset += (uint64_t)n;
    }
    return 0;
}

/* The content, with its holes; at most as much as the header announced. */
static int write_content(struct unpacking *u, int fd, uint64_t size, struct agx_error **err)
{
    struct agx_str bytes = { 0 };
    uint64_t offset = 0;
    int r;

    while ((r = agx_tarstream_data(u->tar, &bytes, &offset, err)) > 0) {
        if (offset > size || bytes.len > size - offset)
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "it is longer than its header says");
        r = write_at(fd, bytes, offset, err);
        if (r < 0)
            return r;
    }
    if (r == 0 && ftruncate(fd, (off_t)size) < 0)
        return agx_error_errno(err, errno, "set its length");
    return r;
}

static int unpack_file(struct unpacking *u, struct archive_entry *e, int parent, const char *name,
                       struct agx_error **err)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(e) };
    _cleanup_close_ int fd = -1;
    la_int64_t size = archive_entry_size(e);
    int r = size < 0 ? agx_error_set(err, AGX_INVALID_ARGUMENT, "its size is invalid")
                     : count_bytes(u, (uint64_t)size, err);

    if (r == 0)
        r = unpack_clear(u, parent, name, err);
    if (r < 0)
        return r;
    fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return agx_error_errno(err, errno, "make the file");
    r = write_content(u, fd, (uint64_t)size, err);
    if (r == 0)
        r = set_owner(u, fd, "", e, err);
    if (r == 0 && fchmod(fd, mode_of(e)) < 0)
        r = agx_error_errno(err, errno, "set its mode");
    if (r == 0)
        r = unpack_xattrs(u, fd, e, err);
    if (r == 0 && futimens(fd, times) < 0)
        r = agx_error_errno(err, errno, "set its time");
    return r;
}

/* ---- directories ---- */

/* Mode and time are set at the end. */
static int note_dir(struct unpacking *u, struct archive_entry *e, const struct unpack_name *name,
                    struct agx_error **err)
{
    struct late_dir d = { .mtime = mtime_of(e), .mode = mode_of(e) };
    char path[PATH_MAX + NAME_MAX + 2];
    int n =
        snprintf(path, sizeof(path), "%s%s%s", name->parent, *name->parent ? "/" : "", name->last);

    d.path_len = (size_t)n + 1;
    if (agx_buf_append(&u->dirs, agx_str_bytes(&d, sizeof(d))) < 0 ||
        agx_buf_append(&u->dirs, agx_str_bytes(path, d.path_len)) < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED, "there are too many directories");
    return 0;
}

/* Makes the directory unless it exists. Returns a descriptor. */
static int make_dir(struct unpacking *u, int parent, const struct unpack_name *name,
                    struct agx_error **err)
{
    bool hides = false;
    struct stat st;
    int fd, r = 0;

    if (fstatat(parent, name->last, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        /* An existing root may have a symlink to a directory here. */
        if (S_ISDIR(st.st_mode))
            return openat(parent, name->last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (u->p->into && S_ISLNK(st.st_mode)) {
            char path[PATH_MAX + NAME_MAX + 2];

            (void)snprintf(path, sizeof(path), "%s/%s", name->parent, name->last);
            fd = unpack_open_dir(u, path, NULL);
            if (fd >= 0)
                return fd;
        }
        hides = unpack_is_whiteout(&st);
        r = unpack_clear(u, parent, name->last, err);
    }
    if (r == 0 && mkdirat(parent, name->last, 0700) < 0)
        r = agx_error_errno(err, errno, "make the directory");
    if (r < 0)
        return r;
    fd = openat(parent, name->last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && hides)
        r = unpack_set_opaque(fd, err);
    if (r < 0)
        agx_closep(&fd);
    return r < 0 ? r : fd;
}

static int unpack_dir(struct unpacking *u, struct archive_entry *e, int parent,
                      const struct unpack_name *name, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    int r;

    fd = *name->last ? make_dir(u, parent, name, err) : unpack_open_dir(u, "", err);
    if (fd < -1)
        return fd;
    if (fd < 0)
        return agx_error_errno(err, errno, "open the directory");
    r = set_owner(u, fd, "", e, err);
    if (r == 0)
        r = unpack_xattrs(u, fd, e, err);
    return r < 0 ? r : note_dir(u, e, name, err);
}

/* ---- links and FIFOs ---- */

static int unpack_symlink(struct unpacking *u, struct archive_entry *e, int parent,
                          const char *name, struct agx_error **err)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(e) };
    const char *target = archive_entry_symlink(e);
    int r = unpack_clear(u, parent, name, err);

    if (r < 0)
        return r;
    if (!target || !*target || symlinkat(target, parent, name) < 0)
        return target && *target
                   ? agx_error_errno(err, errno, "make the symlink")
                   : agx_error_set(err, AGX_INVALID_ARGUMENT, "the symlink leads nowhere");
    r = set_owner(u, parent, name, e, err);
    if (r == 0 && utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = agx_error_errno(err, errno, "set its time");
    return r;
}

static int unpack_fifo(struct unpacking *u, struct archive_entry *e, int parent, const char *name,
                       struct agx_error **err)
{
    const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, mtime_of(e) };
    int r = unpack_clear(u, parent, name, err);

    if (r == 0 && mkfifoat(parent, name, 0600) < 0)
        r = agx_error_errno(err, errno, "make the FIFO");
    if (r == 0)
        r = set_owner(u, parent, name, e, err);
    if (r == 0 && (fchmodat(parent, name, mode_of(e), AT_SYMLINK_NOFOLLOW) < 0 ||
                   utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0))
        r = agx_error_errno(err, errno, "set its mode and time");
    return r;
}

/* To an earlier file of the tar: its names are paths from the tar's root, with or without a leading
 * '/'. */
static int unpack_hardlink(struct unpacking *u, const char *target, const struct unpack_name *name,
                           struct agx_error **err)
{
    _cleanup_close_ int from = -1;
    struct unpack_name t;
    int to, r = unpack_name_cut(u, target + strspn(target, "/"), &t, err);

    if (r < 0)
        return agx_error_wrap(err, r, "its hard link to '%.200s'", target);
    if (strcmp(t.parent, name->parent) == 0 && strcmp(t.last, name->last) == 0)
        return 0; /* a link to itself changes nothing */
    from = unpack_open_dir(u, t.parent, NULL);
    to = unpack_parent(u, name->parent, err);
    if (to < 0)
        return to;
    r = unpack_clear(u, to, name->last, err);
    if (r < 0)
        return r;
    if (from < 0 || linkat(from, t.last, to, name->last, 0) < 0)
        return agx_error_set(
            err, AGX_INVALID_ARGUMENT,
            "its hard link to '%.200s' is refused: the tar has no such file before", target);
    return 0;
}

/* ---- the choice ---- */

int unpack_entry(struct unpacking *u, struct archive_entry *e, const struct unpack_name *name,
                 struct agx_error **err)
{
    const char *hardlink = archive_entry_hardlink(e);
    unsigned type = archive_entry_filetype(e);
    int parent;

    if (!hardlink && (type == AE_IFCHR || type == AE_IFBLK || type == AE_IFSOCK)) {
        u->result.left_out++;
        return 0;
    }
    if (!*name->last && (hardlink || type != AE_IFDIR))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "it would replace the root");
    if (hardlink)
        return unpack_hardlink(u, hardlink, name, err);
    parent = unpack_parent(u, name->parent, err);
    if (parent < 0)
        return parent;
    switch (type) {
    case AE_IFREG:
        return unpack_file(u, e, parent, name->last, err);
    case AE_IFDIR:
        return unpack_dir(u, e, parent, name, err);
    case AE_IFLNK:
        return unpack_symlink(u, e, parent, name->last, err);
    case AE_IFIFO:
        return unpack_fifo(u, e, parent, name->last, err);
    default:
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "its type is not known");
    }
}

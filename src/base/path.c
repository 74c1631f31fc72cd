/* path.c: opens, makes and writes files beneath a directory. path_remove.c removes them. */
#include "base/path.h"

#include "base/banned.h"
#include "base/fd.h"
#include "base/path_internal.h"
#include "base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int path_check(const char *path, struct path_name *ret, struct agx_error **err)
{
    struct agx_str rest = agx_str_from(path), part;
    size_t len = 0;

    if (!*path || *path == '/')
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "path '%s' is %s", path,
                             *path ? "not relative" : "empty");
    if (rest.len >= sizeof(ret->text))
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "path of %zu bytes is too long", rest.len);
    ret->is_dir = false;
    while (agx_str_split(&rest, '/', &part)) {
        ret->is_dir = part.len == 0 || agx_str_eq(part, AGX_STR("."));
        if (agx_str_eq(part, AGX_STR("..")))
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "path '%s' has '..' in it", path);
        if (ret->is_dir)
            continue;
        if (len > 0)
            ret->text[len++] = '/';
        memcpy(ret->text + len, part.ptr, part.len);
        len += part.len;
    }
    if (len == 0)
        ret->text[len++] = '.';
    ret->text[len] = '\0';
    return 0;
}

void path_cut(struct path_name *p, const char **ret_parent, const char **ret_last)
{
    char *slash = strrchr(p->text, '/');

    *ret_parent = slash ? p->text : ".";
    *ret_last = slash ? slash + 1 : p->text;
    if (slash)
        *slash = '\0';
}

int path_open_kernel(int dirfd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)flags,
        .mode = flags & O_CREAT ? mode : 0, /* openat2 refuses an unused mode */
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* Opens a name without a slash; a symlink is always ELOOP, unlike with openat. */
static int open_one(int dirfd, const char *name, int flags, mode_t mode)
{
    bool path_only = (flags & O_PATH) && !(flags & O_NOFOLLOW); /* opens the symlink itself */
    int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    int saved = errno;
    struct stat st;

    if (fd < 0 && errno == ENOTDIR && fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode))
        saved = ELOOP;
    if (fd >= 0 && path_only && (fstat(fd, &st) < 0 || S_ISLNK(st.st_mode))) {
        (void)close(fd);
        fd = -1;
        saved = ELOOP;
    }
    errno = saved;
    return fd;
}

int path_open_walk(int dirfd, const char *path, int flags, mode_t mode)
{
    _cleanup_close_ int held = -1;
    struct agx_str rest = agx_str_from(path), part;
    char name[NAME_MAX + 1];

    while (agx_str_split(&rest, '/', &part)) {
        int at = held >= 0 ? held : dirfd, next;

        if (part.len > NAME_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, part.ptr, part.len);
        name[part.len] = '\0';
        if (!rest.ptr)
            return open_one(at, name, flags, mode);
        next = open_one(at, name, O_PATH | O_DIRECTORY, 0);
        if (next < 0)
            return -1;
        agx_closep(&held);
        held = next;
    }
    errno = EINVAL; /* not reached: a checked path has a component */
    return -1;
}

/* Opens a checked path, by openat2 or by components. -1 and errno. */
static int open_checked(int dirfd, const char *path, int flags, mode_t mode)
{
    int fd = path_open_kernel(dirfd, path, flags | O_CLOEXEC, mode);

    /* ENOSYS, EPERM: no such system call, or a filter blocks it. EAGAIN: a rename happened above
     * us.
     */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN))
        fd = path_open_walk(dirfd, path, flags | O_CLOEXEC, mode);
    return fd;
}

int agx_path_open(int dirfd, const char *path, int flags, mode_t mode, struct agx_error **err)
{
    struct path_name p = { .is_dir = false };
    int fd, r = path_check(path, &p, err);

    if (r < 0)
        return r;
    fd = open_checked(dirfd, p.text, p.is_dir ? flags | O_DIRECTORY : flags, mode);
    return fd < 0 ? agx_error_errno(err, errno, "open '%s'", path) : fd;
}

int agx_path_mkdirs(int dirfd, const char *path, mode_t mode, struct agx_error **err)
{
    _cleanup_close_ int held = -1;
    struct path_name p = { .is_dir = false };
    struct agx_str rest, part;
    int r = path_check(path, &p, err);

    if (r < 0)
        return r;
    rest = agx_str_from(p.text);
    while (agx_str_split(&rest, '/', &part)) {
        int at = held >= 0 ? held : dirfd, next;
        char *name = p.text + (part.ptr - p.text);

        name[part.len] = '\0'; /* overwrites the slash, no longer needed */
        if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
            return agx_error_errno(err, errno, "make directory '%s' of '%s'", name, path);
        next = open_one(at, name, O_RDONLY | O_DIRECTORY, 0);
        if (next < 0)
            return agx_error_errno(err, errno, "open directory '%s' of '%s'", name, path);
        agx_closep(&held);
        held = next;
    }
    return AGX_TAKE_FD(held);
}

/* Creates `name` in `dir` with the content, synced to disk. It must not exist. */
static int write_new(int dir, const char *name, struct agx_str bytes, mode_t mode,
                     struct agx_error **err)
{
    _cleanup_close_ int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int r;

    if (fd < 0)
        return agx_error_errno(err, errno, "make '%s'", name);
    r = agx_fd_write_all(fd, bytes, err);
    if (r == 0 && (fchmod(fd, mode) < 0 || fsync(fd) < 0))
        r = agx_error_errno(err, errno, "sync '%s'", name);
    if (r < 0)
        (void)unlinkat(dir, name, 0);
    return r;
}

/* Writes a temporary file, then renames it over `last`, a name in `dir`. */
static int replace(int dir, const char *last, struct agx_str bytes, mode_t mode,
                   struct agx_error **err)
{
    char temp[AGX_UUID_TEXT_SIZE + 8], id[AGX_UUID_TEXT_SIZE];
    int r = agx_uuid_new(id, err);

    if (r < 0)
        return r;
    (void)snprintf(temp, sizeof(temp), AGX_PATH_TEMP "%s", id);
    r = write_new(dir, temp, bytes, mode, err);
    if (r < 0)
        return r;
    if (renameat(dir, temp, dir, last) < 0) {
        r = agx_error_errno(err, errno, "rename '%s'", temp);
        (void)unlinkat(dir, temp, 0);
        return r;
    }
    return fsync(dir) < 0 ? agx_error_errno(err, errno, "sync its directory") : 0;
}

int agx_path_write_file(int dirfd, const char *path, struct agx_str bytes, mode_t mode,
                        struct agx_error **err)
{
    _cleanup_close_ int dir = -1;
    struct path_name p = { .is_dir = false };
    const char *parent, *last;
    int r = path_check(path, &p, err);

    if (r < 0)
        return r;
    if (p.is_dir)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "path '%s' names a directory", path);
    path_cut(&p, &parent, &last);
    dir = open_checked(dirfd, parent, O_RDONLY | O_DIRECTORY, 0);
    if (dir < 0)
        return agx_error_errno(err, errno, "open the directory of '%s'", path);
    r = replace(dir, last, bytes, mode, err);
    return r < 0 ? agx_error_wrap(err, r, "write file '%s'", path) : 0;
}

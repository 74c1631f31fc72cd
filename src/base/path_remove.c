/*
 * path_remove.c: removes a tree.
 *
 * The tree's creator chose its depth, so neither stack nor descriptors may grow with it. At most
 * LEVELS_MAX levels are open at a time. A non-empty directory below them is moved up into `top`,
 * the root of the tree, under a new name, and is removed later. So every directory is opened once
 * and moved at most once.
 *
 * Before a directory is opened or moved, rmdir is tried on it: it removes an empty directory, and
 * fails with EBUSY for a mount.
 */
#include "base/path.h"

#include "base/banned.h"
#include "base/macros.h"
#include "base/path_internal.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

/* Deeper than most trees, since moving a directory costs as much as removing it. */
enum { LEVELS_MAX = 16 };

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/*
 * Gives the owner all rights to the directory `name`: the tree's creator may have removed them, and
 * unless we are root we need them. An O_PATH descriptor needs no rights, but fchmod does not accept
 * it: hence the path through /proc.
 */
static void unlock_dir(int at, const char *name)
{
    _cleanup_close_ int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[32];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)!chmod(link, 0700); /* if it fails, the retried operation reports the error */
}

/*
 * Removes one entry unless it is a non-empty directory. 1: removed, or already gone; 0: a non-empty
 * directory; negative and *err.
 */
static int remove_simple(int dir, const char *name, struct agx_error **err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 1;
    /* Linux returns EISDIR; POSIX, and some file systems, EPERM. */
    if (errno != EISDIR && errno != EPERM)
        return agx_error_errno(err, errno, "remove '%s'", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return agx_error_errno(err, errno, "remove directory '%s'", name);
    return 0;
}

/* Moves a directory up into `top`. */
static int lift(int dir, const char *name, int top, struct agx_error **err)
{
    char lifted[32];
    uint64_t id;
    int r = agx_random_bytes(&id, sizeof(id), err);

    if (r < 0)
        return r;
    (void)snprintf(lifted, sizeof(lifted), ".rm-%016" PRIx64, id);
    if (geteuid() != 0)
        unlock_dir(dir, name); /* moving a directory writes its ".." */
    if (renameat(dir, name, top, lifted) < 0)
        return agx_error_errno(err, errno, "move directory '%s'", name);
    return 0;
}

static int remove_dir(int at, const char *name, int top, int level, struct agx_error **err);

/* Removes all entries that one pass over the directory finds. 1: there were some; 0: none; negative
 * and *err. */
static int remove_entries(DIR *d, int top, int level, struct agx_error **err)
{
    struct dirent *e;
    int found = 0;

    for (errno = 0; (e = readdir(d)); errno = 0) {
        int r;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        found = 1;
        r = remove_simple(dirfd(d), e->d_name, err);
        if (r == 0 && level < LEVELS_MAX)
            r = remove_dir(dirfd(d), e->d_name, top, level + 1, err);
        else if (r == 0)
            r = lift(dirfd(d), e->d_name, top, err);
        if (r < 0)
            return r;
    }
    return errno == 0 ? found : agx_error_errno(err, errno, "read a directory");
}

static DIR *open_dir(int at, const char *name)
{
    _cleanup_close_ int fd = -1;
    DIR *d;

    if (geteuid() != 0)
        unlock_dir(at, name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    d = fd < 0 ? NULL : fdopendir(fd);
    if (d)
        (void)AGX_TAKE_FD(fd); /* d owns it now */
    return d;
}

/* Removes the directory `name` in `at` with its content. `top` -1: it is the top itself. */
static int remove_dir(int at, const char *name, int top, int level, struct agx_error **err)
{
    _cleanup_(closedirp) DIR *d = open_dir(at, name);
    int r;

    if (!d)
        return agx_error_errno(err, errno, "open directory '%s'", name);
    /* Repeat until it is empty: directories that were moved up appear in the next pass. */
    while ((r = remove_entries(d, top >= 0 ? top : dirfd(d), level, err)) > 0) {
        if (unlinkat(at, name, AT_REMOVEDIR) == 0)
            return 0;
        rewinddir(d);
    }
    if (r == 0 && unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = agx_error_errno(err, errno, "remove directory '%s'", name);
    return r;
}

int agx_path_remove_tree(int dirfd, const char *path, struct agx_error **err)
{
    _cleanup_close_ int dir = -1;
    struct agx_error *cause = NULL;
    struct path_name p = { .is_dir = false };
    const char *parent, *last;
    int r = path_check(path, &p, err);

    if (r < 0)
        return r;
    if (strcmp(p.text, ".") == 0)
        return agx_error_set(err, AGX_INVALID_ARGUMENT, "path '%s' is the directory itself", path);
    path_cut(&p, &parent, &last);
    dir = agx_path_open(dirfd, parent, O_RDONLY | O_DIRECTORY, 0, &cause);
    if (dir == -AGX_NOT_FOUND) {
        agx_error_free(cause);
        return 0;
    }
    if (dir < 0) {
        agx_error_propagate(err, &cause);
        return dir;
    }
    r = remove_simple(dir, last, err);
    if (r == 0)
        r = remove_dir(dir, last, -1, 0, err);
    return r < 0 ? agx_error_wrap(err, r, "remove '%s'", path) : 0;
}

/*
 * path_remove.c: removes a tree without following it down.
 *
 * Whoever made the tree chose its depth, so neither the stack nor the descriptors may grow with it.
 * Only two levels are ever open: `top`, the root of the tree, and `dir`, an entry of it. Whatever
 * directory inside `dir` is not empty is moved up to be an entry of `top` under a new name, and its
 * turn comes; so every directory is opened once and moved at most once.
 *
 * Before a directory is opened or moved, rmdir has been tried on it: that is the test for "empty",
 * and the one for mounts, since the kernel answers EBUSY for those.
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

/* What is done to each entry of a directory. 0, or negative and *err. */
typedef int (*entry_fn)(int dir, const char *name, int top, struct agx_error **err);

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/*
 * Gives its owner all rights to the directory `name`: whoever made the tree may have taken them,
 * and unless we are root we need them. An O_PATH descriptor can be had without any, but fchmod does
 * not take it: hence the way through /proc.
 */
static void unlock_dir(int at, const char *name)
{
    _cleanup_close_ int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[32];

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fd >= 0)
        (void)!chmod(link, 0700); /* if it fails, what is tried again says so */
}

/* Calls `fn` for each entry until a pass over the directory finds none. */
static int each_entry(int dir, int top, entry_fn fn, struct agx_error **err)
{
    _cleanup_(closedirp) DIR *d = NULL;
    _cleanup_close_ int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct dirent *e;
    size_t found;

    if (copy < 0 || !(d = fdopendir(copy)))
        return agx_error_errno(err, errno, "read a directory");
    (void)AGX_TAKE_FD(copy); /* it is d's now */
    do {
        found = 0;
        rewinddir(d);
        for (errno = 0; (e = readdir(d)); errno = 0) {
            int r;

            if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                continue;
            found++;
            r = fn(dir, e->d_name, top, err);
            if (r < 0)
                return r;
        }
        if (errno != 0)
            return agx_error_errno(err, errno, "read a directory");
    } while (found > 0);
    return 0;
}

/*
 * Removes one entry unless it is a directory that is not empty. 1: removed, or gone already; 0: it
 * is such a directory; negative and *err.
 */
static int remove_simple(int dir, const char *name, struct agx_error **err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 1;
    /* Linux says EISDIR; POSIX, and some file systems, EPERM. */
    if (errno != EISDIR && errno != EPERM)
        return agx_error_errno(err, errno, "remove '%s'", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return agx_error_errno(err, errno, "remove directory '%s'", name);
    return 0;
}

/* An entry of `dir`: removed, or moved up into `top`. */
static int lift_entry(int dir, const char *name, int top, struct agx_error **err)
{
    char lifted[32];
    uint64_t id;
    int r = remove_simple(dir, name, err);

    if (r != 0)
        return r < 0 ? r : 0;
    r = agx_random_bytes(&id, sizeof(id), err);
    if (r < 0)
        return r;
    (void)snprintf(lifted, sizeof(lifted), ".rm-%016" PRIx64, id);
    if (geteuid() != 0)
        unlock_dir(dir, name); /* to move a directory is to write its ".." */
    if (renameat(dir, name, top, lifted) < 0)
        return agx_error_errno(err, errno, "move directory '%s'", name);
    return 0;
}

/* Empties the directory `name` in `at`, lifting what is not empty into `top`, and removes it. */
static int remove_dir(int at, const char *name, int top, entry_fn fn, struct agx_error **err)
{
    _cleanup_close_ int dir = -1;
    int r;

    if (geteuid() != 0)
        unlock_dir(at, name);
    dir = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return agx_error_errno(err, errno, "open directory '%s'", name);
    r = each_entry(dir, top >= 0 ? top : dir, fn, err);
    if (r < 0)
        return r;
    if (unlinkat(at, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return agx_error_errno(err, errno, "remove directory '%s'", name);
    return 0;
}

/* An entry of `top`. */
static int remove_entry(int dir, const char *name, int top, struct agx_error **err)
{
    int r = remove_simple(dir, name, err);

    if (r != 0)
        return r < 0 ? r : 0;
    return remove_dir(dir, name, top, lift_entry, err);
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
        r = remove_dir(dir, last, -1, remove_entry, err);
    return r < 0 ? agx_error_wrap(err, r, "remove '%s'", path) : 0;
}

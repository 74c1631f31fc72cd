/*
 * treesize.c: one directory after the other; its ancestors stay open.
 *
 * Each directory is opened by its name in its parent, never by a path: whatever is renamed
 * meanwhile, the walk cannot leave the tree. What disappears meanwhile does not count.
 */
#include "backend/native/limits/treesize.h"

#include "base/clock.h"
#include "base/limits.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { BLOCK = 512, LOOK_AT_CLOCK = 64 };

struct walk {
    const struct agx_treesize_limits *limits;
    DIR *open[AGX_NATIVE_USAGE_DEPTH];
    unsigned depth;
    dev_t device;
    uint64_t bytes, n;
};

static void treesize_count(struct walk *w, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * BLOCK;

    /* Each of its names counts for a share of it. */
    w->bytes += S_ISDIR(st->st_mode) || st->st_nlink < 2 ? bytes : bytes / st->st_nlink;
}

/* Opens the directory and counts it. 1: it is on another file system, or gone. */
static int treesize_enter(struct walk *w, int at, const char *name, struct agx_error **err)
{
    struct stat st;
    int fd;

    if (w->depth == w->limits->depth)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "directories more than %u deep are not counted", w->limits->depth);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 1;
    if (fd < 0)
        return agx_error_errno(err, errno, "open the directory '%s'", name);
    if (fstat(fd, &st) < 0 || (w->depth > 0 && st.st_dev != w->device)) {
        (void)close(fd);
        return 1;
    }
    w->device = st.st_dev;
    w->open[w->depth] = fdopendir(fd);
    if (!w->open[w->depth]) {
        (void)close(fd);
        return agx_error_errno(err, ENOMEM, "read the directory '%s'", name);
    }
    w->depth++;
    treesize_count(w, &st);
    return 0;
}

static int entry(struct walk *w, const char *name, struct agx_error **err)
{
    int at = dirfd(w->open[w->depth - 1]);
    struct stat st;
    int r;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(st.st_mode)) {
        r = treesize_enter(w, at, name, err);
        return r < 0 ? r : 0;
    }
    treesize_count(w, &st);
    return 0;
}

static int check_limits(struct walk *w, struct agx_error **err)
{
    if (w->limits->stop && atomic_load(w->limits->stop))
        return agx_error_set(err, AGX_CANCELLED, "cancelled");
    if (w->n++ % LOOK_AT_CLOCK == 0 && agx_clock_ns() >= w->limits->deadline_ns)
        return agx_error_set(err, AGX_DEADLINE_EXCEEDED, "too many files to be counted in time");
    return 0;
}

int agx_treesize(int dirfd, const char *name, const struct agx_treesize_limits *limits,
                 uint64_t *ret_bytes, struct agx_error **err)
{
    struct walk w = { .limits = limits };
    int r;

    assert(limits->depth > 0 && limits->depth <= AGX_NATIVE_USAGE_DEPTH);
    r = treesize_enter(&w, dirfd, name, err);
    if (r > 0)
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no directory '%s'", name);
    while (r == 0 && w.depth > 0) {
        const struct dirent *e = readdir(w.open[w.depth - 1]);

        if (!e)
            (void)closedir(w.open[--w.depth]);
        else if ((r = check_limits(&w, err)) == 0)
            r = entry(&w, e->d_name, err);
    }
    while (w.depth > 0)
        (void)closedir(w.open[--w.depth]);
    if (r == 0)
        *ret_bytes = w.bytes;
    return r;
}

/*
 * treesize.c: one directory after the other.
 *
 * The tree's creator chose its depth, so neither stack nor descriptors may grow with it. At most
 * OPEN_MAX directories are open at a time, the deepest ones. Of the others the walk keeps the inode
 * and the position where reading stopped, and opens them again by ".." on the way back.
 *
 * Each directory is opened by its name in its parent, never by a path, and one that is opened by
 * ".." must be the one that the walk came through: whatever is renamed meanwhile, the walk cannot
 * leave the tree. What disappears meanwhile does not count.
 */
#include "backend/native/limits/treesize.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/macros.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/banned.h"

enum { BLOCK = 512, LOOK_AT_CLOCK = 64, OPEN_MAX = 16, LEVELS_FIRST = 32 };

/* All levels are on the same device. */
struct level {
    DIR *open; /* NULL: closed for now */
    ino_t inode;
    long position; /* while it is closed: where reading goes on */
};

struct walk {
    const struct agx_treesize_limits *limits;
    struct level *levels; /* owned */
    unsigned depth, room; /* levels in use, and allocated */
    unsigned first_open;  /* this level and all deeper ones are open */
    dev_t device;
    uint64_t bytes, n;
};

static struct level *last(const struct walk *w)
{
    return &w->levels[w->depth - 1];
}

static void treesize_count(struct walk *w, const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * BLOCK;

    /* Each of its names counts for a share of it. */
    w->bytes += S_ISDIR(st->st_mode) || st->st_nlink < 2 ? bytes : bytes / st->st_nlink;
}

/* Room for one more level, in memory and among the descriptors. */
static int make_room(struct walk *w, struct agx_error **err)
{
    struct level *l;

    if (w->depth == w->limits->depth)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "directories more than %u deep are not counted", w->limits->depth);
    if (w->depth == w->room) {
        unsigned room = w->room > 0 ? 2 * w->room : LEVELS_FIRST;

        l = realloc(w->levels, room * sizeof(*l));
        if (!l)
            return agx_error_no_memory(err);
        w->levels = l;
        w->room = room;
    }
    if (w->depth - w->first_open == OPEN_MAX) {
        l = &w->levels[w->first_open++];
        l->position = telldir(l->open);
        (void)closedir(AGX_TAKE_PTR(l->open));
    }
    return 0;
}

/* Opens the directory and counts it. 1: it is on another file system, or gone. */
static int treesize_enter(struct walk *w, int at, const char *name, struct agx_error **err)
{
    _cleanup_close_ int fd = -1;
    struct stat st;
    DIR *d;
    int r;

    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 1;
    if (fd < 0)
        return agx_error_errno(err, errno, "open the directory '%s'", name);
    if (fstat(fd, &st) < 0 || (w->depth > 0 && st.st_dev != w->device))
        return 1;
    r = make_room(w, err);
    if (r < 0)
        return r;
    d = fdopendir(fd);
    if (!d)
        return agx_error_errno(err, ENOMEM, "read the directory '%s'", name);
    (void)AGX_TAKE_FD(fd); /* d owns it now */
    w->device = st.st_dev;
    w->levels[w->depth++] = (struct level){ .open = d, .inode = st.st_ino };
    treesize_count(w, &st);
    return 0;
}

/* Opens the parent of the last level again, where reading stopped. */
static int reopen_parent(struct walk *w, struct agx_error **err)
{
    struct level *parent = last(w) - 1;
    _cleanup_close_ int fd =
        openat(dirfd(last(w)->open), "..", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return agx_error_errno(err, errno, "open a directory again");
    if (fstat(fd, &st) < 0 || st.st_dev != w->device || st.st_ino != parent->inode)
        return agx_error_set(err, AGX_ABORTED,
                             "a directory was moved while the files were counted");
    parent->open = fdopendir(fd);
    if (!parent->open)
        return agx_error_errno(err, ENOMEM, "read a directory again");
    (void)AGX_TAKE_FD(fd); /* the stream owns it now */
    seekdir(parent->open, parent->position);
    w->first_open--;
    return 0;
}

/* Back to the parent: all of the last level is counted. */
static int treesize_leave(struct walk *w, struct agx_error **err)
{
    int r = 0;

    if (w->depth - 1 == w->first_open && w->first_open > 0)
        r = reopen_parent(w, err);
    if (r == 0)
        (void)closedir(w->levels[--w->depth].open);
    return r;
}

static int entry(struct walk *w, const char *name, struct agx_error **err)
{
    int at = dirfd(last(w)->open);
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

    r = treesize_enter(&w, dirfd, name, err);
    if (r > 0)
        r = agx_error_set(err, AGX_NOT_FOUND, "there is no directory '%s'", name);
    while (r == 0 && w.depth > 0) {
        const struct dirent *e = readdir(last(&w)->open);

        if (!e)
            r = treesize_leave(&w, err);
        else if ((r = check_limits(&w, err)) == 0)
            r = entry(&w, e->d_name, err);
    }
    while (w.depth > w.first_open)
        (void)closedir(w.levels[--w.depth].open);
    free(w.levels);
    if (r == 0)
        *ret_bytes = w.bytes;
    return r;
}

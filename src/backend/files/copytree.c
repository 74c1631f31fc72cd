/*
 * copytree.c: walks a source and chooses what is copied.
 *
 * The walk keeps a stack of directories that are still to be read, as names, and has one of them
 * open at a time: neither descriptors nor the stack grow with the depth of the tree. Entries that
 * disappear meanwhile do not stop it.
 *
 * A directory that the .gitignore covers is left out as a whole when a symlink that leads out is
 * anywhere in it, so it is searched before it is entered. If there is none, it and all beneath it
 * are `searched` and are not searched again.
 */
#include "backend/files/copytree.h"

#include "base/fd.h"
#include "base/limits.h"
#include "base/path.h"
#include "core/ignore.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "base/banned.h"

struct agx_copytree {
    const struct agx_copy *copy;
    const atomic_bool *stop;
    int root;
    struct stat st;
    struct agx_ignore *excludes;
    struct agx_ignore *gitignore; /* NULL: there is none */
};

/* An entry that the walk has reached. */
struct found {
    int dir; /* the directory of `name`; open for the call */
    const char *name;
    const char *path;
    struct stat st;
    bool searched;
};

/* Results of a visitor, besides a negative code. */
enum { PASS, ENTER, FOUND };

typedef int (*visit_fn)(struct agx_copytree *t, struct found *f, void *user,
                        struct agx_error **err);

/* ---- the walk ---- */

static int push_dir(struct agx_buf *pending, const char *path, bool searched,
                    struct agx_error **err)
{
    /* A byte, the path, its NUL: popped from the end. */
    int r = agx_buf_push(pending, searched ? 's' : '-');

    if (r == 0)
        r = agx_buf_append(pending, (struct agx_str){ path, strlen(path) + 1 });
    if (r < 0)
        return agx_error_set(err, AGX_RESOURCE_EXHAUSTED,
                             "too many directories in the source (at '%s')", path);
    return 0;
}

static void pop_dir(struct agx_buf *pending, char path[PATH_MAX], bool *ret_searched)
{
    size_t at = pending->len - 1;

    while (at > 0 && pending->data[at - 1] != '\0')
        at--;
    *ret_searched = pending->data[at] == 's';
    (void)snprintf(path, PATH_MAX, "%s", (const char *)pending->data + at + 1);
    pending->len = at;
}

static void closedirp(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* 0 and NULL when it is gone. */
static int open_dir(struct agx_copytree *t, const char *path, DIR **ret_dir, struct agx_error **err)
{
    struct agx_error *cause = NULL;
    _cleanup_close_ int fd =
        agx_path_open(t->root, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0, &cause);

    if (fd == -AGX_NOT_FOUND) {
        agx_error_free(cause);
        return 0;
    }
    if (fd < 0) {
        agx_error_propagate(err, &cause);
        return fd;
    }
    *ret_dir = fdopendir(fd);
    if (!*ret_dir)
        return agx_error_errno(err, errno, "read directory '%s'", path);
    (void)AGX_TAKE_FD(fd); /* owned by the stream now */
    return 0;
}

/* The next entry of `d`. 1; 0 at the end. */
static int next_entry(struct agx_copytree *t, DIR *d, const char *path, const char **ret_name,
                      struct agx_error **err)
{
    const struct dirent *e;

    do {
        if (atomic_load(t->stop))
            return agx_error_set(err, AGX_CANCELLED, "the copy was cancelled");
        errno = 0;
        e = readdir(d);
    } while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
    if (!e && errno != 0)
        return agx_error_errno(err, errno, "read directory '%s'", path);
    *ret_name = e ? e->d_name : NULL;
    return e ? 1 : 0;
}

static int visit(struct agx_copytree *t, struct found *f, visit_fn fn, void *user,
                 struct agx_error **err)
{
    if (fstatat(f->dir, f->name, &f->st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? PASS : agx_error_errno(err, errno, "look at '%s'", f->path);
    if (agx_ignore_matches(t->excludes, agx_str_from(f->path), S_ISDIR(f->st.st_mode)))
        return PASS;
    return fn(t, f, user, err);
}

/* Visits one directory; those in it that shall be entered are pushed to `pending`. */
static int walk_dir(struct agx_copytree *t, const char *path, bool searched,
                    struct agx_buf *pending, visit_fn fn, void *user, struct agx_error **err)
{
    _cleanup_(closedirp) DIR *d = NULL;
    const char *name = NULL;
    char child[PATH_MAX];
    int r = open_dir(t, path, &d, err);

    while (r >= 0 && r != FOUND && d && (r = next_entry(t, d, path, &name, err)) > 0) {
        struct found f = { .dir = dirfd(d), .name = name, .path = child, .searched = searched };
        int n = snprintf(child, sizeof(child), "%s%s%s", path, *path ? "/" : "", name);

        if (n < 0 || (size_t)n >= sizeof(child))
            return agx_error_set(err, AGX_INVALID_ARGUMENT, "a path in '%.100s...' is too long",
                                 path);
        r = visit(t, &f, fn, user, err);
        if (r == ENTER && S_ISDIR(f.st.st_mode))
            r = push_dir(pending, child, f.searched, err);
    }
    return r;
}

/* Visits everything in the directory `path`. FOUND when a visitor returned it. */
static int walk(struct agx_copytree *t, const char *path, visit_fn fn, void *user,
                struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf pending = AGX_BUF_INIT(AGX_COPIES_PENDING_MAX);
    char dir[PATH_MAX];
    int r = push_dir(&pending, path, false, err);

    while (r >= 0 && r != FOUND && pending.len > 0) {
        bool searched = false;

        pop_dir(&pending, dir, &searched);
        r = walk_dir(t, dir, searched, &pending, fn, user, err);
    }
    return r;
}

/* ---- symlinks ---- */

/* Appends the components of `part` to the absolute path `out` and resolves "." and "..". */
static bool copytree_join(char *out, size_t size, struct agx_str part)
{
    struct agx_str name;
    size_t len = strlen(out);

    while (agx_str_split(&part, '/', &name)) {
        if (name.len == 0 || agx_str_eq(name, AGX_STR(".")))
            continue;
        if (agx_str_eq(name, AGX_STR(".."))) {
            while (len > 0 && out[--len] != '/')
                ;
        } else if (len + 1 + name.len >= size) {
            return false;
        } else {
            out[len++] = '/';
            memcpy(out + len, name.ptr, name.len);
            len += name.len;
        }
        out[len] = '\0';
    }
    return true;
}

/* Decided by the text alone: whether its target exists does not matter. */
static bool leads_out(const struct agx_copytree *t, const char *path, const char *link)
{
    const char *slash = strrchr(path, '/');
    const struct agx_str dir = { path, slash ? (size_t)(slash - path) : 0 };
    const struct agx_str source = agx_str_from(t->copy->source);
    char out[3 * PATH_MAX] = "";

    if (link[0] != '/' &&
        !(copytree_join(out, sizeof(out), source) && copytree_join(out, sizeof(out), dir)))
        return true;
    if (!copytree_join(out, sizeof(out), agx_str_from(link)))
        return true;
    return !agx_str_starts(agx_str_from(out), source) ||
           (out[source.len] != '\0' && out[source.len] != '/');
}

/* 1; 0 when it is gone, or is not a symlink any more. */
static int read_link(const struct found *f, char text[PATH_MAX], struct agx_error **err)
{
    ssize_t n = readlinkat(f->dir, f->name, text, PATH_MAX - 1);

    if (n < 0 && (errno == ENOENT || errno == EINVAL))
        return 0;
    if (n < 0)
        return agx_error_errno(err, errno, "read symlink '%s'", f->path);
    text[n] = '\0';
    return 1;
}

static bool is_covered(const struct agx_copytree *t, const struct found *f)
{
    return t->gitignore &&
           agx_ignore_matches(t->gitignore, agx_str_from(f->path), S_ISDIR(f->st.st_mode));
}

static int find_external(struct agx_copytree *t, struct found *f, void *user,
                         struct agx_error **err)
{
    char text[PATH_MAX];
    int r;

    (void)user;
    if (!S_ISLNK(f->st.st_mode))
        return ENTER;
    r = read_link(f, text, err);
    if (r <= 0)
        return r;
    return leads_out(t, f->path, text) ? FOUND : PASS;
}

/* ---- the choice ---- */

struct choice {
    agx_copytree_fn fn;
    void *user;
};

static int choose_dir(struct agx_copytree *t, struct found *f, const struct choice *c,
                      struct agx_error **err)
{
    const struct agx_copytree_entry e = { f->path, &f->st, -1, NULL };
    int r;

    if (!f->searched && is_covered(t, f)) {
        r = walk(t, f->path, find_external, NULL, err);
        if (r < 0 || r == FOUND)
            return r < 0 ? r : PASS;
        f->searched = true;
    }
    r = c->fn(c->user, &e, err);
    return r < 0 ? r : ENTER;
}

static int choose_link(struct agx_copytree *t, const struct found *f, const struct choice *c,
                       struct agx_error **err)
{
    char text[PATH_MAX];
    const struct agx_copytree_entry e = { f->path, &f->st, -1, text };
    int r = read_link(f, text, err);

    if (r <= 0)
        return r;
    if (leads_out(t, f->path, text))
        return is_covered(t, f) ? PASS
                                : agx_error_set(err, AGX_FAILED_PRECONDITION,
                                                "copy source contains external symlink: %s/%s",
                                                t->copy->source, f->path);
    return c->fn(c->user, &e, err);
}

static int choose_file(const struct found *f, const struct choice *c, struct agx_error **err)
{
    /* O_NONBLOCK: a former file may be a FIFO by now. */
    _cleanup_close_ int fd =
        openat(f->dir, f->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct agx_copytree_entry e = { f->path, NULL, fd, NULL };
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return PASS;
    if (fd < 0 || fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "open '%s'", f->path);
    if (!S_ISREG(st.st_mode))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "'%s' changed while it was copied",
                             f->path);
    e.st = &st;
    return c->fn(c->user, &e, err);
}

static int choose(struct agx_copytree *t, struct found *f, void *user, struct agx_error **err)
{
    const struct choice *c = user;
    const mode_t kind = f->st.st_mode & S_IFMT;

    if (kind == S_IFDIR)
        return choose_dir(t, f, c, err);
    if (kind == S_IFLNK)
        return choose_link(t, f, c, err);
    if (kind == S_IFREG)
        return choose_file(f, c, err);
    return agx_error_set(err, AGX_FAILED_PRECONDITION,
                         "copy source contains a %s: %s/%s (an exclude pattern leaves it out)",
                         kind == S_IFSOCK  ? "socket"
                         : kind == S_IFIFO ? "FIFO"
                                           : "device",
                         t->copy->source, f->path);
}

int agx_copytree_each(struct agx_copytree *t, agx_copytree_fn fn, void *user,
                      struct agx_error **err)
{
    struct choice c = { fn, user };
    int r;

    if (S_ISDIR(t->st.st_mode)) {
        r = walk(t, "", choose, &c, err);
        return r < 0 ? r : 0;
    }
    return fn(user, &(struct agx_copytree_entry){ "", &t->st, t->root, NULL }, err);
}

/* ---- opening ---- */

/* Only a .gitignore in the root is used, and only if it is not a symlink. */
static int read_gitignore(struct agx_copytree *t, struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf content = AGX_BUF_INIT(AGX_COPIES_GITIGNORE_MAX);
    _cleanup_close_ int fd =
        openat(t->root, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    int r;

    if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENXIO))
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return agx_error_errno(err, errno, "open '.gitignore'");
    if (!S_ISREG(st.st_mode))
        return 0;
    r = agx_fd_read_all(fd, &content, err);
    if (r == 0)
        r = agx_ignore_new_lines(agx_buf_peek(&content), &t->gitignore, err);
    return r < 0 ? agx_error_wrap(err, r, "read '.gitignore'") : 0;
}

/* Reopens for reading the very file that the path walk found. */
static int reopen(const struct agx_hostpath *from)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", from->fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                          (S_ISDIR(from->mode) ? O_DIRECTORY : 0));
}

static int open_source(struct agx_copytree *t, const struct agx_sources_asker *asker,
                       struct agx_error **err)
{
    _cleanup_(agx_hostpath_done) struct agx_hostpath from = AGX_HOSTPATH_INIT;
    const char *source = t->copy->source;
    int r = agx_sources_open(asker, source, false, &from, err);

    if (r < 0)
        return agx_error_wrap(err, r, "open copy source '%s'", source);
    if (S_ISLNK(from.mode))
        return agx_error_set(err, AGX_FAILED_PRECONDITION, "copy source must not be a symlink: %s",
                             source);
    if (!S_ISDIR(from.mode) && !S_ISREG(from.mode))
        return agx_error_set(err, AGX_FAILED_PRECONDITION,
                             "copy source must be a file or directory: %s", source);
    t->root = reopen(&from);
    if (t->root < 0 || fstat(t->root, &t->st) < 0)
        return agx_error_errno(err, errno, "open copy source '%s'", source);
    return S_ISDIR(t->st.st_mode) ? read_gitignore(t, err) : 0;
}

int agx_copytree_open(const struct agx_copy *copy, const struct agx_sources_asker *asker,
                      const atomic_bool *stop, struct agx_copytree **ret_tree,
                      struct agx_error **err)
{
    _cleanup_(agx_copytree_closep) struct agx_copytree *t = calloc(1, sizeof(*t));
    int r;

    if (!t)
        return agx_error_errno(err, ENOMEM, "open copy source '%s'", copy->source);
    t->copy = copy;
    t->stop = stop;
    t->root = -1;
    r = agx_ignore_new_globs(&copy->exclude_patterns, &t->excludes, err);
    if (r == 0)
        r = open_source(t, asker, err);
    if (r == 0)
        *ret_tree = AGX_TAKE_PTR(t);
    return r;
}

const struct stat *agx_copytree_stat(const struct agx_copytree *t)
{
    return &t->st;
}

struct agx_copytree *agx_copytree_close(struct agx_copytree *t)
{
    if (!t)
        return NULL;
    agx_ignore_free(t->excludes);
    agx_ignore_free(t->gitignore);
    if (t->root >= 0)
        (void)close(t->root);
    free(t);
    return NULL;
}
